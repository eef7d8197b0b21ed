"""What is refused by looking at it: texts, numbers, times, metadata, a day that is used up. Each names its field."""

import re
from datetime import date
from typing import Any

import msgspec

from paceline.domain.errors import BadRequest, TooMany
from paceline.domain.media import Mode
from paceline.domain.numbers import canonical
from paceline.domain.text import TEXT_LIMIT, is_blank, render, variables
from paceline.domain.times import moment_ms
from paceline.gateway.schemas import JobRequest
from paceline.policy import hours
from paceline.policy.facts import Sender

METADATA_LIMIT = 8_192
"""Bytes as JSON. It comes back in every event, so it must stay small."""
METADATA_WRITTEN = 8 * METADATA_LIMIT
"""Bytes as a caller wrote it, with room for spaces and escapes."""
METADATA_DEPTH = 16
LATEST_SEND_MS = 366 * 86_400_000
"""A year ahead; what is further away is a mistake in the unit more often than a plan."""

_SESSION_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)

_encode = msgspec.json.Encoder().encode


def number(raw: str, field: str) -> str:
    """The digits of a possible number."""
    digits = canonical(raw)
    if digits is None:
        raise BadRequest("INVALID_NUMBER", "this is no possible phone number", field=field)
    return digits


def job(request: JobRequest) -> None:
    """What concerns the job as a whole; its contacts are sifted."""
    media(request.mode, request.media_ref, request.media_url)
    if request.mode == "message" or request.text:
        template(request.text, "text")
    metadata(request.metadata)


def media(mode: Mode, media_ref: str | None, media_url: str | None) -> None:
    """An image or a document has one file; a message has none."""
    given = [name for name, value in (("mediaRef", media_ref), ("mediaUrl", media_url)) if value is not None]
    if mode == "message" and given:
        raise BadRequest("MEDIA_MODE", "a message of mode 'message' has no media", field=given[0])
    if mode != "message" and len(given) != 1:
        message = f"mode {mode!r} needs one of mediaRef and mediaUrl"
        raise BadRequest("MEDIA_MODE", message, field=given[-1] if given else "mediaRef")


def template(text: str, field: str) -> None:
    """A text with variables: what is certain for every recipient; the rest is judged contact by contact."""
    if is_blank(text):
        raise BadRequest("EMPTY_TEXT", "there is nothing to see in the text", field=field)
    named = variables(text)
    _length(len(render(text, dict.fromkeys(named, "")) if named else text), field)


def plain_text(text: str, field: str) -> None:
    """A text that goes out exactly as it is."""
    if is_blank(text):
        raise BadRequest("EMPTY_TEXT", "there is nothing to see in the text", field=field)
    _length(len(text), field)


def written_metadata(json: bytes) -> None:
    """Before it is decoded."""
    if len(json) > METADATA_WRITTEN:
        raise _metadata_too_large()


def metadata(value: dict[str, Any]) -> None:
    try:
        size = len(_encode(value))
    except RecursionError as error:
        raise BadRequest("INVALID_METADATA", "this cannot be kept as JSON", field="metadata") from error
    if size > METADATA_LIMIT or _depth(value) > METADATA_DEPTH:
        raise _metadata_too_large()


def send_at(value: int | str | None, now_ms: int) -> int | None:
    """The scheduled time; one that has passed is now."""
    if value is None:
        return None
    at = moment_ms(value)
    if at is None:
        message = "must be Unix milliseconds, or ISO 8601 with an offset such as 2026-01-31T09:00:00+02:00"
        raise BadRequest("INVALID_TIME", message, field="sendAt")
    if at > now_ms + LATEST_SEND_MS:
        raise BadRequest("INVALID_TIME", "at most a year ahead", field="sendAt")
    return at if at > now_ms else None


def day(value: str) -> str:
    """A calendar day as it stands in keys."""
    try:
        # Other forms that the library reads (20260131, 2026-W05-6) would name a key nobody writes.
        if _DATE.fullmatch(value):
            return date.fromisoformat(value).isoformat()
    except ValueError:
        pass
    raise BadRequest("INVALID_TIME", "must be a day such as 2026-01-31", field="date")


def budget(who: Sender, now_ms: int) -> None:
    """A message for now, for a number that was named, must not wait until tomorrow unasked."""
    if who.left_today != 0:
        return
    raise TooMany(
        "DAILY_LIMIT_REACHED",
        "this number has sent all it may send today",
        details={"phone": who.facts.phone, "limit": who.level.daily_cap},
        retry_after_seconds=max(1, -(-(hours.day_ends_at(who.zone, now_ms) - now_ms) // 1000)),
    )


def is_session_id(text: str) -> bool:
    """Whether it can be one at all. An id with a colon would name another key of ours."""
    return _SESSION_ID.fullmatch(text) is not None


def _metadata_too_large() -> BadRequest:
    message = f"at most {METADATA_LIMIT:,} bytes as JSON, nested {METADATA_DEPTH} deep"
    return BadRequest("METADATA_TOO_LARGE", message, field="metadata", details={"limit": METADATA_LIMIT})


def _length(characters: int, field: str) -> None:
    if characters > TEXT_LIMIT:
        message = f"at most {TEXT_LIMIT:,} characters, this has {characters:,}"
        raise BadRequest("TEXT_TOO_LONG", message, field=field, details={"limit": TEXT_LIMIT})


def _depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0
