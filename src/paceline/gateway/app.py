"""The gateway's HTTP, put together. Each `routes_…` module reads bodies, asks the logic beside it, and answers."""

from litestar import get

from paceline.edge import Keys, service
from paceline.gateway.intake import Intake
from paceline.gateway.routes_jobs import job_routes
from paceline.gateway.routes_queue import queue_routes
from paceline.gateway.routes_sending import sending_routes
from paceline.gateway.routes_suppressions import suppression_routes
from paceline.gateway.suppressions import Suppressions
from paceline.kits.clock import Clock
from paceline.kits.web import Handler, Service
from paceline.store import keys as keyspace
from paceline.store.store import Store


def create_app(store: Store, intake: Intake, keys: Keys, clock: Clock) -> Service:
    return service(
        name="gateway",
        description="Takes jobs and messages, and tells how they are doing. Times are Unix milliseconds.",
        routes=[
            *sending_routes(store, intake, keys, clock),
            *job_routes(store, intake, keys, clock),
            *queue_routes(store, intake, keys, clock),
            *suppression_routes(Suppressions(store), keys, clock),
            _health(store),
        ],
    )


def _health(store: Store) -> Handler:
    @get("/health", summary="Is it working?", tags=["Service"], security=[])
    async def health() -> dict[str, str]:
        """Open to everybody. 503 while the store does not answer."""
        await store.pacers.queue_status((("due", "ZCARD", keyspace.due()),))
        return {"status": "ok"}

    return health
