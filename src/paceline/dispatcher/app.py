"""The dispatcher's HTTP: how it is doing, how long the queues are. `routes_fleet`, `routes_numbers` hold the rest."""

from random import Random

from litestar import get

from paceline.apidoc import KEY
from paceline.dispatcher.loops import Engine
from paceline.dispatcher.operators import Operator
from paceline.dispatcher.reference import REFERENCE
from paceline.dispatcher.routes_fleet import fleet_routes
from paceline.dispatcher.routes_numbers import number_routes
from paceline.dispatcher.routes_overview import overview_routes
from paceline.dispatcher.routes_policy import policy_route
from paceline.dispatcher.schemas import Health
from paceline.dispatcher.timeline import Timeline
from paceline.dispatcher.watching import Watching
from paceline.edge import Keys, service
from paceline.kits.clock import Clock
from paceline.kits.metrics import Metrics
from paceline.kits.service import Service
from paceline.kits.web import Handler
from paceline.policy.facts import Rules
from paceline.store import keys as keyspace
from paceline.store.store import Store
from paceline.telemetry.service import metrics_route, new_metrics

_QUEUES = (
    ("gateway", "LLEN", keyspace.gateway_jobs()),
    ("priority", "LLEN", keyspace.priority_jobs()),
    ("retry", "ZCARD", keyspace.jobs_retry()),
    ("sessionRetry", "ZCARD", keyspace.task_retry()),
    ("scheduled", "ZCARD", keyspace.scheduled()),
    ("deadLetter", "LLEN", keyspace.dead_letters()),
)
_DUE = (("due", "ZCARD", keyspace.due()),)


def create_app(
    engine: Engine,
    store: Store,
    keys: Keys,
    *,
    rules: Rules,
    clock: Clock,
    rng: Random,
    metrics: Metrics | None = None,
) -> Service:
    watching = Watching(store, rules, rng)
    return service(
        name="dispatcher",
        description="Routes jobs over the numbers and keeps each number's pace. Times are Unix milliseconds.",
        reference=REFERENCE,
        routes=[
            _health(engine, store),
            metrics_route(metrics or new_metrics(), keys),
            _queue_status(store, keys),
            policy_route(rules, keys),
            *fleet_routes(store, engine.guard, keys, clock),
            *overview_routes(store, engine.roster, Timeline(watching, rules), keys, clock),
            *number_routes(watching, Operator(store, rules, watching), keys, clock),
        ],
    )


def _health(engine: Engine, store: Store) -> Handler:
    @get("/health", summary="Is it working?", tags=["Service"], security=[], opt={"any_query": True})
    async def health() -> Health:
        """Open to everybody. 503 while the store does not answer."""
        return Health(
            running=not (await store.operators.fleet()).stopped,
            processed=sum(router.turns for router in engine.routers),
            routed=sum(router.routed for router in engine.routers),
            failed=sum(router.failed for router in engine.routers),
            active_pacers=(await store.pacers.queue_status(_DUE))["due"],
        )

    return health


def _queue_status(store: Store, keys: Keys) -> Handler:
    @get(
        "/queue/status",
        summary="How long the queues are",
        tags=["Queues"],
        guards=[keys.requires("read")],
        security=KEY,
    )
    async def queue_status() -> dict[str, int]:
        """Lengths; `parked` over all numbers. `total` is the sum of the others."""
        lengths = await store.pacers.queue_status(_QUEUES)
        lengths["parked"] = await store.operators.parked()
        return {**lengths, "total": sum(lengths.values())}

    return queue_status
