"""What should run against what runs: each case of the table, and that any mess converges to one worker a session."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.policy.reconcile import (
    CRASH_LOOP,
    EXITED,
    VANISHED,
    Action,
    Adopt,
    Begin,
    Ended,
    Fail,
    FinishRemoval,
    Release,
    Remove,
    Rules,
    Seen,
    Stop,
    Wait,
    Wanted,
    decide,
    pause_ms,
)

NOW = 1_760_000_000_000
RULES = Rules()
LONG_AGO = NOW - 3_600_000


def row(**fields: Any) -> Wanted:
    """A session whose worker `i1` was begun an hour ago and got healthy."""
    known = {"instance": "i1", "begun_generation": 1, "started_at": LONG_AGO, "healthy_at": LONG_AGO, "holds": True}
    return Wanted(session_id="s", **{**known, **fields})


def new(**fields: Any) -> Wanted:
    return Wanted(session_id="s", **fields)


def worker(instance: str = "i1", generation: int = 1, state: Any = "running", **fields: Any) -> Seen:
    return Seen("s", instance, generation, state, fields.pop("handle", instance), **fields)


HEALTHY_END = Ended("s", "i1", 1, EXITED, 0, NOW + 1_000)

CASES: dict[str, tuple[Wanted | None, list[Seen], list[Action]]] = {
    "a new session is begun": (new(), [], [Begin("s", 1)]),
    "what runs as wanted is left alone": (row(), [worker()], []),
    "a worker nobody remembers is adopted": (new(), [worker()], [Adopt("s", 1, "i1")]),
    "one whose places were given back is not": (row(instance=""), [worker()], [Stop("s", "i1", "unwanted")]),
    "an older generation ends first": (row(generation=2), [worker()], [Stop("s", "i1", "old generation")]),
    "another instance ends first": (row(), [worker("i0")], [Stop("s", "i0", "unwanted")]),
    "a double is stopped": (row(), [worker(), worker("i0")], [Stop("s", "i0", "double")]),
    "of two with one id the older stays": (
        row(),
        [worker(handle="b", started_at_ms=2), worker(handle="a", started_at_ms=1)],
        [Stop("s", "b", "double")],
    ),
    "remains beside it are cleared away": (row(), [worker(), worker("i0", state="exited")], [Remove("s", "i0")]),
    "a worker without a row is an orphan": (None, [worker()], [Stop("s", "i1", "orphan")]),
    "so are its remains": (None, [worker(state="exited")], [Remove("s", "i1")]),
    "a dead one is written down before it is cleared away": (
        row(),
        [worker(state="exited", exit_code=1)],
        [HEALTHY_END, Remove("s", "i1")],
    ),
    "and then begun anew": (row(ended="i1"), [], [Begin("s", 1)]),
    "not before its pause is over": (row(ended="i1", not_before=NOW + 5), [], [Wait("s", NOW + 5)]),
    "at once where its pause is longer than any: the clock was set back": (
        row(ended="i1", not_before=NOW + 3_600_000),
        [],
        [Begin("s", 1)],
    ),
    "unless an operator asks": (
        row(ended="i1", not_before=NOW + 5, generation=2, restart_reason="OPERATOR"),
        [],
        [Begin("s", 2)],
    ),
    "removed by hand counts as an end": (row(), [], [Ended("s", "i1", None, VANISHED, 0, NOW + 1_000)]),
    "a start cut off half way is repeated": (row(started_at=NOW - 1), [], [Begin("s", 1, "i1")]),
    "created and not started": (row(started_at=NOW - 1), [worker(state="created")], [Begin("s", 1, "i1")]),
    "created for nothing": (
        row(),
        [worker(state="created")],
        [Ended("s", "i1", None, VANISHED, 0, NOW + 1_000), Remove("s", "i1")],
    ),
    "an end before it got healthy is counted": (
        row(healthy_at=0, starts=2),
        [worker(state="exited", exit_code=1)],
        [Ended("s", "i1", 1, EXITED, 3, NOW + 4_000), Remove("s", "i1")],
    ),
    "connected and dead a moment later is not healthy": (
        row(started_at=NOW - 9_000, healthy_at=NOW - 8_000),
        [worker(state="exited", exit_code=1)],
        [Ended("s", "i1", 1, EXITED, 1, NOW + 1_000), Remove("s", "i1")],
    ),
    "too many in a row": (
        row(healthy_at=0, starts=9),
        [worker(state="exited", exit_code=1)],
        [Fail("s", "i1", 1, CRASH_LOOP), Remove("s", "i1")],
    ),
    "failed: its places are given back": (row(ended="i1", connection="FAILED"), [], [Release("s", "i1", "FAILED")]),
    "failed: and it stays so": (row(ended="i1", connection="FAILED", holds=False), [], []),
    "failed until an operator restarts it": (
        row(ended="i1", connection="STARTING", generation=2, restart_reason="OPERATOR"),
        [],
        [Begin("s", 2)],
    ),
    "failed while it runs: it ends, as nothing is left to do": (
        row(connection="FAILED"),
        [worker()],
        [Stop("s", "i1", "failed")],
    ),
    "failed while it runs, with messages to answer for": (row(connection="FAILED", answers=True), [worker()], []),
    "failed, and an operator asks before its worker is gone": (
        row(connection="STARTING", generation=2, restart_reason="OPERATOR"),
        [worker()],
        [Stop("s", "i1", "old generation")],
    ),
    "banned while it runs: nothing": (
        row(connection="FAILED", authorisation="LOGGED_OUT", quarantined=True),
        [worker()],
        [],
    ),
    "banned and dead: not restarted": (
        row(connection="FAILED", authorisation="LOGGED_OUT", quarantined=True, starts=3),
        [worker(state="exited")],
        [Ended("s", "i1", None, EXITED, 3, 0), Remove("s", "i1")],
    ),
    "quarantined and dead": (row(quarantined=True, ended="i1"), [], [Release("s", "i1", "FAILED")]),
    "logged out": (row(authorisation="LOGGED_OUT", ended="i1"), [], [Release("s", "i1", "FAILED")]),
    "link blocked": (row(authorisation="LINK_BLOCKED", ended="i1"), [], [Release("s", "i1", "FAILED")]),
    "quarantined, and an operator asks": (
        row(quarantined=True, ended="i1", generation=2, restart_reason="OPERATOR"),
        [],
        [Begin("s", 2)],
    ),
    "quarantined, and the watchdog asks": (
        row(quarantined=True, ended="i1", generation=2, restart_reason="SILENT", holds=False),
        [],
        [],
    ),
    "restarted by an operator: no pause": (
        row(generation=2, restart_reason="OPERATOR", starts=4),
        [worker(state="exited", exit_code=0)],
        [Ended("s", "i1", 0, EXITED, 4, NOW), Remove("s", "i1")],
    ),
    "restarted for its silence: counted": (
        row(generation=2, restart_reason="SILENT", healthy_at=0, starts=1),
        [worker(state="exited", exit_code=0)],
        [Ended("s", "i1", 0, EXITED, 2, NOW + 2_000), Remove("s", "i1")],
    ),
    "515 is normal": (
        row(generation=2, restart_reason="DISCONNECTED_515", healthy_at=0),
        [worker(state="exited", exit_code=0)],
        [Ended("s", "i1", 0, EXITED, 0, NOW), Remove("s", "i1")],
    ),
    "stopped": (row(desired="stopped"), [worker()], [Stop("s", "i1", "unwanted")]),
    "stopped and gone": (row(desired="stopped"), [worker(state="exited")], [Remove("s", "i1")]),
    "stopped: its places": (row(desired="stopped"), [], [Release("s", "i1", "STOPPED")]),
    "stopped for good": (row(desired="stopped", holds=False), [], []),
    "removed: first its worker": (row(desired="stopped", removing=True), [worker()], [Stop("s", "i1", "unwanted")]),
    "removed: then its places": (row(desired="stopped", removing=True), [], [Release("s", "i1", "REMOVED")]),
    "removed: then the row": (row(desired="stopped", removing=True, holds=False), [], [FinishRemoval("s")]),
    "of somebody else: left alone": (new(runs_here=False), [], []),
    "of somebody else: even if it runs": (new(runs_here=False), [worker()], []),
    "of somebody else: the row goes": (new(runs_here=False, removing=True), [], [FinishRemoval("s")]),
}  # fmt: skip


@pytest.mark.parametrize(("wanted", "seen", "actions"), CASES.values(), ids=CASES.keys())
def test_the_table(wanted: Wanted | None, seen: list[Seen], actions: list[Action]) -> None:
    assert decide([wanted] if wanted else [], seen, rules=RULES, now_ms=NOW) == actions


@pytest.mark.parametrize(
    ("starts", "pause"), [(0, 1_000), (1, 1_000), (2, 2_000), (3, 4_000), (9, 256_000), (10, 300_000), (99, 300_000)]
)
def test_the_pause_doubles_up_to_five_minutes(starts: int, pause: int) -> None:
    assert pause_ms(starts, RULES) == pause


# A fleet in memory: rows as the scripts keep them, workers as a runner has them.


class Cut(Exception):
    """The orchestrator was killed."""


@dataclass
class Fleet:
    rows: dict[str, Wanted]
    workers: list[Seen]
    now: int = NOW
    ids: int = 0
    begun: list[str] = field(default_factory=list)
    is_sick: bool = False
    """Every worker dies before it gets healthy."""

    def look(self) -> list[Action]:
        return decide(self.rows.values(), self.workers, rules=RULES, now_ms=self.now)

    def change(self, session: str, **fields: Any) -> None:
        self.rows[session] = msgspec.structs.replace(self.rows[session], **fields)

    def carry_out(self, action: Action, *, cut: bool = False) -> None:  # noqa: PLR0912 - one case each
        """As provisioner, scripts and runner do together. `cut`: killed after the first of its steps."""
        known = self.rows.get(action.session_id)
        match action:
            case Begin(session_id=id_, generation=generation, instance=instance):
                instance = instance or self._new_id()
                if self._begin(id_, generation, instance, cut=cut):
                    self._start(id_, generation, instance)
            case Adopt(session_id=id_, generation=generation, instance=instance):
                self._begin(id_, generation, instance)
            case Stop(handle=handle):
                self.workers = [
                    msgspec.structs.replace(one, state="exited", exit_code=0)
                    if one.handle == handle and one.state == "running"
                    else one
                    for one in self.workers
                ]
            case Remove(handle=handle):
                self.workers = [one for one in self.workers if one.handle != handle or one.state == "running"]
            case Ended(session_id=id_, instance=instance, starts=starts, not_before_ms=not_before):
                if known and known.instance == instance != known.ended:
                    self.change(id_, ended=instance, starts=starts, not_before=not_before)
            case Fail(session_id=id_, instance=instance):
                if known and known.instance == instance != known.ended:
                    self.change(id_, ended=instance, connection="FAILED")
            case Release(session_id=id_, instance=instance):
                if known and (known.instance or "") == instance:
                    self.change(id_, holds=False, instance="")
            case FinishRemoval(session_id=id_):
                if known and known.removing:
                    del self.rows[id_]

    def _begin(self, id_: str, generation: int, instance: str, *, cut: bool = False) -> bool:
        known = self.rows.get(id_)
        wanted = known and known.desired == "running" and not known.removing and known.connection != "FAILED"
        if not known or not wanted or known.generation != generation:
            return False
        if known.instance != instance:
            self.change(id_, instance=instance, begun_generation=generation, started_at=self.now, holds=True)
        if cut:
            raise Cut
        return True

    def _start(self, id_: str, generation: int, instance: str) -> None:
        self.begun.append(id_)
        if any(one.session_id == id_ and one.state == "running" for one in self.workers):
            return
        self.workers = [one for one in self.workers if one.session_id != id_]
        self.workers.append(Seen(id_, instance, generation, "running", f"h{self._new_id()}", started_at_ms=self.now))
        if not self.is_sick:
            self.change(id_, healthy_at=self.now)

    def _new_id(self) -> str:
        self.ids += 1
        return f"n{self.ids}"

    def pass_time(self, ms: int) -> None:
        self.now += ms
        if self.is_sick:
            self.workers = [msgspec.structs.replace(one, state="exited", exit_code=1) for one in self.workers]

    def settle(self, looks: int = 60) -> None:
        for _ in range(looks):
            for action in self.look():
                self.carry_out(action)
            self.pass_time(20_000)


IDS = ("a", "b", "c")
INSTANCES = ("", "i1", "i2")
times = st.sampled_from([0, LONG_AGO, NOW - 5_000, NOW])
rows = st.builds(
    Wanted,
    session_id=st.just("?"),
    runs_here=st.sampled_from([True, True, True, False]),
    desired=st.sampled_from(["running", "running", "stopped"]),
    removing=st.sampled_from([False, False, False, True]),
    connection=st.sampled_from(["STARTING", "CONNECTED", "RECONNECTING", "FAILED"]),
    authorisation=st.sampled_from(["UNLINKED", "LINKED", "LINKED", "LOGGED_OUT"]),
    quarantined=st.sampled_from([False, False, True]),
    generation=st.integers(1, 3),
    restart_reason=st.sampled_from(["", "OPERATOR", "SILENT", "PROXY_BAD"]),
    instance=st.sampled_from([None, *INSTANCES]),
    begun_generation=st.integers(0, 3),
    ended=st.sampled_from(INSTANCES),
    started_at=times,
    healthy_at=times,
    starts=st.integers(0, 5),
    not_before=st.sampled_from([0, NOW + 1_000, NOW + 300_000]),
    holds=st.booleans(),
    answers=st.booleans(),
)
workers = st.builds(
    Seen,
    session_id=st.sampled_from([*IDS, "orphan"]),
    instance=st.sampled_from(["i0", "i1", "i2"]),
    generation=st.integers(1, 3),
    state=st.sampled_from(["created", "running", "running", "exited"]),
    handle=st.just("?"),
)


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    found = {id_: msgspec.structs.replace(draw(rows), session_id=id_) for id_ in IDS}
    seen = draw(st.lists(workers, max_size=6))
    return Fleet(found, [msgspec.structs.replace(one, handle=f"h{number}") for number, one in enumerate(seen)])


@settings(max_examples=300, deadline=None)
@given(fleets(), st.data())
def test_any_mess_converges_to_one_worker_of_the_wanted_generation_each(fleet: Fleet, data: st.DataObject) -> None:
    """Whatever runs and whatever is remembered: killed at any step, its decisions repeated late, workers that die or
    are taken away by hand, operators who press meanwhile; left in peace, each wanted session has its one worker."""
    stale: list[Action] = []
    for _ in range(data.draw(st.integers(0, 5))):
        _disturb(fleet, data)
        actions = fleet.look()
        begins = [action.session_id for action in actions if isinstance(action, Begin)]
        assert len(begins) == len(set(begins)), "two starts for one session in one decision"
        running = {one.session_id for one in fleet.workers if one.state == "running"}
        assert not running & set(begins), "a start beside a running worker"
        kept = data.draw(st.integers(0, len(actions)))
        try:
            for action in actions[:kept]:
                fleet.carry_out(action, cut=data.draw(st.booleans()))
            for action in data.draw(st.permutations(stale)) if stale else ():
                fleet.carry_out(action)
        except Cut:
            pass
        stale = actions
        fleet.pass_time(data.draw(st.sampled_from([0, 2_000, 15_000])))
    fleet.settle()
    _judge(fleet)


def _disturb(fleet: Fleet, data: st.DataObject) -> None:
    what = data.draw(st.sampled_from(["nothing", "crash", "by hand", "restart", "stop", "remove"]))
    if what == "crash":
        fleet.workers = [
            msgspec.structs.replace(one, state="exited") if data.draw(st.booleans()) else one for one in fleet.workers
        ]
    elif what == "by hand":
        fleet.workers = [one for one in fleet.workers if data.draw(st.booleans())]
    id_ = data.draw(st.sampled_from(IDS))
    if id_ not in fleet.rows or fleet.rows[id_].removing:
        return
    if what == "restart":
        fleet.change(
            id_, generation=fleet.rows[id_].generation + 1, restart_reason="OPERATOR", connection="STARTING",
            authorisation="UNLINKED", desired="running", starts=0, not_before=0,
        )  # fmt: skip
    elif what == "stop":
        fleet.change(id_, desired="stopped")
    elif what == "remove":
        fleet.change(id_, removing=True)


def _judge(fleet: Fleet) -> None:
    for id_, known in fleet.rows.items():
        found = [one for one in fleet.workers if one.session_id == id_]
        if not known.runs_here:
            continue
        assert not known.removing
        over = known.connection == "FAILED" or known.authorisation == "LOGGED_OUT" or known.quarantined
        if known.desired == "running" and not over:
            assert [(one.state, one.instance, one.generation) for one in found] == [
                ("running", known.instance, known.generation)
            ]
        elif known.desired == "running":
            assert len(found) <= 1
            # One that nobody remembers may stay: for what is in its hands, or because a banned number is left in peace.
            is_kept = known.answers or known.quarantined
            stays = [one.instance for one in found if one.generation == known.generation and is_kept]
            assert [one.instance for one in found] in ([], [known.instance], stays)
        else:
            assert (found, known.holds) == ([], False)
    assert [one for one in fleet.workers if one.session_id not in fleet.rows] == []


def test_a_crash_loop_backs_off_and_ends_failed_until_an_operator_restarts_it() -> None:
    fleet = Fleet({"a": Wanted(session_id="a")}, [], is_sick=True)
    starts: list[int] = []
    while fleet.rows["a"].connection != "FAILED":
        for action in fleet.look():
            fleet.carry_out(action)
            starts += [fleet.now] if isinstance(action, Begin) else []
        fleet.pass_time(100)
        assert len(starts) <= RULES.starts_max
    gaps = [later - earlier for earlier, later in pairwise(starts)]
    assert len(starts) == RULES.starts_max
    assert all(gap >= pause_ms(number, RULES) for number, gap in enumerate(gaps, start=1))
    fleet.settle(3)
    assert (fleet.look(), fleet.rows["a"].holds) == ([], False)
    fleet.is_sick = False
    fleet.change("a", generation=2, restart_reason="OPERATOR", connection="STARTING", starts=0, not_before=0)
    fleet.settle(3)
    _judge(fleet)
    assert fleet.workers[0].generation == 2
