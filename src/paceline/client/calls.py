"""A request as a value: whom to ask, what for, what the answer is, and whether it may be asked twice. Without I/O."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum, StrEnum
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


class Service(StrEnum):
    """Who is asked."""

    GATEWAY = "gateway"
    DISPATCHER = "dispatcher"
    ORCHESTRATOR = "orchestrator"


@dataclass(frozen=True)
class Urls:
    """Where the three services are; the defaults are those of `paceline up`."""

    gateway: str = "http://127.0.0.1:4000"
    dispatcher: str = "http://127.0.0.1:4001"
    orchestrator: str = "http://127.0.0.1:3000"

    def by_service(self) -> dict[Service, str]:
        return {service: getattr(self, service.value) for service in Service}


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
    """`str` for one that comes as CSV, `NoneType` for one without a word."""
    query: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    content_type: str = JSON
    repeat: Repeat = Repeat.HARMLESS
    idempotency_key: str | None = None
    service: Service = Service.GATEWAY
    waits_seconds: float = 0.0
    """How long the service itself may wait for somebody else before it answers; that much more patience is needed."""

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


def body_with_null(**given: Any) -> bytes:
    """For fields that null means something to: only what is UNSET is left out."""
    return msgspec.json.encode({_camel(name): value for name, value in given.items() if value is not msgspec.UNSET})


def form(file: bytes, *, name: str, type: str | None = None) -> dict[str, Any]:
    """Content and type of a form with this one file."""
    if not isinstance(file, bytes):
        raise Misused("give the bytes of the file: Path(…).read_bytes()")
    # From the bytes themselves, which therefore cannot hold it.
    boundary = f"paceline-{hashlib.sha256(file).hexdigest()[:40]}"
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{_quoted(name)}"\r\n'
        f"Content-Type: {type or 'application/octet-stream'}\r\n\r\n"
    )
    content = head.encode() + file + f"\r\n--{boundary}--\r\n".encode()
    return {"content": content, "content_type": f"multipart/form-data; boundary={boundary}"}


def moment(value: Moment | None) -> int | str | None:
    if not isinstance(value, datetime):
        return value
    if value.tzinfo is None:
        raise Misused("a datetime must know its timezone: datetime.now(UTC), for example")
    return round(value.timestamp() * 1000)


def encoded_csv(text: Csv) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _quoted(name: str) -> str:
    """As browsers write a file's name into a form."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


def _camel(name: str) -> str:
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(word.capitalize() for word in rest)
