"""Due phones, read with plain commands: these cost Redis a fraction of what a script does that reads the same.

Only of phones that are as nearly all are: one queue with work, and a first task that was never claimed, is not held and
may go as far as its person is concerned. Any other is left to `look_due.lua`, which reads everything in one step.

What is read here may be of different moments. The pace comes first: whatever makes a look void changes it, and
`hand_off` refuses what was decided by another. The task itself it looks at anew.
Neighbours: `rows` says what stands where, `pacers` takes the phones and applies what was decided.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from paceline.domain.states import Byte, JobState
from paceline.policy.facts import Head, PhoneFacts
from paceline.store import keys
from paceline.store.caller import Caller
from paceline.store.client import Command, RedisError
from paceline.store.rows import Entry, Known, Marks, Pace, known_of, phone_facts, sessions_of

Taken = tuple[str, int]
"""A phone that was taken, and when it was due."""
_ROUTED = ord(Byte.ROUTED)
_DAMAGED = (ValueError, TypeError, msgspec.MsgspecError)
"""What stands there of one phone is not as we write it. That is for the script to find, and no reason to stop the
others, who were taken with it."""
_NO_PACE = Pace().line


class _Seen(msgspec.Struct):
    """What stands about a phone, and about the task at the head of its queue."""

    phone: str
    due_at: int
    known: Known
    line: str
    pace: Pace
    wire: str | None
    marks: Marks
    text: str
    entry: Entry
    job: str
    index: str
    more: bool


async def plain_looks(
    caller: Caller, taken: Sequence[Taken], flags: Sequence[str | None], *, now_ms: int, leased_until: int
) -> list[PhoneFacts]:
    """The facts of those that are plain; none where anything stands in Redis that is not what it should be."""
    try:
        return await _looks(caller, taken, flags, now_ms=now_ms, leased_until=leased_until)
    except RedisError:
        # A key of another type: the script finds out whose it is, and steps over it.
        return []


async def _looks(
    caller: Caller, taken: Sequence[Taken], flags: Sequence[str | None], *, now_ms: int, leased_until: int
) -> list[PhoneFacts]:
    phones = [phone for phone, _ in taken]
    paces, facts, wires, marks, *queues = await caller.read(
        ("HMGET", keys.pace(), *phones),
        ("HMGET", keys.phone_facts(), *phones),
        ("HMGET", keys.sends(), *phones),
        ("HMGET", keys.marks(), *phones),
        *[("LRANGE", keys.queue(phone), -2, -1) for phone in phones],
    )
    rows = zip(taken, paces, facts, wires, marks, queues, strict=True)
    seen = [one for row in rows if (one := _seen(row, now_ms)) is not None]
    if not seen:
        return []
    heard, held = await _around(caller, seen)
    found = [
        _facts(one, times, flags, leased_until)
        for one, times in zip(seen, heard, strict=True)
        if one.entry.task not in held
    ]
    return [facts for facts in found if facts is not None]


def _facts(
    one: _Seen, times: Sequence[str | None], flags: Sequence[str | None], leased_until: int
) -> PhoneFacts | None:
    try:
        return phone_facts(
            one.phone, known=one.known, line=one.line, pace=one.pace, wire=one.wire, failures=one.marks.failures,
            sessions=sessions_of(one.known, times), flags=flags, heads=(_head(one),), more=one.more, due_at=one.due_at,
            leased_until=leased_until,
        )  # fmt: skip
    except _DAMAGED:
        return None


def _seen(row: tuple[Taken, str | None, str | None, str | None, str | None, list[str]], now_ms: int) -> _Seen | None:
    """None if it is not plain, or something that stands there is not as we write it."""
    (phone, due_at), line, facts, wire, marks, queue = row
    if facts is None or marks is None or not queue:
        return None
    line, text = line or _NO_PACE, queue[-1]
    try:
        entry = Entry.of(text)
        job, _, index = entry.task.partition(":")
        seen = _Seen(
            phone, due_at, known_of(facts), line, Pace.of(line), wire, Marks.of(marks), text, entry, job, index,
            len(queue) > 1,
        )  # fmt: skip
        return seen if _is_plain(seen, now_ms) else None
    except _DAMAGED:
        return None


def _is_plain(seen: _Seen, now_ms: int) -> bool:
    marks = seen.marks
    return (
        bool(seen.known.sessions)
        and seen.known.restricted_until <= now_ms
        and not marks.urgent
        and not (marks.parked_at and int(marks.parked_at) <= now_ms)
        and not (marks.min_expiry and int(marks.min_expiry) <= now_ms)
        and seen.entry.expires_at > now_ms
        # The last look found none that may go, because of something only the policy knows: this one looks further.
        and seen.pace.wait_reason != "IN_TURN"
    )


async def _around(caller: Caller, seen: Sequence[_Seen]) -> tuple[list[list[str | None]], set[str]]:
    """Of each when its sessions were heard of; and the tasks that do not simply wait to be sent."""
    sessions = [session.id for one in seen for session in one.known.sessions]
    by_job: dict[str, list[_Seen]] = defaultdict(list)
    for one in seen:
        by_job[one.job].append(one)
    times, listed, *states = await caller.read(
        ("HMGET", keys.sessions_seen(), *sessions),
        ("ZMSCORE", keys.suppressions(), *[one.entry.to for one in seen]),
        *_of_jobs(by_job.items()),
    )
    at = iter(times)
    heard = [[next(at) for _ in one.known.sessions] for one in seen]
    held = {one.entry.task for one, is_listed in zip(seen, listed, strict=True) if is_listed is not None}
    for some, bytes_, state in zip(by_job.values(), states[::2], states[1::2], strict=True):
        held.update(
            one.entry.task
            for one, byte in zip(some, bytes_, strict=True)
            if byte != _ROUTED or state == JobState.PAUSED
        )
    return heard, held


def _of_jobs(jobs: Iterable[tuple[str, Sequence[_Seen]]]) -> Iterable[Command]:
    for job, some in jobs:
        yield bytes_of(job, [one.index for one in some])
        yield ("HGET", keys.job_run(job), "state")


def bytes_of(job: str, indexes: Iterable[str]) -> Command:
    """The states of some tasks of a job, a number each."""
    return "BITFIELD_RO", keys.job_states(job), *[word for index in indexes for word in ("GET", "u8", f"#{index}")]


def _head(seen: _Seen) -> Head:
    entry = seen.entry
    return Head(
        seen.text, entry.task, entry.to, Byte.ROUTED, entry.expires_at, entry.tz or None, priority=entry.priority,
        single=entry.single,
    )  # fmt: skip
