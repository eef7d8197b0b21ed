"""The three services, put together once for all tests: that takes 30 ms each, and there are two thousand tests.

The routes are given stand-ins for the parts of a platform. While they are put together a stand-in hands out more of
its kind; while a request is served it is the part of the platform that is asked. Nothing is remembered from one
platform to the next, because what routes are made of keeps nothing (ARCHITECTURE: "services keep nothing").
"""

from collections.abc import Callable
from contextvars import ContextVar
from functools import cache
from typing import Any

from paceline.dispatcher.app import create_app as dispatcher_app
from paceline.gateway.app import create_app as gateway_app
from paceline.gateway.media import Limits
from paceline.kits.service import Service, Watch
from paceline.orchestrator.app import create_app as orchestrator_app

_served: ContextVar[Any] = ContextVar("the platform whose request this is")


class StandIn:
    def __init__(self, find: Callable[[], Any]) -> None:
        self._find = find

    def __getattr__(self, name: str) -> Any:
        return self._of(lambda part: getattr(part, name))

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._of(lambda part: part(*arguments, **named))

    def _of(self, step: Callable[[Any], Any]) -> Any:
        find = self._find
        return StandIn(lambda: step(find())) if _served.get(None) is None else step(find())


class KeysStandIn(StandIn):
    def requires(self, *scopes: str) -> Any:
        # Litestar looks whether a guard is a coroutine function, so it has to be one.
        async def guard(connection: Any, handler: Any) -> None:
            await self._find().requires(*scopes)(connection, handler)

        guard.required_scopes = scopes  # type: ignore[attr-defined]
        return guard


class MediaStandIn(StandIn):
    limits = Limits()
    """The size of a body is said when its route is made."""


def _part(name: str, kind: type[StandIn] = StandIn) -> Any:
    return kind(lambda: getattr(_served.get(), name))


def _common(name: str) -> dict[str, Any]:
    metrics: Any = StandIn(lambda: _served.get().metrics[name])
    return {"store": _part("store"), "keys": _part("keys", KeysStandIn), "clock": _part("clock"), "metrics": metrics}


def _gateway() -> Service:
    return gateway_app(
        **_common("gateway"), intake=_part("intake"), media=_part("media", MediaStandIn), outlets=_part("outlets")
    )


def _dispatcher() -> Service:
    return dispatcher_app(**_common("dispatcher"), **{name: _part(name) for name in ("engine", "rules", "rng")})


def _orchestrator() -> Service:
    own = ("desk", "settling", "inbound", "registry", "waiters", "gate", "terms", "audit", "alerts", "logs")
    return orchestrator_app(**_common("orchestrator"), media=_part("files"), **{name: _part(name) for name in own})


MAKERS = {"gateway": _gateway, "dispatcher": _dispatcher, "orchestrator": _orchestrator}


@cache
def _made(name: str) -> Service:
    service, watch = MAKERS[name](), StandIn(lambda: _served.get().services[name].watch)
    service.watch_with(watch)
    return service


class Served:
    """A service as one platform's own."""

    def __init__(self, name: str, platform: Any) -> None:
        self._service, self._platform = _made(name), platform
        self.litestar = self._service.litestar

    def watch_with(self, watch: Watch) -> None:
        self.watch = watch

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        before = _served.set(self._platform)
        try:
            await self._service(scope, receive, send)
        finally:
            _served.reset(before)
