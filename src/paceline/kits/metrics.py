"""What Prometheus is told about one process: things counted as they happen, and things read when it asks.

A `Metric` says what something is called and what it means; a `Metrics` holds the values of one process. Nothing is
global, so tests and several services in one process have theirs side by side. Whoever counts gets a handle once and
keeps it (`counting`). What describes a whole fleet is not counted but read by a `Source`, at
most once a second however many ask. Neighbour: `paceline.telemetry` names everything that Paceline tells.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

import structlog
from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from paceline.kits.clock import monotonic_ms
from paceline.kits.counting import Counter, Histogram, Summary

log = structlog.stdlib.get_logger(__name__)

CONTENT_TYPE = "text/plain; version=0.0.4"
FRESH_MS = 1_000
"""How old what was read may be: several who ask at once cost one reading."""
READING_SECONDS = 8.0
"""For all that is read. Prometheus gives up after ten; what was counted is told even if the store stands still."""


@dataclass(frozen=True)
class Metric:
    name: str
    kind: Literal["counter", "gauge", "histogram", "summary"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


class Reading(NamedTuple):
    """One value that was read: of a gauge, or of something that somebody else counts."""

    metric: Metric
    value: float
    labels: tuple[str, ...] = ()


T = TypeVar("T", bound=Collector)
Source = Callable[[], Awaitable[Iterable[Reading]]]


class Metrics:
    def __init__(self, *, expected: type[Exception] = OSError) -> None:
        """`expected` is what a source raises while its store is away: it is left out, and the rest is told."""
        self.registry = CollectorRegistry(auto_describe=False)
        self._expected = expected
        self._sources: list[Source] = []
        self._read = _Read()
        self._read_at_ms = -FRESH_MS
        self._reading = asyncio.Lock()
        self.registry.register(self._read)

    def with_process(self) -> "Metrics":
        """Also what the process itself takes: memory, processor time, files, garbage collection."""
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)
        return self

    def counter(self, metric: Metric) -> Counter:
        return self._told(Counter(metric))

    def summary(self, metric: Metric) -> Summary:
        return self._told(Summary(metric))

    def histogram(self, metric: Metric) -> Histogram:
        return self._told(Histogram(metric, metric.buckets))

    def _told(self, collector: T) -> T:
        self.registry.register(collector)
        return collector

    def read(self, source: Source) -> None:
        """Have this asked whenever somebody wants to know."""
        self._sources.append(source)

    async def render(self) -> bytes:
        """Everything in Prometheus' text format."""
        async with self._reading:
            if monotonic_ms() - self._read_at_ms >= FRESH_MS:
                until = asyncio.get_running_loop().time() + READING_SECONDS
                found = [await self._ask(source, until) for source in self._sources]
                self._read.readings = [reading for readings in found for reading in readings]
                self._read_at_ms = monotonic_ms()
        return generate_latest(self.registry)

    async def _ask(self, source: Source, until: float) -> Sequence[Reading]:
        try:
            async with asyncio.timeout_at(until):
                return list(await source())
        except (self._expected, TimeoutError) as error:
            log.warning(
                "some metrics cannot be read", source=getattr(source, "__qualname__", ""), reason=type(error).__name__
            )
            return []


class _Read(Collector):
    """What was read last, as the registry wants it: the values of one metric together."""

    def __init__(self) -> None:
        self.readings: list[Reading] = []

    def collect(self) -> Iterator[Family]:
        families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
        for metric, value, labels in self.readings:
            family = families.get(metric.name)
            if family is None:
                kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
                family = families[metric.name] = kind(metric.name, metric.help, labels=metric.labels)
            family.add_metric(labels, value)
        yield from families.values()
