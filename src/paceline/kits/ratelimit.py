"""A token bucket: how many requests somebody may make, and what to tell them about it.

`ask` is a pure function of a bucket, a rate and a time. `Meter` only remembers buckets by name, within a bound. It
counts in this process alone: asking another one would cost every request a round trip. Neighbour: `paceline.edge`,
which says who is counted, and by which rate.

A bucket holds a minute's worth of requests and fills evenly, so a caller may be quick for a moment, and over time
makes no more than the rate. Amounts are whole numbers (a request is 60,000 parts, and `rate` parts flow in each
millisecond): nothing is ever rounded away.
"""

from collections import OrderedDict
from typing import NamedTuple

MINUTE_MS = 60_000
_REQUEST = MINUTE_MS
"""Parts that one request takes: with it a rate per minute is a whole number of parts per millisecond."""


class Bucket(NamedTuple):
    parts: int
    at_ms: int


class Verdict(NamedTuple):
    allowed: bool
    limit: int
    """Requests per minute."""
    remaining: int
    """Requests that could follow at once."""
    reset_ms: int
    """Until the bucket is full again."""
    retry_ms: int
    """Until one request is allowed; 0 if this one was."""
    bucket: Bucket
    """What to keep if the request is counted."""


def ask(bucket: Bucket | None, per_minute: int, now_ms: int) -> Verdict:
    """May one more request be made? `None` is a bucket nobody has drawn from. `per_minute` is at least 1."""
    full = per_minute * _REQUEST
    parts = full if bucket is None else _filled(bucket, per_minute, now_ms)
    # A clock that was set back must not fill the bucket a second time when it comes by again.
    at_ms = now_ms if bucket is None else max(now_ms, bucket.at_ms)
    allowed = parts >= _REQUEST
    left = parts - _REQUEST if allowed else parts
    return Verdict(
        allowed=allowed,
        limit=per_minute,
        remaining=left // _REQUEST,
        reset_ms=_ceil(full - left, per_minute),
        retry_ms=0 if allowed else _ceil(_REQUEST - parts, per_minute),
        bucket=Bucket(left, at_ms),
    )


class Meter:
    """Buckets by name. Beyond `capacity` the one drawn from the longest ago is forgotten, as if it were full."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def ask(self, name: str, per_minute: int, now_ms: int) -> Verdict:
        """Counts nothing yet: another limit may still refuse the request."""
        return ask(self._buckets.get(name), per_minute, now_ms)

    def count(self, name: str, verdict: Verdict) -> None:
        self._buckets[name] = verdict.bucket
        self._buckets.move_to_end(name)
        if len(self._buckets) > self._capacity:
            self._buckets.popitem(last=False)


def _filled(bucket: Bucket, per_minute: int, now_ms: int) -> int:
    elapsed_ms = max(0, now_ms - bucket.at_ms)
    return min(per_minute * _REQUEST, bucket.parts + elapsed_ms * per_minute)


def _ceil(parts: int, per_ms: int) -> int:
    return -(-parts // per_ms)
