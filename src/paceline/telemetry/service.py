"""What every service tells of itself: who it is, its requests, its process, Redis as it sees it; and `/metrics`.

`new_metrics` makes one a process; `about_service` adds who it is, what its process takes and Redis' memory,
`metrics_route` is `GET /metrics`, and with `watch_requests` each answer counts. `compose` and the services' `app` call
them.
"""

from collections.abc import Iterable

from litestar import Response, get

from paceline import __version__
from paceline.apidoc import KEY
from paceline.domain.errors import Unavailable
from paceline.edge import Keys
from paceline.kits.counting import Count, Spread
from paceline.kits.metrics import CONTENT_TYPE, Metrics, Reading
from paceline.kits.openapi import Entry, Reference
from paceline.kits.service import Service
from paceline.kits.web import Handler
from paceline.store.store import Store
from paceline.telemetry import catalogue as names

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

_EXAMPLE = f'paceline_build_info{{service="gateway",version="{__version__}"}} 1.0\n'
REFERENCE: Reference = {
    "GET /metrics": Entry(answers={"text/plain": {"type": "string"}}, answer={"text/plain": _EXAMPLE})
}
"""The same in every service."""


def new_metrics() -> Metrics:
    """For one process. While Redis is away, what is read from it is left out."""
    return Metrics(expected=Unavailable)


def about_service(name: str, store: Store, metrics: Metrics) -> None:
    """Who this is, what its process takes, and how full Redis is."""
    metrics.with_process()

    async def read() -> Iterable[Reading]:
        return [Reading(names.BUILD, 1, (name, __version__))]

    async def read_redis() -> Iterable[Reading]:
        memory = await store.measure.memory()
        return [Reading(names.REDIS_USED, memory.used), Reading(names.REDIS_MAX, memory.most)]

    metrics.read(read)
    metrics.read(read_redis)


def watch_requests(app: Service, metrics: Metrics) -> None:
    requests, durations = metrics.counter(names.HTTP_REQUESTS), metrics.histogram(names.HTTP_SECONDS)

    # As many as there are routes and statuses; what nobody routes has one name.
    handles: dict[tuple[str, str, int], tuple[Count, Spread]] = {}

    def watch(method: str, route: str, status: int, seconds: float) -> None:
        known = (method if method in METHODS else names.OTHER, route or names.OTHER, status)
        if known not in handles:
            handles[known] = requests.labels(*known[:2], str(status)), durations.labels(*known[:2])
        counted, timed = handles[known]
        counted.inc()
        timed.observe(seconds)

    app.watch_with(watch)


def metrics_route(metrics: Metrics, keys: Keys) -> Handler:
    @get(
        "/metrics",
        summary="Metrics for Prometheus",
        tags=["Service"],
        guards=[keys.requires("read")],
        security=KEY,
        opt={"any_query": True},
    )
    async def metrics_page() -> Response[bytes]:
        """In Prometheus' text format; docs/metrics.md lists them."""
        return Response(await metrics.render(), media_type=CONTENT_TYPE)

    return metrics_page
