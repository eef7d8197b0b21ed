"""What should run against what runs: which workers to begin, stop, clear away or leave alone.

One pure function over the rows of all sessions and all that the runner sees. It is asked again and again, after every
change and every crash, so each action may be repeated, and the next look goes on wherever the last one was cut off. It
never begins a worker while another of the same session runs. Neighbours: `orchestrator.provisioner` gathers and
applies, `orchestrator.runners` see and act.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Literal

import msgspec

State = Literal["created", "running", "exited"]

OPERATOR = "OPERATOR"
CRASH_LOOP = "CRASH_LOOP"
VANISHED = "VANISHED"
EXITED = "EXITED"

HEALS = ("SILENT", "STUCK", "DEAF", "CRASHED", "DISCONNECTED_")
"""Restarts for these reasons are the fleet's own tries to heal a session: they count like crashes."""
NORMAL = frozenset({"DISCONNECTED_515"})
"""The platform asks for it right after pairing."""


class Rules(msgspec.Struct, frozen=True):
    first_pause_ms: int = 1_000
    longest_pause_ms: int = 300_000
    starts_max: int = 10
    """So many starts in a row that did not get healthy, and the session is given up until an operator restarts it. With
    the pauses between them that takes a quarter of an hour."""
    healthy_ms: int = 60_000
    """A worker that was connected (or showed its code) and lived this long was healthy: what ends it later is news."""
    steady_ms: int = 1_800_000
    """The same for a worker that had to be healed. One that goes deaf a few minutes after each start was connected
    every time; starting it for ever would not help."""
    start_grace_ms: int = 10_000
    """A begun worker that nobody sees may still be on its way up; until then the same start is repeated."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """One session's row, as far as its worker is concerned."""

    session_id: str
    runs_here: bool = True
    """False: somebody else starts its worker, or nobody here could."""
    desired: str = "running"
    removing: bool = False
    connection: str = "STARTING"
    authorisation: str = "UNLINKED"
    quarantined: bool = False
    generation: int = 1
    restart_reason: str = ""
    instance: str | None = None
    """The worker that was begun last; empty: its places were given back, so none is wanted of before; None: nobody
    remembers."""
    begun_generation: int = 0
    ended: str = ""
    """The instance whose end was written down last."""
    started_at: int = 0
    healthy_at: int = 0
    """When a worker last was connected or showed its code."""
    starts: int = 0
    not_before: int = 0
    holds: bool = False
    """It has a place on its phone, and perhaps a proxy, to give back."""
    answers: bool = False
    """Messages are in its worker's hands: nobody else can tell what became of them."""


class Seen(msgspec.Struct, frozen=True):
    """One worker that the runner knows of."""

    session_id: str
    instance: str
    generation: int
    state: State
    handle: str
    exit_code: int | None = None
    started_at_ms: int = 0


class Begin(msgspec.Struct, frozen=True, tag=True):
    session_id: str
    generation: int
    instance: str = ""
    """Empty: a new one. Else that start was begun before and is repeated."""


class Adopt(msgspec.Struct, frozen=True, tag=True):
    """A running worker of the right generation that nobody remembers becomes the wanted one."""

    session_id: str
    generation: int
    instance: str


EndReason = Literal["double", "orphan", "unwanted", "old generation", "failed"]


class Stop(msgspec.Struct, frozen=True, tag=True):
    session_id: str
    handle: str
    reason: EndReason


class Remove(msgspec.Struct, frozen=True, tag=True):
    """Clear away what is left of a worker that runs no more."""

    session_id: str
    handle: str


class Ended(msgspec.Struct, frozen=True, tag=True):
    session_id: str
    instance: str
    exit_code: int | None
    reason: str
    starts: int
    not_before_ms: int


class Fail(msgspec.Struct, frozen=True, tag=True):
    session_id: str
    instance: str
    exit_code: int | None
    reason: str


class Wait(msgspec.Struct, frozen=True, tag=True):
    session_id: str
    until_ms: int


class Release(msgspec.Struct, frozen=True, tag=True):
    session_id: str
    instance: str
    reason: Literal["STOPPED", "REMOVED", "FAILED"]


class FinishRemoval(msgspec.Struct, frozen=True, tag=True):
    session_id: str


Action = Begin | Adopt | Stop | Remove | Ended | Fail | Wait | Release | FinishRemoval


def decide(wanted: Iterable[Wanted], seen: Iterable[Seen], *, rules: Rules, now_ms: int) -> list[Action]:
    """`wanted` must be all sessions: a worker without a row is an orphan. `seen` must not be older than they are."""
    workers: dict[str, list[Seen]] = defaultdict(list)
    for one in seen:
        workers[one.session_id].append(one)
    actions: list[Action] = []
    for row in wanted:
        actions += _session(row, workers.pop(row.session_id, []), rules, now_ms)
    for orphans in workers.values():
        actions += [_end(one, "orphan") for one in orphans]
    return actions


def pause_ms(starts: int, rules: Rules) -> int:
    """Before the next start, after so many in a row that did not get healthy."""
    return min(rules.first_pause_ms << max(0, min(starts - 1, 30)), rules.longest_pause_ms)


