"""What the routers of a dispatcher and the sends of a gateway share: one reading of the fleet, and what each of them
took since."""

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from lua.servers import LiveServer
from paceline.dispatcher.fleet import FLEET_AGE_MS, FleetWatch
from paceline.domain.errors import Unavailable
from paceline.domain.jobs import Job
from paceline.gateway import picture as picture_module
from paceline.gateway.picture import SLICE, Picture
from paceline.gateway.pressure import NoRoom, Pressure
from paceline.gateway.watcher import KEPT_FOR_MS, STALE, Watcher
from paceline.policy.facts import PhoneFacts, Rules, SessionFacts
from paceline.policy.routing import To
from paceline.policy.trust import parse
from paceline.policy.turns import Other
from paceline.settings import read_policy
from paceline.store import keys
from paceline.store.pacers import FleetPhone

from .platform import FRIEND, PHONE, Platform

NOON = 1_773_136_800_000
MINUTE = 60_000
HOUR = 60 * MINUTE
RULES = Rules(parse(read_policy("demo")))


class Readings:
    """A store whose fleet can be held back while it is read."""

    def __init__(self, phones: int) -> None:
        live = (SessionFacts("s", "CONNECTED", NOON + 3_600_000),)
        facts = [PhoneFacts(phone=f"97254{n:07d}", version=1, sessions=live) for n in range(phones)]
        self._found = [FleetPhone(fact, (0, 0, 0)) for fact in facts]
        self.count = 0
        self.is_away = False
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.pacers = SimpleNamespace(fleet=self._fleet)
        self.rounds = SimpleNamespace(unrouted=self._nothing, resting=self._nothing)

    async def _fleet(self, **_page: int) -> list[FleetPhone]:
        self.count += 1
        await self.go_on.wait()
        if self.is_away:
            raise Unavailable("the store is away")
        return self._found

    async def _nothing(self, *_: object) -> dict[str, Any]:
        return {}


def watch(store: Any) -> FleetWatch:
    return FleetWatch(store, RULES, route_ahead=2)


async def look(of: FleetWatch, priority: int = 1, *, now_ms: int = NOON, fresh: bool = False) -> Any:
    return await of.look(priority, "sticky", turn=0, now_ms=now_ms, fresh=fresh)


async def second_reading(store: Readings, of: FleetWatch) -> asyncio.Future[Any]:
    """After a first it has begun, and does not end before the store goes on."""
    await look(of)
    store.go_on.clear()
    reading = asyncio.ensure_future(look(of, now_ms=NOON + FLEET_AGE_MS))
    await asyncio.sleep(0)
    return reading


async def test_routers_that_look_together_read_the_fleet_once() -> None:
    store = Readings(3)
    shared = watch(store)
    first = await second_reading(store, shared)
    for _ in range(9):
        await look(shared, now_ms=NOON + FLEET_AGE_MS)
    assert store.count == 2
    store.go_on.set()
    await first
    assert store.count == 2


async def test_what_one_router_gives_a_number_the_others_count() -> None:
    """Two tasks fill a number here; a job of another priority must not fill it again."""
    shared = watch(Readings(1))
    fleet = await look(shared)
    urgent = await look(shared, priority=2)
    for _ in range(2):
        decision = fleet.route(None, now_ms=NOON)
        assert isinstance(decision, To)
        shared.note(fleet, decision.phone)
    assert not isinstance(urgent.route(None, now_ms=NOON), To)
    assert not isinstance((await look(shared, priority=3)).route(None, now_ms=NOON), To)


@pytest.mark.parametrize(("fresh", "readings"), [(False, 1), (True, 2)], ids=["as it is", "the newest word"])
async def test_a_large_fleet_is_read_less_often_unless_a_job_would_wait(fresh: bool, readings: int) -> None:
    store = Readings(4_000)
    shared = watch(store)
    await look(shared)
    await look(shared, now_ms=NOON + 3 * FLEET_AGE_MS, fresh=fresh)
    assert store.count == readings


