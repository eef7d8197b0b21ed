"""A glance at a job's contacts: which are good for certain, told by bulk operations rather than one by one.

Sifting a hundred thousand contacts takes half a second, and nearly all of them are good. What a glance leaves open goes
through `sifting`, so a plan counts like the job itself. Neighbours: `plan`; `domain.numbers` reads the numbers.
"""

from collections.abc import Sequence

import msgspec

from paceline.domain.numbers import plainly_canonical
from paceline.domain.text import TEXT_LIMIT, occurrences, variables
from paceline.gateway.schemas import BadRow, ContactIn
from paceline.policy.hours import is_zone


class Glance(msgspec.Struct, frozen=True):
    digits: list[str]
    """Of each contact; empty where it is in doubt."""
    doubtful: list[int]
    """The places of those."""
    timezones: dict[str, str]
    """Of people for whom one is named."""


def glance(contacts: Sequence[str | ContactIn], text: str) -> Glance:
    kinds = set(map(type, contacts))
    raws: Sequence[str] = contacts if kinds == {str} else [c if type(c) is str else c.to for c in contacts]  # type: ignore[assignment,union-attr]
    digits = plainly_canonical(raws)
    if kinds != {str} or variables(text):
        for index in _in_doubt(contacts, text):
            digits[index] = ""
    doubtful = [] if all(digits) else [index for index, to in enumerate(digits) if not to]
    return Glance(digits, doubtful, {} if kinds == {str} else _timezones(contacts, digits))


def _in_doubt(contacts: Sequence[str | ContactIn], text: str) -> list[int]:
    """For another reason than their number."""
    names = variables(text)
    room = (TEXT_LIMIT - len(text)) // max(1, occurrences(text))
    zones = {contact.timezone for contact in contacts if type(contact) is ContactIn}
    good_zones = {zone for zone in zones if zone is None or is_zone(zone)}
    return [
        index
        for index, contact in enumerate(contacts)
        if (names if type(contact) is str else _is_doubtful(contact, names, room, good_zones))  # type: ignore[arg-type]
    ]


def _is_doubtful(contact: ContactIn, names: frozenset[str], room: int, good_zones: set[str | None]) -> bool:
    if contact.timezone not in good_zones or type(contact) is BadRow:
        return True
    values = contact.vars
    return bool(names) and (not names <= values.keys() or max(map(len, values.values())) > room)


def _timezones(contacts: Sequence[str | ContactIn], digits: list[str]) -> dict[str, str]:
    """A person who stands there twice is taken the first time, with or without a timezone."""
    found = {
        to: None if type(contact) is str else contact.timezone  # type: ignore[union-attr]
        for to, contact in zip(reversed(digits), reversed(contacts), strict=True)
        if to
    }
    return {to: zone for to, zone in found.items() if zone is not None}
