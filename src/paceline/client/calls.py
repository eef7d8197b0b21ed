"""A request as a value: what to ask, what the answer is, and whether it may be asked twice. No I/O, no clock."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import Any, Generic, Self, TypeVar
from urllib.parse import quote

import msgspec

from paceline.client.errors import Misused

T_co = TypeVar("T_co", covariant=True)

Moment = int | str | datetime
"""Unix milliseconds, ISO 8601 with an offset, or a datetime that knows its timezone."""
Csv = str | bytes

JSON = "application/json"
CSV = "text/csv"


class Repeat(Enum):
    """What a second request would do, if nobody knows what became of the first."""

    HARMLESS = "the same again"
    KEYED = "nothing, under the same Idempotency-Key"
    ANOTHER = "a second thing of its kind"


@dataclass(frozen=True)
class Call(Generic[T_co]):
    method: str
    path: str
    answer: type[T_co]
    """`str` for one that comes as CSV."""
    query: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    content_type: str = JSON
    repeat: Repeat = Repeat.HARMLESS
    idempotency_key: str | None = None

    def at(self, cursor: str) -> Self:
        """The next page of the same."""
        return replace(self, query={**self.query, "cursor": cursor})


def path(template: str, *parts: str) -> str:
    """Each part stays within its segment, whatever it holds."""
    for part in parts:
        if not isinstance(part, str) or part in ("", ".", ".."):
            raise Misused(f"{part!r} is no id")
    return template.format(*(quote(part, safe="") for part in parts))


def query(**given: str | int | None) -> dict[str, str]:
    """Without what was left out."""
    return {_camel(name): str(value) for name, value in given.items() if value not in (None, "")}


def body(**given: Any) -> bytes:
    try:
        return msgspec.json.encode({_camel(name): value for name, value in given.items() if value is not None})
    except (TypeError, UnicodeEncodeError) as error:
        raise Misused(f"this cannot be sent as JSON: {error}") from error


def moment(value: Moment | None) -> int | str | None:
    if not isinstance(value, datetime):
        return value
    if value.tzinfo is None:
        raise Misused("a datetime must know its timezone: datetime.now(UTC), for example")
    return round(value.timestamp() * 1000)


def encoded_csv(text: Csv) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _camel(name: str) -> str:
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(word.capitalize() for word in rest)
