"""What time it is for the orchestrator, as a pair of bounds that cannot be wrong.

Every answer that carries `nowMs` was made between our question and its arrival, so it bounds the difference of
the two clocks from both sides. "Not before" is judged by the earliest time it can be there, "not after" by the
latest: a worker that was stopped for a minute with an answer in its socket buffer must not believe it fresh.
"""

from typing import NamedTuple

# Two quartz clocks drift apart by some 50 ppm, twice that in the cold; older bounds are widened by this much.
_DRIFT_PPM = 100


class _Bounds(NamedTuple):
    """Server time minus ours lies between these two; learned at `at_ms` of our clock."""

    low_ms: int
    high_ms: int
    at_ms: int

    def widened(self, now_ms: int) -> "_Bounds":
        slack_ms = (now_ms - self.at_ms) * _DRIFT_PPM // 1_000_000
        return _Bounds(self.low_ms - slack_ms, self.high_ms + slack_ms, now_ms)


class ServerTime:
    """Bounds on the orchestrator's clock, narrowed by every exchange. All arguments are our own clock's time."""

    def __init__(self) -> None:
        self._bounds: _Bounds | None = None

    def observe(self, server_ms: int, *, asked_ms: int, answered_ms: int, waited_ms: int = 0) -> None:
        """`waited_ms`: so long the server says it had us wait before it looked at its clock. Bounds as wide as a long
        poll would hide that the clock was set back by less."""
        looked_ms = min(asked_ms + waited_ms, answered_ms)
        fresh = _Bounds(server_ms - answered_ms, server_ms - looked_ms, answered_ms)
        if self._bounds is None:
            self._bounds = fresh
            return
        known = self._bounds.widened(answered_ms)
        low_ms, high_ms = max(known.low_ms, fresh.low_ms), min(known.high_ms, fresh.high_ms)
        # A contradiction means that one of the clocks was set; the newest word then counts alone.
        self._bounds = _Bounds(low_ms, high_ms, answered_ms) if low_ms <= high_ms else fresh

    def earliest(self, now_ms: int) -> int:
        return now_ms + self._known(now_ms).low_ms

    def latest(self, now_ms: int) -> int:
        return now_ms + self._known(now_ms).high_ms

    def _known(self, now_ms: int) -> _Bounds:
        if self._bounds is None:
            raise RuntimeError("no answer with nowMs has been observed yet")
        return self._bounds.widened(now_ms)
