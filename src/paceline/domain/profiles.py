"""Profiles as operators write them: one line each. A JSON object holds settings of a session, anything else is a
payload that Paceline only keeps.

A profile's id is made from its line, so the same line is the same profile. A payload may hold what is nobody's
business: it is shown in no answer. Neighbours: `proxies` for the other pool, `orchestrator.inventory`.
"""

import hashlib
import re
from collections.abc import Callable
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from paceline.domain.proxies import Refused
from paceline.domain.times import moment_ms

MAX_PROFILE_LENGTH: Final = 4_096
"""Room for everything a session can be told, and 100,000 of them still fit into Redis."""

_ID = re.compile(r"f[0-9a-f]{16}")
_WHERE = re.compile(r" - at `\$\.?(?P<path>.*)`$")


class Profile(msgspec.Struct, frozen=True, rename="camel"):
    profile_id: str
    line: str
    """In one spelling: the keys of an object are sorted."""
    is_object: bool = False
    display_name: str | None = None
    timezone: str | None = None
    tags: list[str] | None = None
    created_at: int | None = None

    @property
    def key(self) -> str:
        return self.profile_id


class _Settings(msgspec.Struct, frozen=True, rename="camel"):
    """What is read of an object; whatever else it holds stays in the line."""

    display_name: Annotated[str, Meta(min_length=1, max_length=100)] | None = None
    timezone: Annotated[str, Meta(max_length=64)] | None = None
    tags: Annotated[list[Annotated[str, Meta(min_length=1, max_length=64)]], Meta(max_length=32)] | None = None
    created_at: int | str | None = None


def is_profile_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def read_profile(text: str, *, is_zone: Callable[[str], bool], now_ms: int) -> Profile | Refused:
    text = text.strip(" \t")
    if len(text) > MAX_PROFILE_LENGTH:
        return Refused(f"longer than {MAX_PROFILE_LENGTH:,} characters")
    if not text.replace("\t", " ").isprintable():
        return Refused("has control characters")
    if not text.startswith("{"):
        return Profile(_id_of(text), text)
    return _read_object(text, is_zone, now_ms)


def _read_object(text: str, is_zone: Callable[[str], bool], now_ms: int) -> Profile | Refused:
    try:
        whole: dict[str, Any] = msgspec.json.decode(text, type=dict[str, Any])
        known = msgspec.convert(whole, _Settings)
    except msgspec.ValidationError as error:
        # msgspec's words name the kind that was expected, never the value.
        where = _WHERE.search(str(error))
        return Refused(f"{where['path'] if where else 'the object'} is not as it must be")
    except (msgspec.DecodeError, RecursionError):
        return Refused("begins like a JSON object and is none")
    if known.display_name is not None and not known.display_name.isprintable():
        return Refused("displayName has control characters")
    if known.timezone is not None and not is_zone(known.timezone):
        return Refused("timezone is no name of the IANA list, such as Asia/Jerusalem")
    created_at = None if known.created_at is None else moment_ms(known.created_at)
    if known.created_at is not None and (created_at is None or created_at > now_ms):
        return Refused("createdAt is no time in the past: Unix milliseconds, or ISO 8601 with an offset")
    line = msgspec.json.encode(whole, order="sorted").decode()
    return Profile(
        profile_id=_id_of(line),
        line=line,
        is_object=True,
        display_name=known.display_name,
        timezone=known.timezone,
        tags=known.tags,
        created_at=created_at,
    )


def _id_of(line: str) -> str:
    return "f" + hashlib.sha256(line.encode()).hexdigest()[:16]
