"""Things counted as they happen, as plain numbers: the event loop alone counts, so no lock is needed, and a request can
afford it. The client library reads them when Prometheus asks. Neighbour: `metrics`.
"""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import Generic, Protocol, TypeVar

from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily, SummaryMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString


class About(Protocol):
    """What something is called, what it means, and what it is told apart by."""

    @property
    def name(self) -> str: ...
    @property
    def help(self) -> str: ...
    @property
    def labels(self) -> tuple[str, ...]: ...


class Count:
    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, amount: float = 1) -> None:
        self.value += amount


class Spread:
    """How many, how much together, and how many up to each bound."""

    __slots__ = ("_bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, amount: float) -> None:
        self.counts[bisect_left(self._bounds, amount)] += 1
        self.sum += amount


T = TypeVar("T")


class _Labelled(Collector, Generic[T]):
    def __init__(self, about: About) -> None:
        self._about = about
        self._by_labels: dict[tuple[str, ...], T] = {}
        if not about.labels:
            self.labels()

    def labels(self, *values: str) -> T:
        """The one with these; it is told from now on. Whoever counts often keeps it."""
        if values not in self._by_labels:
            if len(values) != len(self._about.labels):
                raise ValueError(f"{self._about.name} has the labels {self._about.labels}")
            self._by_labels[values] = self._new()
        return self._by_labels[values]

    def _new(self) -> T:
        raise NotImplementedError


class Counter(_Labelled[Count]):
    def inc(self, amount: float = 1) -> None:
        self.labels().inc(amount)

    def collect(self) -> Iterator[Family]:
        family = CounterMetricFamily(self._about.name, self._about.help, labels=self._about.labels)
        for labels, count in self._by_labels.items():
            family.add_metric(labels, count.value)
        yield family

    def _new(self) -> Count:
        return Count()


class Histogram(_Labelled[Spread]):
    def __init__(self, about: About, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        super().__init__(about)

    def observe(self, amount: float) -> None:
        self.labels().observe(amount)

    def collect(self) -> Iterator[Family]:
        family = HistogramMetricFamily(self._about.name, self._about.help, labels=self._about.labels)
        names = [floatToGoString(bound) for bound in (*self._bounds, float("inf"))]  # type: ignore[no-untyped-call]
        for labels, spread in self._by_labels.items():
            upto = [(name, float(count)) for name, count in zip(names, accumulate(spread.counts), strict=True)]
            family.add_metric(labels, upto, spread.sum)
        yield family

    def _new(self) -> Spread:
        return Spread(self._bounds)


class Summary(_Labelled[Spread]):
    """How many and how much together; cheaper than a histogram where there are many labels."""

    def collect(self) -> Iterator[Family]:
        family = SummaryMetricFamily(self._about.name, self._about.help, labels=self._about.labels)
        for labels, spread in self._by_labels.items():
            family.add_metric(labels, sum(spread.counts), spread.sum)
        yield family

    def _new(self) -> Spread:
        return Spread(())
