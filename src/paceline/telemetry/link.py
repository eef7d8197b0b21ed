"""The way to Redis with a stopwatch: every call of a process is timed here, so that no caller has to."""

from typing import Any

from paceline.domain.errors import Unavailable
from paceline.kits.clock import stopwatch_s
from paceline.kits.metrics import Metrics
from paceline.store.client import Command, Link
from paceline.store.scripts import Script
from paceline.telemetry import catalogue as names

READ = "read"


class TimedLink:
    """A `Link` around another."""

    def __init__(self, link: Link, metrics: Metrics) -> None:
        self._link = link
        self.is_shared = link.is_shared
        self._all = metrics.histogram(names.REDIS_SECONDS)
        self._by_verb = metrics.summary(names.REDIS_VERBS)
        self._errors = metrics.counter(names.REDIS_ERRORS)

    async def run(self, script: Script, argument: bytes) -> Any:
        began_s = stopwatch_s()
        try:
            return await self._link.run(script, argument)
        except Unavailable:
            self._errors.inc()
            raise
        finally:
            self._took(script.name, stopwatch_s() - began_s)

    async def read(self, *commands: Command) -> list[Any]:
        began_s = stopwatch_s()
        try:
            return await self._link.read(*commands)
        except Unavailable:
            self._errors.inc()
            raise
        finally:
            self._took(READ, stopwatch_s() - began_s)

    def _took(self, verb: str, seconds: float) -> None:
        self._all.observe(seconds)
        self._by_verb.labels(verb).observe(seconds)
