"""Audience: in which zones the people of a job may be, counted by the beginning of their numbers.

A hundred thousand look-ups would take longer than the whole forecast; but a zone is told by a few digits, so people are
counted by their first digits, and only where those leave it open by more of them. Neighbours: `forecast` reads the
groups, `domain.numbers` knows the zones.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import compress
from operator import itemgetter

from phonenumbers.tzdata import TIMEZONE_DATA, TIMEZONE_LONGEST_PREFIX

from paceline.domain.jobs import Contact
from paceline.domain.numbers import beginnings, zones
from paceline.policy.hours import Window
from paceline.policy.trust import Policy
from paceline.policy.workday import Groups

GROUPS_KEPT = 12
"""Kinds of hours that are told apart; the smallest beyond count as the largest."""
ZONES_KEPT = 100
_SHORTEST = 3

Zones = dict[str, int]
"""How many people may be in which zones: "Europe/London", "America/Denver,America/Phoenix"; "" if nobody knows."""


def zones_of_contacts(contacts: Sequence[Contact]) -> Zones:
    """A contact's own timezone goes before what its number tells."""
    own = [contact.timezone for contact in contacts if contact.timezone is not None]
    return zones_of_people([contact.to for contact in contacts if contact.timezone is None], own)


def zones_of_people(numbers: Sequence[str], own: Iterable[str] = ()) -> Zones:
    """Of people who are known by their number alone, and of those whose timezone was named."""
    found = Counter(zones_of(numbers))
    found.update(own)
    # It is kept with the job, so it must stay small however many zones a list names.
    kept = dict(found.most_common(ZONES_KEPT))
    if rest := sum(found.values()) - sum(kept.values()):
        kept[""] = kept.get("", 0) + rest
    return kept


def zones_of(numbers: Sequence[str]) -> Zones:
    found: Counter[str] = Counter()
    rest, length = numbers, _SHORTEST
    while rest:
        open_, longest = _open(length), length >= TIMEZONE_LONGEST_PREFIX
        counted = beginnings(rest, length)
        for start, count in counted.items():
            if longest or start not in open_:
                found[_name(start)] += count
        more = not longest and not open_.isdisjoint(counted)
        if not more:
            break
        if not open_.issuperset(counted):
            rest = list(compress(rest, map(open_.__contains__, map(itemgetter(slice(length)), rest))))
        length += 1
    return dict(found)


def groups(zones_: Mapping[str, int], policy: Policy) -> tuple[Groups, tuple[float, ...]]:
    """The recipients' hours and the share of each, as the forecast wants them."""
    if policy.recipient_hours is None or not zones_:
        return ((),), (1.0,)
    counted: Counter[tuple[Window, ...]] = Counter()
    for names, count in zones_.items():
        windows = tuple(Window(name, *policy.recipient_hours) for name in names.split(",") if name)
        counted[windows] += count
    kept = counted.most_common(GROUPS_KEPT)
    total = sum(counted.values())
    merged = total - sum(count for _, count in kept)
    shares = [count / total for _, count in kept]
    shares[0] += merged / total
    return tuple(windows for windows, _ in kept), tuple(shares)


@lru_cache(maxsize=16)
def _open(length: int) -> frozenset[str]:
    """Beginnings of that length after which more digits may change the zone."""
    return frozenset(entry[:length] for entry in _entries() if len(entry) > length)


@lru_cache(maxsize=1)
def _entries() -> frozenset[str]:
    """Those of the table that say something else than the shorter entry before them."""
    return frozenset(
        entry for entry in TIMEZONE_DATA if TIMEZONE_DATA[entry] != TIMEZONE_DATA.get(_before(entry), ("",))
    )


def _before(entry: str) -> str:
    shorter = (entry[:length] for length in range(len(entry) - 1, 0, -1))
    return next((start for start in shorter if start in TIMEZONE_DATA), "")


@lru_cache(maxsize=65_536)
def _name(start: str) -> str:
    """The zones of everybody whose number begins like this: of any number that does, since the rest tells nothing."""
    for length in range(15 - len(start), -1, -1):
        found = zones(start + "0" * length)
        if found:
            return ",".join(found)
    return ""
