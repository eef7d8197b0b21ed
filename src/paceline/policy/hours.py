"""Hours: when a number and a recipient are both awake, in their own timezones, daylight saving included.

A window is (zone, open hour, close hour), half open. Several windows are open together when each is: a recipient whose
number may be in five zones is awake only when all five are.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from paceline.domain.numbers import zones
from paceline.policy.trust import Level, Policy

HORIZON_MS = 8 * 86_400_000
"""If a week with both ends has no common hour, there is none."""
_STEP_MS = 900_000
"""Every zone's offset is a multiple of a quarter of an hour."""
_OF_THE_HOST = ("localtime", "posixrules", "posix/", "right/")
"""Files beside the zones: another host has them not, or has another zone in them. `right/` counts leap seconds."""


class Window(msgspec.Struct, frozen=True):
    zone: str
    opens: int
    closes: int


def is_zone(name: str) -> bool:
    if name.startswith(_OF_THE_HOST):
        return False
    try:
        _zone(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def phone_zone(phone: str, timezone: str | None) -> str:
    """The zone set for the number, or the first its digits may be in, or UTC."""
    return timezone or next(iter(zones(phone)), "UTC")


def phone_windows(level: Level, zone: str) -> tuple[Window, ...]:
    return () if level.hours is None else (Window(zone, *level.hours),)


def recipient_windows(policy: Policy, to: str, timezone: str | None, fallback_zone: str) -> tuple[Window, ...]:
    """One window for each zone the recipient may be in; the sender's zone when nobody knows."""
    if policy.recipient_hours is None:
        return ()
    names = (timezone,) if timezone else zones(to) or (fallback_zone,)
    return tuple(Window(name, *policy.recipient_hours) for name in names)


def is_open(windows: Sequence[Window], now_ms: int) -> bool:
    return all(window.opens <= _hour(window.zone, now_ms // _STEP_MS) < window.closes for window in windows)


def next_open(windows: Sequence[Window], now_ms: int) -> int | None:
    """`now_ms` if all are open, else the first moment at which they are; None if there is no common hour."""
    if not windows:
        return now_ms
    at = now_ms
    while at <= now_ms + HORIZON_MS:
        closed = [window for window in windows if not is_open((window,), at)]
        if not closed:
            return at
        at = max(_opening(window, at) for window in closed)
    return None


def closes_at(windows: Sequence[Window], now_ms: int) -> int | None:
    """When the first of the open windows closes; None if nothing ever closes."""
    return min([_closing(window, now_ms) for window in windows]) if windows else None


def local_day(zone: str, now_ms: int) -> str:
    """The calendar day the daily cap counts in."""
    return _day(zone, now_ms // _STEP_MS)[0]


def day_starts_at(zone: str, now_ms: int) -> int:
    date = datetime.fromtimestamp(now_ms / 1000, _zone(zone)).date()
    return round(datetime.combine(date, datetime.min.time(), tzinfo=_zone(zone)).timestamp() * 1000)


def day_ends_at(zone: str, now_ms: int) -> int:
    return day_and_end(zone, now_ms)[1]


def day_and_end(zone: str, now_ms: int) -> tuple[str, int]:
    day, midnight, repeated = _day(zone, now_ms // _STEP_MS)
    return day, midnight if midnight >= now_ms else max(repeated, now_ms)


@lru_cache(maxsize=4096)
def _day(zone: str, step: int) -> tuple[str, int, int]:
    """The day of a quarter of an hour, and the two instants of the midnight that ends it: the same for all of it, since
    clocks are set at its ends only. Asked for every message, so it is kept."""
    date = datetime.fromtimestamp(step * _STEP_MS / 1000, _zone(zone)).date()
    midnight = datetime.combine(date + timedelta(days=1), datetime.min.time(), tzinfo=_zone(zone))
    return date.isoformat(), *_instants(midnight)


@lru_cache(maxsize=4096)
def _hour(zone: str, step: int) -> int:
    return datetime.fromtimestamp(step * _STEP_MS / 1000, _zone(zone)).hour


def _opening(window: Window, now_ms: int) -> int:
    local = _local(window, now_ms)
    day = local.date() if local.hour < window.opens else local.date() + timedelta(days=1)
    opening = datetime(day.year, day.month, day.day, window.opens, tzinfo=_zone(window.zone))
    return _first_at_or_after(_instants(opening), now_ms + _STEP_MS - now_ms % _STEP_MS)


def _closing(window: Window, now_ms: int) -> int:
    return _first_at_or_after(_closings(window, now_ms // _STEP_MS), now_ms)


@lru_cache(maxsize=4096)
def _closings(window: Window, step: int) -> tuple[int, int]:
    day = _local(window, step * _STEP_MS).date() + timedelta(days=window.closes // 24)
    return _instants(datetime(day.year, day.month, day.day, window.closes % 24, tzinfo=_zone(window.zone)))


def _first_at_or_after(instants: tuple[int, int], floor_ms: int) -> int:
    """The instant of a local time. An hour that the clocks repeat counts the first time it is not yet past; one that
    they skip is the moment of the skip, which is what `fold=0` says (`fold=1` would lie an hour before it)."""
    return next((at for at in instants if at >= floor_ms), floor_ms)


def _instants(local: datetime) -> tuple[int, int]:
    first, second = (round(local.replace(fold=fold).timestamp() * 1000) for fold in (0, 1))
    return first, second


def _local(window: Window, now_ms: int) -> datetime:
    return datetime.fromtimestamp(now_ms / 1000, UTC).astimezone(_zone(window.zone))


@lru_cache(maxsize=1024)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)
