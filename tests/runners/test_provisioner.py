"""The provisioner over the real scripts and a fake runner: look after look, with the clock in the test's hand."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from lua.servers import LiveServer
from lua.stage import DirectLink
from paceline.kits import failpoint
from paceline.kits.errands import Work
from paceline.kits.secrets import derive
from paceline.orchestrator.hands import Hands, Terms
from paceline.orchestrator.provisioner import Provisioner
from paceline.orchestrator.provisioning import auth_key_of
from paceline.policy.reconcile import Begin, Rules
from paceline.settings import Settings, load
from paceline.store import keys
from paceline.store.store import Store

from .fake import FakeRunner

T0 = 1_760_000_000_000
PHONE = "447700900001"


class Killed(Exception):
    """As by kill -9: nothing after it happens."""


class Inline:
    """Errands that are done before the step goes on; a busy one is named by the test."""

    def __init__(self) -> None:
        self.busy: frozenset[str] = frozenset()

    async def run(self, name: str, work: Work) -> None:
        await work()

    async def settled(self) -> None:
        return


SERVER = "ws://127.0.0.1:9/?session={session}&phone={phone}"


class Fleet:
    """One Redis, one runner, and as many orchestrators as a test wants."""

    def __init__(self, server: LiveServer) -> None:
        self.redis = server.client
        self.store = Store(DirectLink(server.client))
        self.runner = FakeRunner()
        self.now = T0
        self.stood_still_ms = 0
        """For so long the clock was held after it had been set back."""
        self.ids = 0
        self.errands = Inline()
        self.main = self.orchestrator()

    def orchestrator(self, holder: str = "here:3000") -> Provisioner:
        terms = Terms(webhook_url="http://orchestrator:3000", rules=Rules(starts_max=3), whatsapp_url=SERVER)
        hands = Hands(
            self.store.fleet,
            self.runner,
            terms,
            secret_of=lambda session: f"secret of {session}",
            auth_key_of=lambda session: f"login of {session}",
            new_id=self.new_id,
            now_ms=lambda: self.now,
        )
        return Provisioner(
            self.store.fleet, self.runner, terms, hands, holder=holder, errands=self.errands, now_ms=lambda: self.now,
            monotonic=lambda: self.now + self.stood_still_ms,
        )  # fmt: skip

    def new_id(self) -> str:
        self.ids += 1
        return f"i{self.ids}"

    async def register(self, session: str = "s1", phone: str = PHONE, driver: str = "simulated") -> None:
        code = await self.store.sessions.register(
            session, phone, driver=driver, created_at_ms=T0, timezone=None, tags=[], limit=4, now_ms=self.now
        )
        assert code == "OK"

    async def look(self, *, after_ms: int = 0, times: int = 1) -> int:
        self.now += after_ms
        for _ in range(times):
            next_ms = await self.main.step(self.now)
        return next_ms

    async def wish(self, wish: Any, session: str = "s1", reason: str = "OPERATOR") -> None:
        answer = await self.store.fleet.wish(session, wish, reason=reason, by="test", now_ms=self.now, force=True)
        assert answer.code == "OK"

    async def hello(self, session: str = "s1") -> str:
        [instance] = [one.instance for one in self.runner.workers if one.session_id == session]
        return (await self.store.outbox.hello(session, instance, "j1", now_ms=self.now)).code

    async def connect(self, session: str = "s1") -> None:
        assert await self.hello(session) == "OK"
        await self.store.sessions.event(session, now_ms=self.now, at_ms=self.now, connection="CONNECTED")

    def row(self, session: str = "s1") -> dict[str, str]:
        found: dict[str, str] = self.redis.hgetall(keys.session(session))
        return found

    def running(self) -> list[tuple[str, str, int]]:
        return self.runner.running()


@pytest.fixture
def fleet(server: LiveServer) -> Fleet:
    return Fleet(server)


async def test_a_registered_session_gets_its_worker_and_its_worker_is_welcome(fleet: Fleet) -> None:
    await fleet.register()
    await fleet.look(times=3)
    [spec] = fleet.runner.started
    assert (spec.session_id, spec.phone, spec.instance, spec.generation) == ("s1", PHONE, "i1", 1)
    assert (spec.webhook_url, spec.webhook_secret) == ("http://orchestrator:3000", "secret of s1")
    assert await fleet.hello() == "OK"
    assert (await fleet.store.outbox.hello("s1", "somebody else", "j", now_ms=fleet.now)).code == "NOT_WANTED"


@pytest.mark.parametrize(
    ("driver", "told"),
    [("simulated", ("", "")), ("baileys", ("login of s2", "ws://127.0.0.1:9/?session=s2&phone=447700900002"))],
)
async def test_a_worker_that_keeps_a_login_gets_its_key_and_its_server_and_no_other_worker_does(
    fleet: Fleet, driver: str, told: tuple[str, str]
) -> None:
    fleet.runner.drivers = ("simulated", "baileys")
    await fleet.store.sessions.register(
        "s2", "447700900002", driver=driver, created_at_ms=T0, timezone=None, tags=[], limit=4, now_ms=fleet.now,
        direct=True,
    )  # fmt: skip
    await fleet.look(times=3)
    [spec] = fleet.runner.started
    assert (spec.auth_key, spec.whatsapp_url) == told


def test_the_key_of_a_login_is_no_secret_that_a_worker_shows_and_has_a_master_of_its_own() -> None:
    common = load(Settings, webhook_secret="w" * 16)
    own = load(Settings, webhook_secret="w" * 16, auth_secret="a" * 16)
    keys_of_s1 = {auth_key_of(common)("s1"), auth_key_of(own)("s1"), auth_key_of(own)("s2"), derive("w" * 16, "s1")}
    assert len(keys_of_s1) == 4
    assert {len(key) for key in keys_of_s1} == {64}


async def test_a_dead_worker_is_replaced_after_a_pause_that_starts_over_once_it_was_healthy(fleet: Fleet) -> None:
    await fleet.register()
    await fleet.look()
    await fleet.connect()
    fleet.now += 60_000
    fleet.runner.die("s1", 9)
    await fleet.look()
    row = fleet.row()
    assert (row["lastExit"], row["starts"], row["connection"]) == ("EXITED 9", "0", "STARTING")
    assert (fleet.running(), fleet.runner.workers) == ([], [])
    assert await fleet.look() == fleet.now + 1_000
    await fleet.look(after_ms=999)
    assert fleet.running() == []
    await fleet.look(after_ms=1)
    assert fleet.running() == [("s1", "i2", 1)]
    assert await fleet.hello() == "OK"


async def test_a_dead_worker_is_replaced_also_while_the_clock_stands_still(fleet: Fleet) -> None:
    """Redis' clock was set back by an hour: the pause of a second lasted until it had caught up."""
    await fleet.register()
    await fleet.look()
    fleet.runner.die("s1")
    await fleet.look(times=3)
    fleet.stood_still_ms += 999
    await fleet.look(times=2)
    assert fleet.running() == []
    fleet.stood_still_ms += 1
    await fleet.look(times=2)
    assert [instance for _, instance, _ in fleet.running()] == ["i2"]


