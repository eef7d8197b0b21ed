"""Proofs that messages went out: each a fact, whoever brings it and however late.

Nearly all are plain: the first word of a message, brought while its number is busy with it. What becomes of the number
is worked out here from what plain commands read, which cost Redis a fraction of what a script does that reads the same;
`prove_plain.lua` writes it if all of that still holds. Any other proof is settled by `prove_sent.lua`, which reads what
it needs, and so is one that changed between look and writing.
Neighbours: `rows` says what stands where, `outbox` has the other words about a task, `looks` does the same for a look.
"""

from collections import defaultdict
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from paceline.domain.states import Byte
from paceline.policy.trust import BURST_MAX
from paceline.store import keys
from paceline.store.caller import Answer, Caller
from paceline.store.client import Command, RedisError, refusal
from paceline.store.plain import has_index, in_order, pages, pairs
from paceline.store.rows import DIGITS, SEND, Entry, Pace
from paceline.store.scripts import ScriptConfig

TOGETHER = 128
"""Proofs in one call: nobody waits for them but a worker that has sent already, so many may share it."""
MINUTE_MS = 60_000
BOUND_MS = 3_600_000
"""Who was given this number within the last hour is bound to it already (`is_bound` in prove_sent.lua)."""
TOLD_MS, APART_MS = 30_000, 300
"""A session's last minute is told twice in each, not of all numbers in the same moment (`told_since` in
lib/50_outbox.lua)."""
_PLAIN_FIELDS = frozenset(("entry", "handed", "attempts", "token", "epoch", "claimedAt", "leaseUntil", "journalId"))
"""What a message has that was handed over, and maybe claimed. Anything more is the trace of something else."""
_HANDED, _CLAIMED = ord(Byte.HANDED_OFF), ord(Byte.CLAIMED)
_DAMAGED = (ValueError, TypeError, KeyError, msgspec.MsgspecError)


class Settled(Answer, frozen=True):
    state: str = ""
    was: str = ""
    """Of a proof: the state before it."""


_SETTLED = {ord(byte): Settled("OK", Byte.SENT, byte) for byte in (Byte.HANDED_OFF, Byte.CLAIMED)}


