"""`{{name}}` in a job's text, filled from each contact's variables."""

import re
from collections.abc import Mapping
from functools import lru_cache

TEXT_LIMIT = 4096
"""Characters after variables; WhatsApp's own clients cut longer texts."""

_VARIABLE = re.compile(r"\{\{\s*([^\W\d][\w.-]{0,63})\s*\}\}")


def variables(text: str) -> frozenset[str]:
    return _variables(text) if "{{" in text else frozenset()


@lru_cache(maxsize=1024)
def _variables(text: str) -> frozenset[str]:
    return frozenset(_VARIABLE.findall(text))


def occurrences(text: str) -> int:
    """How many placeholders there are; one name may stand in several."""
    return len(_VARIABLE.findall(text))


def render(text: str, values: Mapping[str, str]) -> str:
    """Every placeholder replaced. Values are not scanned again, so a value cannot smuggle in a placeholder."""
    return _VARIABLE.sub(lambda match: values[match.group(1)], text)
