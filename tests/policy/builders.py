"""Facts written by hand: a hot number in Jerusalem at noon with one live session and one message to send."""

import tomllib
from datetime import datetime
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

import paceline.policy
from paceline.policy.dispatch import Head
from paceline.policy.facts import PhoneFacts, Rules, SessionFacts
from paceline.policy.trust import DAY_MS, Policy, parse

MINUTE = 60_000
HOUR = 3_600_000
ZONE = "Asia/Jerusalem"
PHONE = "972541234567"
LONDONER = "447911123456"

ZONES = [
    "UTC",
    "Europe/London",
    "America/New_York",
    "Asia/Jerusalem",
    "Asia/Kolkata",  # half an hour
    "Asia/Kathmandu",  # three quarters
    "Australia/Lord_Howe",  # daylight saving of half an hour
    "Africa/Cairo",  # spring skips midnight, autumn repeats 23:00
    "Atlantic/Azores",  # spring skips midnight, autumn repeats it
    "America/Havana",
    "America/Santiago",
    "Pacific/Auckland",
    "Pacific/Honolulu",
]


def ms(text: str, zone: str = "UTC", fold: int = 0) -> int:
    """An instant, written as a local time."""
    return round(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp() * 1000)


def _clock_changes(zone: str) -> list[int]:
    """The instants of 2026 at which the zone changes its clocks."""
    start, info = ms("2026-01-01"), ZoneInfo(zone)
    offsets = [datetime.fromtimestamp(start / 1000 + i * 1800, info).utcoffset() for i in range(366 * 48)]
    return [start + i * 1_800_000 for i in range(1, len(offsets)) if offsets[i] != offsets[i - 1]]


CLOCK_CHANGES = {zone: _clock_changes(zone) for zone in ZONES}


@cache
def moments(zone: str) -> st.SearchStrategy[int]:
    """Any time of a year, most of them near a change of that zone's clocks or of another's."""
    everywhere = sorted({at for changes in CLOCK_CHANGES.values() for at in changes})
    here = CLOCK_CHANGES[zone] or everywhere
    return st.one_of(
        st.integers(ms("2026-01-01"), ms("2027-01-01")),
        st.builds(int.__add__, st.sampled_from(here), st.integers(-26 * 60, 26 * 60).map(lambda off: off * MINUTE)),
        st.builds(int.__add__, st.sampled_from(here), st.integers(-3 * HOUR, 3 * HOUR)),
        st.builds(int.__add__, st.sampled_from(everywhere), st.integers(-26 * HOUR, 26 * HOUR)),
    )


def preset(name: str) -> Policy:
    path = Path(paceline.policy.__file__).parent / "presets" / f"{name}.toml"
    return parse(tomllib.loads(path.read_text()))


DEFAULT = preset("default")
RULES = Rules(policy=DEFAULT)
NOON = ms("2026-03-10T12:00", ZONE)
OLD = NOON - 30 * DAY_MS


def live(name: str = "s1", now_ms: int = NOON, *, paused: bool = False) -> SessionFacts:
    return SessionFacts(name, "CONNECTED", now_ms, paused)


def head(task: str = "J:0", **changes) -> Head:
    base = {"entry": f"<{task}>", "task": task, "to": PHONE, "state": "r", "expires_at": NOON + 30 * DAY_MS}
    return Head(**{**base, **changes})


def facts(**changes) -> PhoneFacts:
    base = {
        "phone": PHONE,
        "version": 1,
        "created_at": OLD,
        "timezone": ZONE,
        "sessions": (live(),),
        "heads": (head(),),
    }
    return PhoneFacts(**{**base, **changes})
