"""`{{name}}` in a job's text, filled from each contact's variables."""

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache

TEXT_LIMIT = 4096
"""Characters after variables; WhatsApp's own clients cut longer texts."""

_VARIABLE = re.compile(r"\{\{\s*([^\W\d][\w.-]{0,63})\s*\}\}")

_INVISIBLE_KINDS = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})
_INVISIBLE = re.compile(
    r"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Letters and marks by their kind that show nothing: fillers, an empty Braille cell, selectors of variants."""


def is_blank(text: str) -> bool:
    """Whether nobody could see anything of it: spaces, line ends, characters without width."""
    return all(unicodedata.category(one) in _INVISIBLE_KINDS or _INVISIBLE.match(one) for one in text)


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


def is_bare(text: str) -> bool:
    """Whether it says nothing but its variables, so that without their values it would be blank."""
    return is_blank(_VARIABLE.sub("", text))
