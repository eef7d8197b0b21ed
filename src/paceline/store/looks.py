"""Due phones, read with plain commands: these cost Redis a fraction of what a script does that reads the same.

Only of phones that are as nearly all are: one queue with work, and a first task that may go as far as its entry tells.
Any other is left to `look_due.lua`, which reads everything in one step.

What is read here may be of different moments. The pace comes first: whatever makes a look void changes it, and
`hand_off` refuses what was decided by another. Of the task nothing is read but its entry: whether it is held, listed,
canceled or may go at all, `hand_plain.lua` asks anyway. What it leaves is looked at in full.
Neighbours: `rows` says what stands where, `pacers` takes the phones and applies what was decided.
"""

from collections.abc import Iterable, Sequence
from itertools import islice

import msgspec

from paceline.domain.states import Byte
from paceline.policy.facts import Head, PhoneFacts
from paceline.store import keys
from paceline.store.caller import Caller
from paceline.store.client import Command, RedisError
from paceline.store.plain import has_index
from paceline.store.rows import (
    DIGITS,
    REMEMBERED,
    Entry,
    Known,
    Marks,
    Moments,
    Pace,
    known_of,
    phone_facts,
    sessions_of,
)

Taken = tuple[str, int]
"""A phone that was taken, and when it was due."""
_DAMAGED = (ValueError, TypeError, msgspec.MsgspecError)
"""What stands there of one phone is not as we write it. That is for the script to find, and no reason to stop the
others, who were taken with it."""
_NO_PACE = Pace().line
_NOBODY = ("",)
"""No session: a command has to ask for something."""


class PlainLooks:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._known: dict[str, Known] = {}
        """By phone, as it was at its last look: so its sessions are read beside the rest."""
        self._apart: set[str] = set()
        """Phones whose last look did not end with a hand-over: the next one has to see more."""

    def see_more(self, phones: Iterable[str]) -> None:
        if len(self._apart) > REMEMBERED:
            self._apart.clear()
        self._apart.update(phones)

    async def of(
        self, taken: Sequence[Taken], flags: Sequence[str | None], *, now_ms: int, leased_until: int
    ) -> list[PhoneFacts]:
        """The facts of those that are plain; none where anything stands in Redis that is not what it should be."""
        plain = [one for one in taken if one[0] not in self._apart]
        self._apart.difference_update([phone for phone, _ in taken])
        try:
            rows = await self._read(plain) if plain else []
        except RedisError:
            # A key of another type: the script finds out whose it is, and steps over it.
            return []
        found = [self._facts(row, flags, now_ms, leased_until) for row in rows]
        return [facts for facts in found if facts is not None]

    async def _read(self, taken: Sequence[Taken]) -> Iterable["_Row"]:
        phones = [phone for phone, _ in taken]
        expected = [self._known.get(phone) for phone in phones]
        paces, facts, wires, marks, times, *queues = await self._caller.read(
            ("HMGET", keys.pace(), *phones),
            ("HMGET", keys.phone_facts(), *phones),
            ("HMGET", keys.sends(), *phones),
            ("HMGET", keys.marks(), *phones),
            _when_heard(expected),
            *[("LRANGE", keys.queue(phone), "-2", "-1") for phone in phones],
        )
        known = [_known_of(text) for text in facts]
        heard = _shared_out(expected, times)
        news = {place: one for place, one in enumerate(known) if one is not None and one is not expected[place]}
        if news:
            # Which sessions they have, or what else is known of them, is new: their times are another question.
            (times,) = await self._caller.read(_when_heard(news.values()))
            for (place, one), when in zip(news.items(), _shared_out(news.values(), times), strict=True):
                heard[place] = when
                self._remember(phones[place], one)
        return zip(taken, paces, known, wires, marks, queues, heard, strict=True)

    @staticmethod
    def _facts(row: "_Row", flags: Sequence[str | None], now_ms: int, leased_until: int) -> PhoneFacts | None:
        """None if it is not plain, or something that stands there is not as we write it."""
        (phone, due_at), line, known, wire, marks_text, queue, heard = row
        if known is None or marks_text is None or not queue:
            return None
        line, head = line or _NO_PACE, queue[-1]
        try:
            pace, marks, entry = Pace.of(line), Marks.of(marks_text), Entry.of(head)
            if not _is_plain(known, pace, marks, entry, now_ms):
                return None
            return phone_facts(
                phone, known=known, line=line, pace=pace, starts=Moments(wire or "", 0),
                sends=Moments(wire or "", DIGITS), failures=marks.failures, sessions=sessions_of(known, heard),
                flags=flags, heads=(_head(head, entry),), more=len(queue) > 1, due_at=due_at, leased_until=leased_until,
            )  # fmt: skip
        except _DAMAGED:
            return None

    def _remember(self, phone: str, known: Known) -> None:
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        self._known[phone] = known


_Row = tuple[Taken, str | None, Known | None, str | None, str | None, list[str], Sequence[str | None]]
"""Of one phone: its pace, what seldom changes, its past sends, the marks of its queues, the two entries at the head of
its queue, and when its sessions were heard of."""


def _known_of(text: str | None) -> Known | None:
    try:
        return None if text is None else known_of(text)
    except _DAMAGED:
        return None


def _when_heard(phones: Iterable[Known | None]) -> Command:
    sessions = [session.id for one in phones if one is not None for session in one.sessions]
    return "HMGET", keys.sessions_seen(), *(sessions or _NOBODY)


def _shared_out(phones: Iterable[Known | None], times: Iterable[str | None]) -> list[Sequence[str | None]]:
    """To each the times of its sessions."""
    at = iter(times)
    return [() if one is None else tuple(islice(at, len(one.sessions))) for one in phones]


def _is_plain(known: Known, pace: Pace, marks: Marks, entry: Entry, now_ms: int) -> bool:
    return (
        bool(known.sessions)
        and known.restricted_until <= now_ms
        and not marks.urgent
        and not (marks.parked_at and int(marks.parked_at) <= now_ms)
        and not (marks.min_expiry and int(marks.min_expiry) <= now_ms)
        and entry.expires_at > now_ms
        and has_index(entry.task)
        # The last look found none that may go, because of something only the policy knows: this one looks further.
        and pace.wait_reason != "IN_TURN"
    )


def _head(text: str, entry: Entry) -> Head:
    return Head(
        text, entry.task, entry.to, Byte.ROUTED, entry.expires_at, entry.tz or None, priority=entry.priority,
        single=entry.single, is_seen=False,
    )  # fmt: skip