async def test_a_reading_that_fails_is_made_again() -> None:
    store = Readings(3)
    shared = watch(store)
    cut = await second_reading(store, shared)
    cut.cancel()
    await asyncio.gather(cut, return_exceptions=True)
    store.go_on.set()
    await look(shared, now_ms=NOON + FLEET_AGE_MS)
    assert store.count == 3


async def test_sends_that_come_while_the_gateway_looks_use_the_picture_there_is() -> None:
    """A hundred at once would otherwise read the whole fleet a hundred times, and all wait for it."""
    store = Readings(3)
    watcher = Watcher(store, RULES)  # type: ignore[arg-type]
    old = await watcher.look(NOON)
    store.go_on.clear()
    first = asyncio.ensure_future(watcher.look(NOON + 1_000))
    await asyncio.sleep(0)
    assert [await watcher.look(NOON + 1_000) for _ in range(99)] == [old] * 99
    store.go_on.set()
    assert await first is not old
    assert store.count == 2


async def test_a_stale_picture_is_not_believed() -> None:
    """After a quiet night the second send of the morning used yesterday's while the first looked."""
    store = Readings(3)
    watcher = Watcher(store, RULES)  # type: ignore[arg-type]
    old = await watcher.look(NOON)
    store.go_on.clear()
    looks = [asyncio.ensure_future(watcher.look(NOON + STALE * 1_000)) for _ in range(9)]
    await asyncio.sleep(0)
    store.go_on.set()
    new = await asyncio.gather(*looks)
    assert old not in new
    assert store.count == 2


async def test_after_a_step_back_of_the_clock_the_fleet_is_looked_at_again() -> None:
    """The picture was believed until the clock had come back to where it was taken."""
    store = Readings(3)
    watcher = Watcher(store, RULES)  # type: ignore[arg-type]
    await watcher.look(NOON)
    await watcher.look(NOON - 3_600_000)
    await watcher.step(NOON - 2 * 3_600_000)
    assert store.count == 3