async def test_a_crash_loop_ends_failed_with_its_places_given_back_until_an_operator_restarts_it(fleet: Fleet) -> None:
    await fleet.register()
    for _ in range(12):
        await fleet.look(after_ms=10_000)
        fleet.runner.die("s1")
    assert len(fleet.runner.started) == 3
    row = fleet.row()
    assert (row["connection"], row["failedReason"], row["wantedInstance"], row.get("holds")) == (
        "FAILED", "CRASH_LOOP", "", None
    )  # fmt: skip
    assert fleet.redis.hgetall(keys.phone_active()) == {}
    told = [text for text in fleet.redis.lrange(keys.incidents(), 0, -1) if "SESSION_FAILED" in text]
    assert len(told) == 1
    await fleet.wish("restart")
    await fleet.look()
    assert fleet.running() == [("s1", "i4", 2)]
    assert await fleet.hello() == "OK"


async def test_a_restart_waits_for_the_old_worker_to_be_gone_and_takes_its_places_over(fleet: Fleet) -> None:
    await fleet.register()
    await fleet.look()
    await fleet.connect()
    await fleet.wish("restart")
    await fleet.look()
    assert fleet.running() == []
    await fleet.look(times=2)
    assert (fleet.running(), fleet.redis.hgetall(keys.phone_active())) == ([("s1", "i2", 2)], {PHONE: "1"})


async def test_stop_start_and_remove(fleet: Fleet) -> None:
    await fleet.register()
    await fleet.look()
    await fleet.wish("stop")
    await fleet.look(times=3)
    assert (fleet.running(), fleet.redis.hgetall(keys.phone_active())) == ([], {})
    await fleet.wish("start")
    await fleet.look()
    assert fleet.running() == [("s1", "i2", 2)]
    await fleet.wish("remove")
    await fleet.look(times=4)
    assert (fleet.running(), fleet.row(), fleet.redis.hgetall(keys.phone_active())) == ([], {}, {})


async def test_a_banned_number_is_not_started_again(fleet: Fleet) -> None:
    await fleet.register()
    await fleet.look()
    await fleet.connect()
    changes = {"connection": "FAILED", "authorisation": "LOGGED_OUT", "quarantine": "BANNED_403"}
    await fleet.store.sessions.event("s1", now_ms=fleet.now, at_ms=fleet.now, **changes)
    await fleet.look()
    assert fleet.running() == [("s1", "i1", 1)]
    fleet.runner.die("s1")
    await fleet.look(times=4, after_ms=60_000)
    assert (fleet.running(), fleet.row()["connection"]) == ([], "FAILED")


