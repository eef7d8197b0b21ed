"""The way to Redis with a stopwatch: every call of a process is timed here, so that no caller has to."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from prometheus_client import Summary

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
        self._all = metrics.histogram(names.REDIS_SECONDS)
        self._by_verb = metrics.summary(names.REDIS_VERBS)
        self._errors = metrics.counter(names.REDIS_ERRORS)
        self._verbs: dict[str, Summary] = {}
        """Handles that were asked for once: looking one up by its label costs more than counting."""

    async def run(self, script: Script, argument: str) -> Any:
        with self._timed(script.name):
            return await self._link.run(script, argument)

    async def read(self, *commands: Command) -> list[Any]:
        with self._timed(READ):
            return await self._link.read(*commands)

    @contextmanager
    def _timed(self, verb: str) -> Iterator[None]:
        began_s = stopwatch_s()
        try:
            yield
        except Unavailable:
            self._errors.inc()
            raise
        finally:
            took_s = stopwatch_s() - began_s
            self._all.observe(took_s)
            if verb not in self._verbs:
                self._verbs[verb] = self._by_verb.labels(verb)
            self._verbs[verb].observe(took_s)
