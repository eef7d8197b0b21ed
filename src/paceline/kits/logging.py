"""JSON lines on stderr, with everything taken out that must not be in a log.

`configure_logging` is called once by each entry point. Lines of libraries (uvicorn, litestar, httpx) take the
same way out, so they are redacted too. Three nets, because each has holes: field names that hold secrets,
text and numbers; patterns anywhere in a string (credentials in a URL, bearer tokens, chat addresses); and the
secrets of this process by their value (`register_secret`), wherever they turn up.
"""

import logging
import re
import sys
from collections.abc import Callable
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

MASK = "[redacted]"

_SECRET_FIELDS = frozenset(
    {
        "apikey",
        "xapikey",
        "authorization",
        "webhooksecret",
        "xwebhooksecret",
        "secret",
        "password",
        "cookie",
        "setcookie",
    }
)
_TEXT_FIELDS = frozenset({"text", "caption", "body", "messagetext"})
_NUMBER_FIELDS = frozenset({"to", "phone", "from", "recipient"})

# A field is recognised however it is spelled: api_key, apiKey, X-API-KEY.
_SPELLING = str.maketrans("", "", "_- ")

_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?<=://)[^/\s]+@"), f"{MASK}@"),
    (re.compile(r"\b(bearer)\s+\S+", re.IGNORECASE), rf"\1 {MASK}"),
    (re.compile(r"\b(x-api-key|x-webhook-secret)(['\"]?\s*[:=,]\s*)\S+", re.IGNORECASE), rf"\1\2{MASK}"),
    (re.compile(r"\bpk_[A-Za-z0-9_-]{20,}"), MASK),
    (re.compile(r"\bwhsec_[A-Za-z0-9+/=_-]{20,}"), MASK),
    (re.compile(r"\b\d{3,11}(?=\d{4}@(?:s\.whatsapp\.net|c\.us))"), "…"),
)

# Libraries that write a line per request at info level; what they say there we say better or not at all.
_CHATTY = ("httpx", "httpcore", "uvicorn.access", "asyncio")

# Shorter values would blank ordinary words.
_MIN_SECRET_LENGTH = 6
_SHORT = 64
_known_secrets: set[str] = set()


def register_secret(value: str | None) -> None:
    """Blank this value in every line from now on."""
    if value and len(value) >= _MIN_SECRET_LENGTH:
        _known_secrets.add(value)
        _redact_short.cache_clear()


def redact(value: Any, field: str = "") -> Any:
    """The value as it may be shown, all the way down. `field` is the name it stands under."""
    name = field.lower().translate(_SPELLING)
    if name in _SECRET_FIELDS and value is not None:
        return MASK
    if isinstance(value, dict):
        return {key: redact(item, str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [redact(item, field) for item in value]
    if value is None or isinstance(value, bool):
        return value
    return _redact_scalar(value, name)


def _redact_scalar(value: Any, name: str) -> Any:
    if name in _TEXT_FIELDS:
        return f"[{len(str(value))} characters]"
    if name in _NUMBER_FIELDS:
        return _last_four(str(value))
    if isinstance(value, int | float):
        return value
    return redact_string(value if isinstance(value, str) else str(value))


def redact_string(value: str) -> str:
    """A free string without the secrets we know and the patterns that look like one."""
    return _redact_short(value) if len(value) <= _SHORT else _redacted(value)


# The same names, services and ids stand in line after line; looking each through again takes most of a line's time.
@lru_cache(maxsize=2_048)
def _redact_short(value: str) -> str:
    return _redacted(value)


def _redacted(value: str) -> str:
    for secret in _known_secrets:
        value = value.replace(secret, MASK)
    for pattern, replacement in _PATTERNS:
        value = pattern.sub(replacement, value)
    return value


def redact_event(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """The structlog processor; stands directly before the renderer so that nothing is added after it."""
    return {key: redact(value, key) for key, value in event.items()}


def configure_logging(
    service: str,
    level: str = "info",
    *,
    secrets: tuple[str | None, ...] = (),
    stream: TextIO = sys.stderr,
) -> None:
    """Send all logging of this process, ours and the libraries', to `stream` as JSON lines."""
    for secret in secrets:
        register_secret(secret)
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        with_request_id,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
        _named(service),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.PositionalArgumentsFormatter(),
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    _route_everything_through(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                redact_event,
                structlog.processors.JSONRenderer(ensure_ascii=False),
            ],
        ),
        level,
        stream,
    )


_request_id: ContextVar[str] = ContextVar("request_id", default="")


def request_id() -> str:
    """Of the request that is being answered, as all its lines have it; empty outside of one."""
    return _request_id.get()


class answering:
    """What is done and logged meanwhile is for the request with this id."""

    def __init__(self, id_: str) -> None:
        self._id = id_

    def __enter__(self) -> None:
        self._token = _request_id.set(self._id)

    def __exit__(self, *_error: object) -> None:
        _request_id.reset(self._token)


def with_request_id(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """The structlog processor that puts it into every line."""
    if id_ := _request_id.get():
        event.setdefault("request_id", id_)
    return event


def silence() -> None:
    """No log at all: for virtual time, where a thousand crashes are a normal Tuesday."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


def _route_everything_through(formatter: logging.Formatter, level: str, stream: TextIO) -> None:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)


def _named(service: str) -> Callable[[WrappedLogger, str, EventDict], EventDict]:
    def add_service(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        event["service"] = service
        return event

    return add_service


def _last_four(number: str) -> str:
    digits = re.sub(r"\D", "", number)
    return f"…{digits[-4:]}" if len(digits) > 4 else MASK
