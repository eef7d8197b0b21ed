"""A glance at a job's contacts: which are good for certain, told by bulk operations rather than one by one.

Sifting a hundred thousand contacts takes half a second, and nearly all of them are good. What a glance leaves open goes
through `sifting`, so a plan counts like the job itself. Neighbours: `plan`; `domain.numbers` reads the numbers.
"""

from collections.abc import Iterator, Sequence, Set
from operator import attrgetter, itemgetter
from typing import cast

import msgspec

from paceline.domain.numbers import plainly_canonical
from paceline.domain.text import TEXT_LIMIT, is_bare, is_blank, occurrences, variables
from paceline.gateway.schemas import BadRow, ContactIn
from paceline.policy.hours import is_zone

_ZONE_OF, _VARS_OF = attrgetter("timezone"), attrgetter("vars")


class Glance(msgspec.Struct, frozen=True):
    digits: list[str]
    """Of each contact; empty where it is in doubt."""
    doubtful: list[int]
    """The places of those."""
    timezones: dict[str, str]
    """Of people for whom one is named."""


def glance(contacts: Sequence[str | ContactIn], text: str) -> Glance:
    names, people = variables(text), people_among(contacts)
    if not names and not people:
        return _glance(plainly_canonical(cast(Sequence[str], contacts)))
    digits = plainly_canonical([contact if isinstance(contact, str) else contact.to for contact in contacts])
    zones, bare = set(map(_ZONE_OF, people)), names if is_bare(text) else frozenset[str]()
    if bare or not _are_good(contacts, people, zones, names, _room(text)):
        for index in _in_doubt(contacts, zones, names, bare, _room(text)):
            digits[index] = ""
    return _glance(digits, _timezones(contacts, digits) if zones - {None} else {})


def people_among(contacts: Sequence[str | ContactIn]) -> Sequence[ContactIn]:
    """Those that are more than a number. Most lists are of one kind, which is told faster than each contact's."""
    kinds = set(map(type, contacts))
    if str not in kinds:
        return cast(Sequence[ContactIn], contacts)
    return [] if kinds == {str} else [contact for contact in contacts if isinstance(contact, ContactIn)]


def _glance(digits: list[str], timezones: dict[str, str] | None = None) -> Glance:
    doubtful = [] if all(digits) else [index for index, to in enumerate(digits) if not to]
    return Glance(digits, doubtful, timezones or {})


def _room(text: str) -> int:
    """How long a variable's value may be, whatever the others are."""
    return (TEXT_LIMIT - len(text)) // max(1, occurrences(text))


def _are_good(
    contacts: Sequence[str | ContactIn], people: Sequence[ContactIn], zones: set[str | None], names: Set[str], room: int
) -> bool:
    """Whether nobody is in doubt but for their number. Nearly every list is so, and then it is told at once."""
    if (names and len(people) < len(contacts)) or not _known(zones) >= zones or BadRow in set(map(type, people)):
        return False
    values = list(map(_VARS_OF, people))
    try:
        return all(max(map(len, map(itemgetter(name), values))) <= room for name in names)
    except KeyError:
        return False


def _in_doubt(
    contacts: Sequence[str | ContactIn], zones: set[str | None], names: Set[str], bare: Set[str], room: int
) -> Iterator[int]:
    """For another reason than their number. `bare` are the variables that are all there is of the text."""
    known = _known(zones)
    for index, contact in enumerate(contacts):
        if names if isinstance(contact, str) else _is_doubtful(contact, names, bare, room, known):
            yield index


def _is_doubtful(contact: ContactIn, names: Set[str], bare: Set[str], room: int, known: set[str | None]) -> bool:
    if contact.timezone not in known or type(contact) is BadRow:
        return True
    if names and (not names <= contact.vars.keys() or max(map(len, contact.vars.values())) > room):
        return True
    return bool(bare) and all(is_blank(contact.vars[name]) for name in bare)


def _known(zones: set[str | None]) -> set[str | None]:
    return {zone for zone in zones if zone is None or is_zone(zone)}


def _timezones(contacts: Sequence[str | ContactIn], digits: list[str]) -> dict[str, str]:
    """A person who stands there twice is taken the first time, with or without a timezone."""
    found = {
        to: None if isinstance(contact, str) else contact.timezone
        for to, contact in zip(reversed(digits), reversed(contacts), strict=True)
        if to
    }
    return {to: zone for to, zone in found.items() if zone is not None}