def _session(row: Wanted, seen: list[Seen], rules: Rules, now_ms: int) -> list[Action]:
    if not row.runs_here:
        return [FinishRemoval(row.session_id)] if row.removing and not seen else []
    if row.removing or row.desired != "running":
        return _gone(row, seen)
    keeper = _keeper(row, [one for one in seen if one.state == "running"])
    others = [one for one in seen if one is not keeper]
    if keeper is not None and _is_spent(row):
        return [_end(one, "failed") for one in seen]
    if keeper is not None:
        # One that failed has no place for it; it may stay for what it holds.
        is_known = row.instance or row.connection == "FAILED"
        adopted: list[Action] = [] if is_known else [Adopt(row.session_id, row.generation, keeper.instance)]
        return [*adopted, *(_end(one, "double") for one in others)]
    if any(one.state == "running" for one in others):
        # Whoever takes its place comes when it is gone.
        return [_end(one, _why(row, one)) for one in others if one.state == "running"]
    return _none_runs(row, others, rules, now_ms)


def _gone(row: Wanted, seen: list[Seen]) -> list[Action]:
    """Nobody wants a worker of it: first it ends, then its places are given back, then perhaps the row goes."""
    if seen:
        return [_end(one, "unwanted") for one in seen]
    if row.holds:
        return [Release(row.session_id, row.instance or "", "REMOVED" if row.removing else "STOPPED")]
    return [FinishRemoval(row.session_id)] if row.removing else []


def _keeper(row: Wanted, running: list[Seen]) -> Seen | None:
    """The one that may go on. Of two with one id the older has the volume, so the younger cannot do anything."""
    right = [
        one
        for one in running
        if one.generation == row.generation
        and (one.instance == row.instance or (row.instance is None and not _is_over(row)))
    ]
    return min(right, key=lambda one: (one.started_at_ms, one.handle), default=None)


def _none_runs(row: Wanted, seen: list[Seen], rules: Rules, now_ms: int) -> list[Action]:
    ours = [one for one in seen if one.instance == row.instance]
    is_open = row.instance not in (None, "", row.ended)
    is_due = row.begun_generation == row.generation and not _is_over(row)
    cleared: list[Action] = [Remove(one.session_id, one.handle) for one in seen if one.state == "exited" or not is_due]
    if is_open:
        exited = [one for one in ours if one.state == "exited"]
        if exited:
            return [after_end(row, exited[0].exit_code, EXITED, rules, now_ms), *cleared]
        if is_due and now_ms < row.started_at + rules.start_grace_ms:
            # Cut off between the word and the deed, or not to be seen yet: the same start again does no harm.
            return [*cleared, Begin(row.session_id, row.generation, row.instance or "")]
        return [after_end(row, None, VANISHED, rules, now_ms), *(Remove(one.session_id, one.handle) for one in seen)]
    if seen:
        return [Remove(one.session_id, one.handle) for one in seen]
    if _is_over(row):
        return [Release(row.session_id, row.instance or "", "FAILED")] if row.holds else []
    # A pause that ends later than any could was written before the clock was set back.
    if now_ms < row.not_before <= now_ms + rules.longest_pause_ms and not _is_asked(row):
        return [Wait(row.session_id, row.not_before)]
    return [Begin(row.session_id, row.generation)]


def after_end(row: Wanted, exit_code: int | None, reason: str, rules: Rules, now_ms: int) -> Ended | Fail:
    """The wanted worker runs no more: when the next may start, or that none will."""

    def ended(starts: int, not_before_ms: int) -> Ended:
        return Ended(row.session_id, row.instance or "", exit_code, reason, starts, not_before_ms)

    if _is_over(row):
        return ended(row.starts, row.not_before)
    if row.begun_generation != row.generation and not _heals(row.restart_reason):
        # We ended it ourselves, to make room for another.
        return ended(row.starts, now_ms)
    is_healed = row.begun_generation != row.generation
    lived_ms = rules.steady_ms if is_healed else rules.healthy_ms
    is_healthy = row.healthy_at >= row.started_at > 0 and now_ms - row.started_at >= lived_ms
    starts = 0 if is_healthy else row.starts + 1
    if starts >= rules.starts_max:
        return Fail(row.session_id, row.instance or "", exit_code, CRASH_LOOP)
    return ended(starts, now_ms + pause_ms(starts, rules))


def _is_over(row: Wanted) -> bool:
    """Nobody but an operator starts it again: it failed, was logged out, banned, or replaced by another client."""
    ended_for_good = row.connection == "FAILED" or row.authorisation in ("LOGGED_OUT", "LINK_BLOCKED")
    return (ended_for_good or row.quarantined) and not _is_asked(row)


def _is_spent(row: Wanted) -> bool:
    """Its worker has nothing left to do: it failed, and has answered for what it held. A banned number's worker is left
    alone: the less happens around a ban, the better."""
    return row.connection == "FAILED" and not row.quarantined and not row.answers


def _is_asked(row: Wanted) -> bool:
    """An operator asked for this generation (the first by registering it), and it has not been begun yet."""
    return row.generation != row.begun_generation and row.restart_reason in ("", OPERATOR)


def _heals(reason: str) -> bool:
    return reason.startswith(HEALS) and reason not in NORMAL


def _why(row: Wanted, one: Seen) -> EndReason:
    return "old generation" if one.generation != row.generation else "unwanted"


def _end(one: Seen, reason: EndReason) -> Action:
    if one.state == "running":
        return Stop(one.session_id, one.handle, reason)
    return Remove(one.session_id, one.handle)
