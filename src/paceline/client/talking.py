"""The conversation around a call, without I/O: a generator that yields one step at a time (ask this, pause so long),
is told what came of it, and returns the answer or raises. `sync` and `aio` take the steps.

Repeating is decided here and nowhere else. Neighbours: `reading` judges a reply, `streaming` is the one conversation
that does not end.
"""

import random
import time
import uuid
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from paceline.client.answers_jobs import Page
from paceline.client.calls import CSV, JSON, Call, Repeat, Service
from paceline.client.errors import BadAnswer, Misused, PacelineError, TimedOut, Unreachable
from paceline.client.reading import AWAY, Ask, Lost, Pause, Reply, error_of, in_flight, read, retry_after

MAX_PAGES = 10_000
"""A list that never ends is a fault of the other side; whoever walks it must come to an end all the same."""

T = TypeVar("T")


class _CanEnd(Protocol):
    @property
    def ended(self) -> bool: ...


E = TypeVar("E", bound=_CanEnd)
Talk = Generator[Ask | Pause, Reply | Lost | None, T]


@dataclass(frozen=True)
class Retries:
    """How often and how patiently a call is repeated whose repetition is safe."""

    tries: int = 9
    """All together; 1 is no repeat. With the shortest of the pauses below more than the half minute after which a
    request that a crash cut off half way is taken over by its repeat; with the longest about a minute."""
    first_seconds: float = 0.5
    """The first pause; each later one is twice as long, less up to half of it at random."""
    longest_seconds: float = 16.0
    longest_asked_seconds: float = 60.0
    """A `Retry-After` beyond this is left to the caller, who may have better to do than wait."""

    def pause(self, tries: int, asked_seconds: float | None, rng: random.Random) -> float | None:
        """Seconds to wait after so many tries; None to give up."""
        if tries >= self.tries:
            return None
        own = min(self.longest_seconds, self.first_seconds * 2.0 ** min(tries - 1, 30)) * rng.uniform(0.5, 1)
        if asked_seconds is None:
            return own
        if asked_seconds > self.longest_asked_seconds:
            return None
        # Whoever was told the same number should not all come back in the same moment.
        return max(own, asked_seconds * rng.uniform(1, 1.25))


def may_repeat(repeat: Repeat, heard: Reply | Lost) -> bool:
    if isinstance(heard, Lost):
        return not heard.maybe_done or repeat is not Repeat.ANOTHER
    if heard.status == 429:
        return True
    if heard.status in AWAY:
        return repeat is not Repeat.ANOTHER
    return repeat is Repeat.KEYED and in_flight(heard)


@dataclass(frozen=True)
class Outside:
    """What a conversation takes from the world around it."""

    rng: random.Random = field(default_factory=random.Random)
    monotonic: Callable[[], float] = time.monotonic
    new_key: Callable[[], str] = lambda: uuid.uuid4().hex


class Talker:
    """The conversations of one client. `where` has the addresses it may ask, as errors name them."""

    def __init__(self, where: Mapping[Service, str], retries: Retries, outside: Outside) -> None:
        self.where = where
        self.retries = retries
        self.outside = outside

    def ask(self, call: Call[T]) -> Talk[T]:
        asked = self._asked(call)
        try:
            return (yield from self._repeated(call, asked))
        except PacelineError as error:
            error.idempotency_key = asked.headers.get("Idempotency-Key")
            raise

    def _repeated(self, call: Call[T], asked: Ask) -> Talk[T]:
        tries, maybe_done = 0, False
        while True:
            tries += 1
            heard = yield asked
            assert heard is not None
            if isinstance(heard, Reply) and heard.is_good:
                return read(heard, call.answer, self.where[call.service])
            error = error_of(heard, self.where[call.service], tries)
            if isinstance(error, Unreachable):
                # An earlier try may have arrived, though this one has not.
                error.maybe_done = maybe_done = maybe_done or error.maybe_done
            pause = None
            if may_repeat(call.repeat, heard):
                pause = self.retries.pause(tries, retry_after(heard), self.outside.rng)
            if pause is None:
                raise error
            yield Pause(pause)

    def _asked(self, call: Call[T]) -> Ask:
        if call.service not in self.where:
            raise Misused(f"this client knows no {call.service}: an Operator does")
        headers = {"Accept": CSV if call.answer is str else JSON}
        if call.content is not None:
            headers["Content-Type"] = call.content_type
        if call.repeat is Repeat.KEYED:
            headers["Idempotency-Key"] = key = call.idempotency_key or self.outside.new_key()
            if not (key.isascii() and key.isprintable() and " " not in key and len(key) <= 255):
                raise Misused("an Idempotency-Key has 1 to 255 printable characters without spaces")
        return Ask(call.service, call.method, call.path, call.query, headers, call.content, call.waits_seconds)


class Pages(Generic[T]):
    """A list, page by page until `done`."""

    def __init__(self, talker: Talker, call: Call[Page[T]]) -> None:
        self._talker = talker
        self._call = call
        self._count = 0
        self.done = False

    def next(self) -> Talk[list[T]]:
        if self._count >= MAX_PAGES:
            raise BadAnswer(
                f"{self._talker.where[self._call.service]}{self._call.path} has more than {MAX_PAGES} pages"
            )
        self._count += 1
        page = yield from self._talker.ask(self._call)
        self.done = not page.next_cursor
        self._call = self._call.at(page.next_cursor or "")
        return page.items


class Watch(Generic[E]):
    """How something is doing, at every change until it is `done`."""

    def __init__(self, talker: Talker, call: Call[E], timeout_seconds: float, every_seconds: float) -> None:
        self._talker = talker
        self._call = call
        self._timeout_seconds = timeout_seconds
        self._every_seconds = max(0.05, every_seconds)
        self._until = talker.outside.monotonic() + timeout_seconds
        self._last: E | None = None
        self.done = False

    def next(self) -> Talk[E]:
        while True:
            if self._last is not None:
                left = self._until - self._talker.outside.monotonic()
                if left <= 0:
                    raise TimedOut(f"{self._call.path} has not ended in {self._timeout_seconds:g} s", self._last)
                yield Pause(min(left, self._every_seconds))
            found = yield from self._talker.ask(self._call)
            is_news, self._last = found != self._last, found
            self.done = found.ended
            if is_news or self.done:
                return found

    def end(self) -> Talk[E]:
        """All looks, for those who only want the last."""
        while True:
            found = yield from self.next()
            if self.done:
                return found