async def test_a_crew_for_now_and_one_for_later_are_both_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that asks for the backlog every few seconds counted a large fleet twice each time."""
    counted = []
    real = picture_module.crew_of
    monkeypatch.setattr(picture_module, "crew_of", lambda *some, **more: counted.append(1) or real(*some, **more))
    picture = Picture(Readings(3)._found, {"J": Other(5, next_ms=NOON + 3_600_000)}, RULES)
    ends = {picture.backlog(now_ms=NOON).finish_ms for _ in range(5)}
    assert len(ends) == 1
    assert len(counted) == 2


async def test_those_that_want_it_fresh_share_a_look_that_began_after_they_asked() -> None:
    store = Readings(3)
    watcher = Watcher(store, RULES)  # type: ignore[arg-type]
    store.go_on.clear()
    first = asyncio.ensure_future(watcher.look(NOON))
    await asyncio.sleep(0)
    others = [asyncio.ensure_future(watcher.look(NOON, fresh=True)) for _ in range(9)]
    await asyncio.sleep(0)
    store.go_on.set()
    before, after = await first, await asyncio.gather(*others)
    assert before not in after
    assert store.count == 2


async def test_while_the_store_is_away_nobody_queues_up_to_ask_it() -> None:
    store = Readings(3)
    watcher = Watcher(store, RULES)  # type: ignore[arg-type]
    store.is_away = True
    store.go_on.clear()
    looks = [asyncio.ensure_future(watcher.look(NOON)) for _ in range(9)]
    await asyncio.sleep(0)
    store.go_on.set()
    found = await asyncio.gather(*looks, return_exceptions=True)
    assert {type(one) for one in found} == {Unavailable}
    assert store.count == 1
    store.is_away = False
    assert (await watcher.look(NOON)).phones


async def test_a_task_beside_the_requests_keeps_the_picture_fresh() -> None:
    """So that none of them pays for it; and not when nobody asks."""
    store = Readings(3)
    watcher = Watcher(store, RULES)  # type: ignore[arg-type]
    await watcher.look(NOON)
    for second in range(1, 10):
        assert await watcher.step(NOON + second * 1_000) == NOON + (second + 1) * 1_000
        await watcher.look(NOON + second * 1_000 + 999)
    assert store.count == 10
    await watcher.step(NOON + 10_000 + KEPT_FOR_MS)
    assert store.count == 10
    await watcher.look(NOON + 10_000 + KEPT_FOR_MS)
    assert store.count == 11


async def test_sends_that_share_a_picture_spread_over_the_numbers() -> None:
    """Each choice counts for the next; otherwise all sends of a second would go to the same number."""
    picture = await Watcher(Readings(3), RULES).look(NOON)  # type: ignore[arg-type]
    chosen = [picture.fleet(priority=1, turn=n, now_ms=NOON).route(None, now_ms=NOON) for n in range(3)]
    assert len({decision.phone for decision in chosen if isinstance(decision, To)}) == 3


async def test_a_new_picture_is_made_ready_in_slices() -> None:
    """Judging a thousand numbers in one go would keep all requests waiting."""
    breaths = 0

    async def breathe() -> None:
        nonlocal breaths
        breaths += 1

    store = Readings(2 * SLICE + 1)
    watcher = Watcher(store, RULES, breathe=breathe)  # type: ignore[arg-type]
    (await watcher.look(NOON)).fleet(priority=2, turn=0, now_ms=NOON)
    assert breaths == 0
    picture = await watcher.look(NOON + 1_000)
    assert breaths == 3
    assert picture.fleet(priority=2, turn=0, now_ms=NOON + 1_000).loads.keys() == picture.phones.keys()


async def test_a_first_send_of_another_priority_may_come_while_a_picture_is_made_ready() -> None:
    store = Readings(2 * SLICE)
    watcher = Watcher(store, RULES, breathe=lambda: asyncio.sleep(0))  # type: ignore[arg-type]
    (await watcher.look(NOON)).fleet(priority=1, turn=0, now_ms=NOON)
    new = asyncio.ensure_future(watcher.look(NOON + 1_000))
    await asyncio.sleep(0)
    (await watcher.look(NOON + 1_000)).fleet(priority=3, turn=1, now_ms=NOON + 1_000)
    assert (await new).phones


async def test_numbers_share_a_forecast_only_with_those_of_the_same_figures() -> None:
    *alike, busy = Readings(3)._found
    busy = FleetPhone(busy.facts, (30, 0, 0))
    picture = Picture([*alike, busy], {}, RULES)
    first, second, later = (picture.single(phone, priority=1, now_ms=NOON) for phone in picture.phones)
    assert first is not None
    assert first == second
    assert later is not None
    assert later > first
    assert picture.single(busy.facts.phone, priority=3, now_ms=NOON) == first
    assert picture.single("nobody", priority=1, now_ms=NOON) is None


def test_a_ceiling_for_the_fleet_holds_for_single_sends_too() -> None:
    """One a minute for a hundred numbers: the last of three hundred was told ten seconds, as a job five hours."""
    rules = Rules(RULES.policy, global_rpm=1)
    picture = Picture(Readings(100)._found, {}, rules)
    told = [picture.single(phone, priority=1, now_ms=NOON) for _ in range(3) for phone in picture.phones]
    assert told[0] is not None
    assert told[0] < NOON + MINUTE
    assert told == sorted(told)  # type: ignore[type-var]
    job = Job(job_id="J", total=300, text="hello", accepted_at=NOON, accepted_by="k", validity_seconds=86_400)
    assert told[-1] == pytest.approx(Picture(Readings(100)._found, {}, rules).new_job(job).finish_ms, abs=2 * MINUTE)


def test_what_waits_for_others_counts_for_the_ceiling() -> None:
    """Sixty wait for one number; a message of another goes behind them, one for later in its time."""
    one, busy = Readings(2)._found
    picture = Picture([one, FleetPhone(busy.facts, (60, 0, 0))], {}, Rules(RULES.policy, global_rpm=1))
    phone, later = one.facts.phone, NOON + 3 * HOUR
    assert picture.single(phone, priority=1, now_ms=NOON) == pytest.approx(NOON + HOUR, abs=MINUTE)
    at_three = picture.single(phone, priority=1, now_ms=NOON, start_ms=later)
    assert at_three == pytest.approx(later, abs=MINUTE)
    soon = picture.single(phone, priority=1, now_ms=NOON, start_ms=NOON + MINUTE)
    assert soon == pytest.approx(NOON + HOUR, abs=2 * MINUTE)


def locked(phones: int, queued: tuple[int, int, int] = (0, 0, 0), parked: int = 0) -> Picture:
    """Numbers that may start no new chats for six hours."""
    facts = [
        msgspec.structs.replace(seen.facts, restriction="TIME_LOCKED", restricted_until=NOON + 6 * HOUR)
        for seen in Readings(phones)._found
    ]
    return Picture([FleetPhone(fact, queued, parked) for fact in facts], {}, RULES)


async def test_a_stranger_waits_for_the_end_of_the_lock() -> None:
    """They were promised seconds, where a job of one is told hours."""
    picture = locked(1)
    (phone,) = picture.phones
    stranger, friend = (picture.single(phone, priority=1, now_ms=NOON, is_known=known) for known in (False, True))
    job = Job(
        job_id="J", total=1, text="hello", accepted_at=NOON, accepted_by="k", phone=phone, validity_seconds=86_400
    )
    as_job = picture.job(job, 1, now_ms=NOON).finish_ms
    assert stranger is not None
    assert friend is not None
    assert as_job is not None
    assert friend < NOON + MINUTE
    assert NOON + 6 * HOUR <= stranger <= as_job


async def test_those_who_wait_for_the_lock_are_in_nobody_elses_way() -> None:
    """They are parked: a friend goes before them, and each of them behind those that came earlier."""
    picture = locked(1, parked=20)
    (phone,) = picture.phones
    strangers = [picture.single(phone, priority=1, now_ms=NOON, is_known=False) for _ in range(3)]
    assert strangers == sorted(set(strangers))
    assert strangers[0] > locked(1).single(phone, priority=1, now_ms=NOON, is_known=False)
    assert picture.single(phone, priority=1, now_ms=NOON, is_known=True) < NOON + MINUTE


async def test_a_stranger_written_to_after_the_lock_goes_then() -> None:
    picture = locked(1)
    (phone,) = picture.phones
    later = NOON + 7 * HOUR
    told = picture.single(phone, priority=1, now_ms=NOON, start_ms=later, is_known=False)
    assert told is not None
    assert later <= told < later + MINUTE


async def test_memory_is_looked_at_by_one_request_while_the_others_go_by_what_was_seen() -> None:
    """Else every second all requests of the moment ask for it, and wait."""
    looks, go_on = 0, asyncio.Event()

    async def memory_is_short() -> bool:
        nonlocal looks
        looks += 1
        await go_on.wait()
        return looks > 1

    pressure = Pressure(SimpleNamespace(guards=SimpleNamespace(memory_is_short=memory_is_short)))  # type: ignore[arg-type]
    go_on.set()
    await pressure.check(NOON)
    go_on.clear()
    first = asyncio.ensure_future(pressure.check(NOON + 1_000))
    await asyncio.sleep(0)
    for _ in range(9):
        await pressure.check(NOON + 1_000)
    assert looks == 2
    go_on.set()
    with pytest.raises(NoRoom):
        await first


async def test_a_named_number_that_no_picture_shows_is_no_fault_of_ours(
    platform: Platform, contract_redis: LiveServer
) -> None:
    await platform.connect()
    contract_redis.client.hset(keys.phone(PHONE), "createdAt", "no time")
    answer = await platform.gateway.post("/api/v1/send", json={"to": FRIEND, "message": "hi", "phone": PHONE})
    assert answer.status_code == 200, answer.text


async def test_one_job_that_cannot_be_read_stands_for_itself(platform: Platform, contract_redis: LiveServer) -> None:
    await platform.connect()
    jobs = [
        (await platform.gateway.post("/v1/jobs", json={"text": "hi", "contacts": [FRIEND]})).json()["jobId"]
        for _ in range(2)
    ]
    contract_redis.client.set(keys.job(jobs[0]), "{")
    assert list(await platform.store.rounds.unrouted()) == [jobs[1]]
