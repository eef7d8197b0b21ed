"""The gateway's HTTP, put together. Each `routes_…` module reads bodies, asks the logic beside it, and answers."""

from litestar import get

from paceline.edge import Keys, service
from paceline.gateway.api_keys import ApiKeys
from paceline.gateway.erasing import Erasing
from paceline.gateway.intake import Intake
from paceline.gateway.media import MediaDesk
from paceline.gateway.once import Once
from paceline.gateway.outlets import Outlets
from paceline.gateway.reference import REFERENCE
from paceline.gateway.routes_dead_letters import dead_letter_routes
from paceline.gateway.routes_events import event_routes
from paceline.gateway.routes_jobs import job_routes
from paceline.gateway.routes_keys import key_routes
from paceline.gateway.routes_lists import list_routes
from paceline.gateway.routes_media import media_routes
from paceline.gateway.routes_older import older_routes
from paceline.gateway.routes_plan import plan_routes
from paceline.gateway.routes_queue import queue_routes
from paceline.gateway.routes_recipients import recipient_routes
from paceline.gateway.routes_sending import sending_routes
from paceline.gateway.routes_suppressions import suppression_routes
from paceline.gateway.routes_webhooks import webhook_routes
from paceline.gateway.suppressions import Suppressions
from paceline.kits.clock import Clock
from paceline.kits.metrics import Metrics
from paceline.kits.service import Service
from paceline.kits.web import Handler
from paceline.store import keys as keyspace
from paceline.store.store import Store
from paceline.telemetry.service import metrics_route, new_metrics


def create_app(
    store: Store,
    intake: Intake,
    media: MediaDesk,
    keys: Keys,
    clock: Clock,
    *,
    outlets: Outlets,
    metrics: Metrics | None = None,
) -> Service:
    return service(
        name="gateway",
        description="Takes jobs and messages, and tells how they are doing. Times are Unix milliseconds.",
        reference=REFERENCE,
        routes=[
            *sending_routes(store, intake, keys, clock),
            *media_routes(media, keys, clock),
            *plan_routes(store, intake, keys, clock),
            *job_routes(store, intake, keys, clock),
            *list_routes(store, keys, clock),
            *queue_routes(store, intake, keys, clock),
            *dead_letter_routes(store, Once(store, intake, clock), intake, keys),
            *recipient_routes(Erasing(store), keys, clock),
            *suppression_routes(Suppressions(store, intake.breathe), keys, clock),
            *key_routes(ApiKeys(store, new_id=intake.new_job_id), keys, clock),
            *webhook_routes(outlets.desk, keys, clock),
            *event_routes(outlets.live, keys),
            *older_routes(Once(store, intake, clock), intake, media, keys),
            metrics_route(metrics or new_metrics(), keys),
            _health(store),
        ],
    )


def _health(store: Store) -> Handler:
    @get("/health", summary="Is it working?", tags=["Service"], security=[], opt={"any_query": True})
    async def health() -> dict[str, str]:
        """Open to everybody. 503 while the store does not answer."""
        await store.pacers.queue_status((("due", "ZCARD", keyspace.due()),))
        return {"status": "ok"}

    return health