async def test_a_banned_numbers_worker_that_died_is_begun_again_by_an_operators_start(fleet: Fleet) -> None:
    """Started by an operator, crashed before the number was restored: every further start changed nothing."""
    await fleet.register()
    await fleet.look()
    await fleet.connect()
    changes = {"connection": "FAILED", "authorisation": "LOGGED_OUT", "quarantine": "BANNED_403"}
    await fleet.store.sessions.event("s1", now_ms=fleet.now, at_ms=fleet.now, **changes)
    await fleet.wish("start")
    await fleet.look(times=3)
    assert fleet.running() == [("s1", "i2", 2)]
    fleet.runner.die("s1")
    await fleet.look(times=4, after_ms=60_000)
    assert fleet.running() == []
    await fleet.wish("start")
    await fleet.look(times=2)
    assert fleet.running() == [("s1", "i3", 3)]


async def test_a_running_worker_is_adopted_by_the_next_orchestrator(fleet: Fleet) -> None:
    await fleet.register()
    await fleet.look()
    with capture_logs() as logs:
        fleet.now += 60_000
        await fleet.orchestrator("there:3000").step(fleet.now)
    assert (len(fleet.runner.started), fleet.running()) == (1, [("s1", "i1", 1)])
    assert [line["adopted"] for line in logs if line["event"] == "provisioning"] == [1]


async def test_killed_in_the_middle_of_a_start_the_next_one_goes_on_with_it(fleet: Fleet) -> None:
    """Between the word in Redis and the deed: one worker, of the instance that was promised."""
    await fleet.register()

    def kill(name: str) -> None:
        raise Killed

    failpoint.set_hook(kill)
    try:
        with pytest.raises(Killed):
            await fleet.look()
    finally:
        failpoint.set_hook(None)
    assert (fleet.row()["wantedInstance"], fleet.running()) == ("i1", [])
    fleet.main = fleet.orchestrator()
    await fleet.look(after_ms=500)
    assert fleet.running() == [("s1", "i1", 1)]
    await fleet.look(after_ms=20_000)
    assert (fleet.running(), len(fleet.runner.started)) == ([("s1", "i1", 1)], 1)


async def test_two_orchestrators_with_the_same_facts_begin_one_worker(fleet: Fleet) -> None:
    """Without the lease: both decide to begin, one of them is refused by the script."""
    await fleet.register()
    [row] = await fleet.store.fleet.rows(["s1"])
    for orchestrator in (fleet.main, fleet.orchestrator("there:3000")):
        # What both decided on is the same row.
        await orchestrator._errand([Begin("s1", 1)], row)()
    assert (len(fleet.runner.started), fleet.running()) == (1, [("s1", "i1", 1)])
    assert fleet.row()["wantedInstance"] == "i1"


async def test_a_second_orchestrator_leaves_the_work_to_the_first_while_that_one_lives(fleet: Fleet) -> None:
    await fleet.register()
    second = fleet.orchestrator("there:3000")
    await fleet.look()
    await fleet.register("s2")
    await second.step(fleet.now)
    assert fleet.running() == [("s1", "i1", 1)]
    fleet.now += 6_001
    await second.step(fleet.now)
    assert [session for session, _, _ in fleet.running()] == ["s1", "s2"]


async def test_nothing_is_concluded_while_the_engine_is_away(fleet: Fleet) -> None:
    await fleet.register()
    await fleet.look()
    await fleet.connect()
    fleet.runner.is_away = True
    before = fleet.row()
    with capture_logs() as logs:
        await fleet.look(times=5, after_ms=60_000)
    assert fleet.row() == before
    assert [line["event"] for line in logs] == ["the runner is away; all sessions stay as they are until it is back"]
    fleet.runner.is_away = False
    await fleet.look()
    assert (len(fleet.runner.started), fleet.running()) == (1, [("s1", "i1", 1)])


async def test_what_cannot_be_started_counts_as_a_crash_and_says_why(fleet: Fleet) -> None:
    await fleet.register()
    fleet.runner.refusal = "no such image"
    await fleet.look()
    row = fleet.row()
    said = "START_REFUSED: no such image"
    assert (row["lastExit"], row["starts"], row["notBefore"]) == (said, "1", str(fleet.now + 1_000))
    for _ in range(2):
        await fleet.look(after_ms=5_000)
    row = fleet.row()
    assert (row["connection"], row["failedReason"], row["lastExit"]) == ("FAILED", said, said)


async def test_a_session_that_is_busy_is_left_out_and_the_others_are_not(fleet: Fleet) -> None:
    await fleet.register()
    await fleet.register("s2", "447700900002")
    fleet.errands.busy = frozenset({"s1"})
    await fleet.look()
    assert [session for session, _, _ in fleet.running()] == ["s2"]


