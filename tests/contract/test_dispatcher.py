"""The dispatcher's HTTP: /health counts what it did, /queue/status counts what waits."""

from .platform import FRIEND, NOON, Platform

EMPTY = dict.fromkeys(["gateway", "priority", "retry", "sessionRetry", "scheduled", "parked", "deadLetter", "total"], 0)


async def test_health_counts_turns_routed_tasks_and_phones_with_work(platform: Platform) -> None:
    await platform.connect()
    await platform.post_job(contacts=[FRIEND, "972529876544"])
    await platform.engine.routers[0].step(NOON)
    body = (await platform.dispatcher.get("/health")).json()
    assert body == {"status": "ok", "running": True, "processed": 1, "routed": 2, "failed": 0, "activePacers": 1}


async def test_a_job_that_cannot_be_read_counts_as_failed(platform: Platform) -> None:
    """Malformed jobs end visibly instead of stopping the round."""
    job = await platform.post_job()
    await platform.link.read(("SET", f"job:{job['jobId']}", "no json"))
    await platform.engine.routers[0].step(NOON)
    assert (await platform.dispatcher.get("/health")).json()["failed"] == 1


async def test_queue_status_knows_every_queue(platform: Platform) -> None:
    """One of each, and the total is their sum."""
    assert (await platform.dispatcher.get("/queue/status")).json() == EMPTY
    await platform.post_job()
    await platform.post_job(priority=2)
    body = (await platform.dispatcher.get("/queue/status")).json()
    assert body == EMPTY | {"gateway": 1, "priority": 1, "total": 2}
    await platform.dispatch()
    body = (await platform.dispatcher.get("/queue/status")).json()
    assert body == EMPTY | {"retry": 2, "total": 2}


async def test_scheduled_parked_retried_and_dead_are_counted(platform: Platform) -> None:
    await platform.connect()
    await platform.gateway.post("/api/v1/send", json={"to": FRIEND, "message": "x", "sendAt": NOON + 3_600_000})
    await platform.post_job(contacts=[{"to": "972529876544", "timezone": "America/Los_Angeles"}])
    await platform.dispatch()
    await platform.post_job(contacts=["972529876545"])
    await platform.dispatch()
    claim = await platform.claim()
    error = {"code": "NOT_ON_WHATSAPP", "message": "nobody there"}
    await platform.outbox("nack", {"raw": claim["raw"], "epoch": 1, "notSent": True, "error": error})
    body = (await platform.dispatcher.get("/queue/status")).json()
    assert body == EMPTY | {"scheduled": 1, "parked": 1, "deadLetter": 1, "total": 3}
