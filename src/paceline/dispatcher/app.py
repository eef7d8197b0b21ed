"""The dispatcher's HTTP: how it is doing, and how long the queues are."""

from litestar import get

from paceline.dispatcher.loops import Engine
from paceline.edge import Keys, service
from paceline.kits.web import Service
from paceline.store import keys as keyspace
from paceline.store.store import Store

_QUEUES = (
    ("gateway", "LLEN", keyspace.gateway_jobs()),
    ("priority", "LLEN", keyspace.priority_jobs()),
    ("retry", "ZCARD", keyspace.jobs_retry()),
    ("sessionRetry", "ZCARD", keyspace.task_retry()),
    ("scheduled", "ZCARD", keyspace.scheduled()),
    ("deadLetter", "LLEN", keyspace.dead_letters()),
)
_DUE = (("activePacers", "ZCARD", keyspace.due()),)


def create_app(engine: Engine, store: Store, keys: Keys) -> Service:
    @get("/health", summary="Is it working?", tags=["Service"], security=[])
    async def health() -> dict[str, str | int | bool]:
        """Open to everybody. 503 while the store does not answer."""
        return {
            "status": "ok",
            "running": True,
            "processed": sum(router.turns for router in engine.routers),
            "routed": sum(router.routed for router in engine.routers),
            "failed": sum(router.failed for router in engine.routers),
            **await store.pacers.queue_status(_DUE),
        }

    @get(
        "/queue/status",
        summary="How long the queues are",
        tags=["Queues"],
        guards=[keys.requires("read")],
        security=[{"apiKey": []}],
    )
    async def queue_status() -> dict[str, int]:
        """Lengths; `parked` over all numbers. `total` is the sum of the others."""
        lengths = await store.pacers.queue_status(_QUEUES)
        lengths["parked"] = sum(phone.parked for phone in await store.pacers.fleet())
        return {**lengths, "total": sum(lengths.values())}

    return service(
        name="dispatcher",
        description="Routes jobs over the numbers and keeps each number's pace.",
        routes=[health, queue_status],
    )