class Proof(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    task: str
    outcome: str
    now: int
    stats_day: str | None = None
    phone: str | None = None
    """The number it went through, if whoever brings the proof knows."""


class Proofs:
    def __init__(self, caller: Caller, config: ScriptConfig) -> None:
        self._caller = caller
        self._lead_ms = config.lead_ms
        self._has_ceilings = config.global_rpm > 0 or config.frequency_cap > 0
        """What went out is counted for the whole fleet, or for its person."""
        self._joined = caller.together(self.settle, most=TOGETHER)

    def prove(self, proof: Proof) -> Awaitable[Settled]:
        """With those of others, if there are any at the time."""
        return self._joined.ask(proof)

    async def settle(self, proofs: Sequence[Proof]) -> list[Settled | Exception]:
        answers: dict[int, Settled | Exception] = {}
        if not self._has_ceilings and (plain := await self._look(proofs)):
            answers = await self._settle_plain(plain)
        if left := [place for place in range(len(proofs)) if place not in answers]:
            found = await self._caller.answers("prove_sent", Settled, [proofs[place] for place in left])
            answers |= zip(left, found, strict=True)
        return [answers[place] for place in range(len(proofs))]

    async def _settle_plain(self, plain: Mapping[int, "_Seen"]) -> dict[int, Settled | Exception]:
        """Without those that changed since they were seen, and those of which something cannot be read."""
        now_ms = max(seen.proof.now for seen in plain.values())
        rows = in_order(_rows(plain, now_ms, self._lead_ms))
        if not rows:
            return {}
        left, failed = await self._caller.rows("prove_plain", now=now_ms, **_together(rows))
        answers: dict[int, Settled | Exception] = {row[2]: _SETTLED[plain[row[2]].byte] for row in rows}
        for place, problem in failed:
            answers[rows[place - 1][2]] = refusal(problem)
        for place in left:
            del answers[rows[place - 1][2]]
        return answers

    async def _look(self, proofs: Sequence[Proof]) -> dict[int, "_Seen"]:
        """Those that are plain, by their places; none where anything stands in Redis that is not what it should be."""
        first: dict[str, int] = {}
        for place, proof in enumerate(proofs):
            if proof.outcome == "sent" and proof.phone is not None and has_index(proof.task):
                first.setdefault(proof.task, place)
        try:
            return await self._seen({place: proofs[place] for place in first.values()}) if first else {}
        except RedisError:
            # A key of another type: the script finds out whose it is, and steps over it.
            return {}

    async def _seen(self, proofs: Mapping[int, Proof]) -> dict[int, "_Seen"]:
        """The pace comes first, since whatever voids a look changes it; then what only counts if that still holds."""
        phones = [str(proof.phone) for proof in proofs.values()]
        jobs: dict[str, list[tuple[int, str]]] = defaultdict(list)
        for place, proof in proofs.items():
            job, _, index = proof.task.partition(":")
            jobs[job].append((place, index))
        paces, wires, *rest = await self._caller.read(
            ("HMGET", keys.pace(), *phones),
            ("HMGET", keys.sends(), *phones),
            *[("HGETALL", keys.message(proof.task)) for proof in proofs.values()],
            *[_bytes_of(job, [index for _, index in some]) for job, some in jobs.items()],
        )
        places = [place for some in jobs.values() for place, _ in some]
        bytes_ = dict(zip(places, chain.from_iterable(rest[len(proofs) :]), strict=True))
        rows = zip(proofs.items(), paces, wires, rest, strict=False)
        return {
            place: seen
            for (place, proof), line, wire, about in rows
            if (seen := _seen_plain(proof, bytes_[place], line, wire or "", about)) is not None
        }


def _bytes_of(job: str, indexes: Iterable[str]) -> Command:
    """The states of some tasks of a job, a number each."""
    return "BITFIELD_RO", keys.job_states(job), *[word for index in indexes for word in ("GET", "u8", f"#{index}")]


class _Seen(NamedTuple):
    """A plain proof, and what stands about its number and its message."""

    proof: Proof
    byte: int
    pace: Pace
    wire: str
    entry: str
    session: str
    began: str
    """When it was on the wire at the earliest: it was claimed, and its slot had come."""


def _seen_plain(proof: Proof, byte: int, line: str | None, wire: str, about: Mapping[str, str]) -> _Seen | None:
    """None if it is not plain, or something that stands there is not as we write it."""
    try:
        if line is None or byte not in _SETTLED or len(wire) % SEND or not about.keys() <= _PLAIN_FIELDS:
            return None
        pace, entry = Pace.of(line), Entry.of(about["entry"])
        _, session, send_after, *_ = about["handed"].split(" ")
        # Times of thirteen digits are in order as texts, too.
        began = max(send_after, about["claimedAt"]) if byte == _CLAIMED else send_after
        is_bound = entry.at > proof.now - BOUND_MS
        is_its_own = pace.unsettled == proof.task and pace.sent_by in ("", session)
        if not (is_bound and is_its_own and proof.stats_day and len(began) == DIGITS):
            return None
        return _Seen(proof, byte, pace, wire, about["entry"], session, began)
    except _DAMAGED:
        return None


def _rows(plain: Mapping[int, _Seen], now_ms: int, lead_ms: int) -> Iterator[tuple[Any, ...]]:
    for place, seen in plain.items():
        # What stands there of one number is for the script to find, and no reason to fail the others.
        with suppress(*_DAMAGED):
            yield _row(place, seen, now_ms, lead_ms)


def _row(place: int, seen: _Seen, now_ms: int, lead_ms: int) -> tuple[Any, ...]:
    """What becomes of its number, behind its job, its index there and its place: the same as `free_phone` in
    lib/50_outbox.lua makes of it."""
    proof, pace, now = seen.proof, seen.pace, str(now_ms)
    begins, slot_ms = f'["{pace.version}",', now_ms + int(pace.gap_ms or 0)
    sends = with_send(seen.wire, min(seen.began, now), now_ms)
    is_untold = pace.last_sent < str(told_since(str(proof.phone), now_ms))
    if pace.more and slot_ms > now_ms:
        pace.wait_reason, pace.wait_until = "PACING", str(slot_ms)
    pace.version = str(int(pace.version) + 1)
    pace.unsettled, pace.holder, pace.slot, pace.last_sent, pace.sent_by = "", "", "", now, seen.session
    is_claimed = seen.byte == _CLAIMED
    where = (keys.processing(seen.session), proof.task) if is_claimed else (keys.outbox(seen.session), seen.entry)
    job, _, index = proof.task.partition(":")
    return (
        job, int(index), place, proof.phone, begins, proof.task, seen.byte, *where,
        pace.more != "" and str(max(now_ms, slot_ms - lead_ms)),
        keys.session_stats(seen.session, str(proof.stats_day), "sent"), pace.line, sends,
        (seen.session, proven_since(sends, now_ms - MINUTE_MS)) if is_untold else None,
    )  # fmt: skip


def _together(rows: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    """As prove_plain.lua reads them."""
    _, _, _, phones, begins, tasks, states, lists, items, due_at, stats, paces, sends, minutes = zip(*rows, strict=True)
    return {
        "phones": phones, "begins": begins, "tasks": tasks, "states": states, "lists": lists, "items": items,
        "dueAt": due_at, "first": min((int(at) for at in due_at if at), default=0), "stats": stats,
        "paces": pairs(phones, paces), "sends": pairs(phones, sends), "jobs": pages(rows, Byte.SENT),
        "statuses": [word for task in tasks for word in (keys.task_status(task), "SENT")],
        "minutes": [(place, *minute) for place, minute in enumerate(minutes, start=1) if minute],
    }  # fmt: skip


def told_since(phone: str, now_ms: int) -> int:
    return now_ms - (now_ms + int(phone[-2:]) * APART_MS) % TOLD_MS


def with_send(wire: str, began: str, now_ms: int) -> str:
    """The past sends of a number and one more that is proven, as in lib/30_phone.lua."""
    spare, past = len(wire) // SEND - BURST_MAX, 0
    since = f"{now_ms - MINUTE_MS:013d}"
    while past <= spare and wire[past * SEND + DIGITS : past * SEND + 2 * DIGITS] < since:
        past += 1
    return f"{wire[past * SEND :]}{began}{now_ms:013d}s"


def proven_since(wire: str, after_ms: int) -> int:
    """How many of these came after that and are proven; whether by one session is for the caller to know."""
    count, after = 0, f"{after_ms:013d}"
    for stop in range(len(wire), 0, -SEND):
        if wire[stop - 1 - DIGITS : stop - 1] <= after:
            break
        count += wire[stop - 1] == "s"
    return count
