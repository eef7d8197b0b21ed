"""The one wall clock of a process, and the only place that reads one.

Code that decides gets `now_ms` as an argument; code that waits gets a `Clock`. Production uses `SampledClock`
on Redis' own time, so that every process of a fleet agrees on the hour whatever its host's clock says;
`paceline.testing` brings a virtual one.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog

log = structlog.stdlib.get_logger(__name__)


class Clock(Protocol):
    """Wall time in Unix milliseconds, and waiting. Never goes backwards."""

    def now_ms(self) -> int: ...

    async def sleep_ms(self, ms: int) -> None: ...


def held(read_ms: Callable[[], int]) -> Callable[[], int]:
    """The same clock, standing still where it goes back."""
    last_ms = 0

    def now_ms() -> int:
        nonlocal last_ms
        last_ms = max(last_ms, read_ms())
        return last_ms

    return now_ms


def _since_boot_ms() -> int:
    """Counts the time a machine was suspended where the system can say (Linux): a laptop that slept must not
    wake up believing that a lease taken before is still young."""
    clock_id = getattr(time, "CLOCK_BOOTTIME", None)
    if clock_id is None:
        return time.monotonic_ns() // 1_000_000
    return time.clock_gettime_ns(clock_id) // 1_000_000


monotonic_ms = held(_since_boot_ms)
"""Milliseconds since an arbitrary start; for measuring durations, never for telling the time. Held, because on some
virtual machines a process that changes its core sees even this clock go back, by milliseconds."""


def stopwatch_s() -> float:
    """Seconds since an arbitrary start, as fine as the system can tell; for how long a call took."""
    return time.perf_counter()


class SystemClock:
    """The host's own clock, held still when it is set back. For tools and tests that have no reference to
    ask."""

    def __init__(self, wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        self._wall_ms = held(wall_ms)

    def now_ms(self) -> int:
        return self._wall_ms()

    async def sleep_ms(self, ms: int) -> None:
        await asyncio.sleep(max(0, ms) / 1000)


class SampledClock:
    """A reference clock's time: its offset to our monotonic clock, measured again every few seconds.

    `now_ms` is a plain subtraction, so it costs no round trip. When the reference steps back (a failover to a
    host whose clock is behind) this clock stands still until the reference has caught up, because no rule may
    see time run backwards. While the reference is unreachable the last offset stays good: quartz drifts less
    than a millisecond in ten seconds.
    """

    # A process that is stopped (SIGSTOP, a busy host) between question and answer measures nonsense; of three
    # attempts the one with the shortest round trip is the least wrong, by at most half that trip.
    ATTEMPTS = 3

    # A measurement is wrong by at most half its round trip, and grows older by this much.
    DRIFT_PPM = 100

    # A reference that was set back by more is worth a line in the log.
    TOLD_MS = 1_000

    def __init__(
        self,
        reference: Callable[[], Awaitable[int]],
        *,
        resample_ms: int = 5_000,
        monotonic: Callable[[], int] = monotonic_ms,
    ) -> None:
        self._reference = reference
        self._resample_ms = resample_ms
        self._monotonic = monotonic
        self._offset_ms: int | None = None
        self._error_ms = 0
        self._sampled_ms = 0
        self._last_ms = 0

    def now_ms(self) -> int:
        if self._offset_ms is None:
            raise RuntimeError("SampledClock has no sample yet; await sample() before the first now_ms()")
        self._last_ms = max(self._last_ms, self._monotonic() + self._offset_ms)
        return self._last_ms

    async def sleep_ms(self, ms: int) -> None:
        await asyncio.sleep(max(0, ms) / 1000)

    async def sample(self) -> None:
        """Ask the reference and take over the offset if it is better than the one we have. Raises what the reference
        raises; the old offset then stays."""
        round_trip_ms, offset_ms = min([await self._measure() for _ in range(self.ATTEMPTS)])
        error_ms, seen_ms = round_trip_ms // 2 + 1, self._monotonic()
        if self._offset_ms is not None:
            known_ms = self._error_ms + (seen_ms - self._sampled_ms) * self.DRIFT_PPM // 1_000_000
            # On a busy host every round trip is long: a clock that followed each would jump to and fro, and so would
            # the gaps between sends. Only a difference that no error explains says that the reference was set.
            if error_ms > known_ms and abs(offset_ms - self._offset_ms) <= error_ms + known_ms:
                return
            set_back_ms = self._offset_ms - offset_ms - error_ms - known_ms
            if set_back_ms > self.TOLD_MS:
                # Until then nothing that waits for a time goes on; whoever wonders why finds it here.
                log.warning(
                    "the reference clock was set back; time stands still until it has caught up", by_ms=set_back_ms
                )
        self._offset_ms, self._error_ms, self._sampled_ms = offset_ms, error_ms, seen_ms

    async def run(self) -> None:
        """Sample for ever; to be run as a supervised task, which logs and repeats it when the reference is
        away."""
        while True:
            await self.sample()
            await self.sleep_ms(self._resample_ms)

    async def _measure(self) -> tuple[int, int]:
        asked_ms = self._monotonic()
        reference_ms = await self._reference()
        round_trip_ms = self._monotonic() - asked_ms
        return round_trip_ms, reference_ms + round_trip_ms // 2 - (asked_ms + round_trip_ms)
