"""What the metrics read of the fleet: added up in Redis page by page, equal to what is there, and nothing changes."""

from typing import Any

import pytest

from paceline.domain.jobs import Job, encode_job
from paceline.store import measure
from paceline.store.client import RedisLink
from paceline.store.requests import RequestIds
from paceline.store.rows import Pace, sends_text
from paceline.store.store import Store

from .servers import LiveServer

NOW = 1_773_136_800_000


@pytest.fixture
async def store(server: LiveServer) -> Any:
    link = RedisLink(server.url)
    yield Store(link)
    await link.close()


def pace(redis: Any, phone: str, line: Pace, sends: int = 0) -> None:
    redis.hset("phones:pace", phone, line.line)
    redis.hset("phones:sends", phone, sends_text([(NOW, NOW)] * sends))


async def register(store: Store, count: int) -> None:
    for index in range(count):
        await store.sessions.register(
            f"s{index:03}", f"97254{index:07}", driver="simulated", created_at_ms=NOW, timezone="Asia/Jerusalem",
            tags=[], limit=4, now_ms=NOW,
        )  # fmt: skip


async def test_pages_add_up_to_the_fleet(server: LiveServer, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await register(store, 23)
    redis = server.client
    for index in range(23):
        redis.hset(f"session:s{index:03}", mapping={"connection": "CONNECTED" if index % 2 else "FAILED"})
        redis.rpush(f"queue:session:97254{index:07}", *["{}"] * (index + 1))
        pace(redis, f"97254{index:07}", Pace(sent_by=f"s{index:03}"), index + 1)
    redis.hset("pacer:972540000007", "failed:s007", f"{NOW - 60_000},{NOW}")
    redis.hset("pacer:972540000008", "failed:s008", f"{NOW - 59_999},{NOW}")
    found = []
    for page in (1, 5, 23, 100):
        monkeypatch.setattr(measure, "PAGE", page)
        found.append(vars(await store.measure.fleet(now_ms=NOW, worst=2)))
    fleet = found[0]
    assert all(other == fleet for other in found)
    assert fleet["connections"] == {"CONNECTED": 11, "FAILED": 12}
    assert fleet["queued"] == sum(range(24))
    assert [(one.session, one.sent, one.failed) for one in fleet["worst"]] == [("s008", 9, 2), ("s007", 8, 1)]
    assert (fleet["others_sent"], fleet["others_failed"]) == (sum(range(24)) - 17, 0)


async def test_a_fleet_without_numbers_is_all_nothing(store: Store) -> None:
    fleet = await store.measure.fleet(now_ms=NOW, worst=2)
    assert (fleet.queued, fleet.connections, fleet.worst, fleet.days) == (0, {}, [], [])


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({}, "NONE"),
        ({"quarantined": "1", "cooldownUntil": NOW + 1}, "QUARANTINED"),
        ({"cooldownUntil": NOW + 1, "restriction": "CAPPED", "restrictedUntil": NOW + 1}, "COOLDOWN"),
        ({"cooldownUntil": NOW, "restriction": "CAPPED", "restrictedUntil": NOW + 1}, "CAPPED"),
        ({"restriction": "TIME_LOCKED", "restrictedUntil": NOW + 1}, "TIME_LOCKED"),
        ({"restriction": "TIME_LOCKED", "restrictedUntil": NOW}, "NONE"),
    ],
)
async def test_a_number_is_counted_under_what_stops_it_most(
    server: LiveServer, store: Store, fields: dict[str, Any], kind: str
) -> None:
    await register(store, 1)
    if fields:
        server.client.hset("phone:972540000000", mapping=fields)
    assert (await store.measure.fleet(now_ms=NOW, worst=1)).restricted == {kind: 1}


async def test_what_numbers_wait_for(server: LiveServer, store: Store) -> None:
    await register(store, 5)
    redis = server.client
    for index in range(4):
        redis.rpush(f"queue:session:97254{index:07}", "{}")
    pace(redis, "972540000000", Pace(wait_reason="PACING"))
    pace(redis, "972540000001", Pace(unsettled="j:0"))
    redis.hset("phone:972540000002", "quarantined", "1")
    pace(redis, "972540000002", Pace(wait_reason="PACING"))
    pace(redis, "972540000003", Pace())
    redis.zadd("queue:parked:972540000004", {"{}": NOW})
    waiting = (await store.measure.fleet(now_ms=NOW, worst=1)).waiting
    assert waiting == {"PACING": 1, "UNSETTLED": 1, "QUARANTINED": 1, "IN_TURN": 1, "PARKED": 1}


async def test_a_worker_whose_memory_was_measured_long_ago_is_not_counted(server: LiveServer, store: Store) -> None:
    await register(store, 3)
    for index, (memory, at) in enumerate([(100, NOW), (70, NOW - measure.USAGE_MS), (900, NOW - measure.USAGE_MS - 1)]):
        server.client.hset(f"session:s{index:03}", mapping={"memoryBytes": memory, "usageAt": at})
    fleet = await store.measure.fleet(now_ms=NOW, worst=1)
    assert (fleet.workers, fleet.memory, fleet.memory_max) == (2, 170, 100)


async def test_the_backlog_is_how_long_everything_is(server: LiveServer, store: Store) -> None:
    redis = server.client
    redis.lpush("gateway:jobs", "a", "b")
    redis.zadd("dispatch:due", {"1": NOW - 5_000, "2": NOW})
    redis.zadd("outbox:deadlines", {"j:0": NOW + 7})
    redis.zadd("fleet:restricted", {"1": NOW - 3_599_000, "2": NOW - 3_601_000})
    redis.hset("fleet", "paused", "1")
    backlog = await store.measure.backlog(now_ms=NOW)
    assert backlog.lengths["gateway"] == 2
    assert backlog.lengths["outbox"] == 1
    assert (backlog.due_at, backlog.deadline_at) == (NOW - 5_000, NOW + 7)
    assert (backlog.is_paused, backlog.is_stopped, backlog.restricted_last_hour) == (True, False, 1)


async def test_reading_changes_nothing(server: LiveServer, store: Store) -> None:
    await register(store, 2)
    before = {key: server.client.dump(key) for key in server.client.scan_iter()}
    await store.measure.fleet(now_ms=NOW, worst=1)
    await store.measure.backlog(now_ms=NOW)
    await store.measure.memory()
    assert {key: server.client.dump(key) for key in server.client.scan_iter()} == before


async def test_request_ids_are_read_once_for_many_messages(
    server: LiveServer, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    common: dict[str, Any] = {"total": 2, "text": "", "accepted_at": NOW, "accepted_by": "", "validity_seconds": 60}
    old, new = Job(job_id="A" * 26, **common), Job(job_id="B" * 26, request_id="crm-1", **common)
    for job in (old, new):
        server.client.set(f"job:{job.job_id}", encode_job(job))
    requests = RequestIds(store.jobs)
    tasks = [new.task_id(0), old.task_id(0), new.task_id(1), "C" * 26 + ":0", "nonsense"]
    assert await requests.of(tasks) == ["crm-1", "", "crm-1", "", ""]
    monkeypatch.setattr(store.jobs, "request_ids", None)
    assert await requests.of([new.task_id(1)]) == ["crm-1"]