async def test_drained_all_end_and_the_next_one_begins_them_at_once(fleet: Fleet) -> None:
    await fleet.register()
    await fleet.look()
    await fleet.main.rest(stop_workers=True)
    assert fleet.runner.workers == []
    await fleet.look()
    assert fleet.running() == []
    second = fleet.orchestrator("there:3000")
    await second.step(fleet.now)
    assert fleet.running() == [("s1", "i2", 1)]
    await fleet.orchestrator().rest(stop_workers=True)
    assert fleet.running() == [("s1", "i2", 1)], "they were somebody else's by then"
    await second.rest(stop_workers=False)
    assert fleet.running() == [("s1", "i2", 1)]
    await fleet.orchestrator().rest(stop_workers=True)
    assert fleet.running() == [], "the other one had let go"


async def test_a_session_of_somebody_else_is_left_alone_and_any_instance_is_welcome(fleet: Fleet) -> None:
    fleet.runner.drivers = ()
    await fleet.register()
    await fleet.look(times=2)
    assert fleet.runner.started == []
    assert (await fleet.store.outbox.hello("s1", "any", "j", now_ms=fleet.now)).code == "OK"


async def test_a_worker_without_a_row_is_ended(fleet: Fleet) -> None:
    await fleet.register()
    await fleet.look()
    fleet.redis.delete(keys.session("s1"))
    fleet.redis.srem(keys.sessions(), "s1")
    await fleet.look(times=2)
    assert fleet.runner.workers == []


async def test_more_sessions_than_a_page(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paceline.store.workers.PAGE", 2)
    for number in range(5):
        await fleet.register(f"s{number}", f"44770090000{number}")
    await fleet.look()
    assert len(fleet.running()) == 5


async def test_a_session_that_failed_keeps_neither_worker_nor_places(fleet: Fleet) -> None:
    """Replaced elsewhere (440): its worker ran on for ever, and its place on the proxy was nobody's."""
    await fleet.register()
    await fleet.look(times=2)
    await fleet.connect()
    await fleet.store.sessions.event(
        "s1", now_ms=fleet.now, at_ms=fleet.now, connection="FAILED", failed="REPLACED", alarm=True
    )
    await fleet.look(times=4)
    assert fleet.runner.workers == []
    known = fleet.row()
    assert (known["connection"], known["failedReason"], known.get("holds")) == ("FAILED", "REPLACED", None)
    assert fleet.redis.hgetall(keys.phone_active()) == {}
    await fleet.wish("restart")
    await fleet.look(times=2)
    assert fleet.running() == [("s1", "i2", 2)]


async def test_it_goes_when_it_has_answered_for_what_it_holds(fleet: Fleet) -> None:
    await fleet.register()
    await fleet.look(times=2)
    await fleet.connect()
    fleet.redis.rpush(keys.processing("s1"), "a task")
    await fleet.store.sessions.event("s1", now_ms=fleet.now, at_ms=fleet.now, connection="FAILED", failed="REPLACED")
    await fleet.look(times=3)
    assert fleet.running() == [("s1", "i1", 1)]
    fleet.redis.delete(keys.processing("s1"))
    await fleet.look(times=3)
    assert fleet.runner.workers == []


async def test_a_look_at_a_fleet_at_rest_reads_no_rows(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand rows cost 0.6 s at every look, and a look is every two seconds."""
    for number in range(5):
        await fleet.register(f"s{number}", f"44770090000{number}")
    await fleet.look(times=2)
    read: list[str] = []
    rows = fleet.store.fleet.rows

    async def counted(ids: Any) -> Any:
        read.extend(ids)
        return await rows(ids)

    monkeypatch.setattr(fleet.store.fleet, "rows", counted)
    await fleet.look(after_ms=2_000)
    assert read == []
    fleet.runner.die("s3")
    await fleet.look(after_ms=2_000)
    assert read == ["s3"]


async def test_while_no_proxy_has_room_nobody_who_waits_for_one_is_begun(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fleet.register()
    fleet.redis.hset(keys.session("s1"), "direct", 0)
    await fleet.look()
    assert fleet.row()["waitReason"] == "NO_PROXY"
    asked: list[str] = []
    begin = fleet.store.fleet.begin_start

    async def counted(session: str, **given: Any) -> Any:
        asked.append(session)
        return await begin(session, **given)

    monkeypatch.setattr(fleet.store.fleet, "begin_start", counted)
    await fleet.look(after_ms=2_000, times=3)
    assert asked == []
    await fleet.store.inventory.add_proxies(["http://u:p@proxy.example:8080"], limit=9, by="k", now_ms=fleet.now)
    await fleet.look(after_ms=2_000)
    assert (asked, [session for session, _, _ in fleet.running()]) == (["s1"], ["s1"])
