"""What every client for code that blocks is made of: it takes the steps of a conversation with httpx. `sync` and
`sync_fleet` name what such a client can do; `awaiting` is the same for asyncio."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import wraps
from typing import Generic, ParamSpec, Self, TypedDict, TypeVar, Unpack, overload

import httpx

from paceline.client.answers_jobs import Page
from paceline.client.calls import Call, Service
from paceline.client.reading import Ask, Lost, Pause, Reply
from paceline.client.talking import E, Outside, Pages, Retries, Talk, Talker, Watch
from paceline.client.wire import Body, Wire, lost

P = ParamSpec("P")
T = TypeVar("T")


class Group:
    def __init__(self, client: "Client") -> None:
        self._client = client


class Does(Generic[P, T]):
    """A method that makes a call of its arguments and returns the answer."""

    def __init__(self, make: Callable[P, Call[T]]) -> None:
        self.make = make

    @overload
    def __get__(self, group: None, owner: type) -> Self: ...
    @overload
    def __get__(self, group: Group, owner: type) -> Callable[P, T]: ...
    def __get__(self, group: Group | None, owner: type) -> Self | Callable[P, T]:
        if group is None:
            return self
        client = group._client

        @wraps(self.make)
        def method(*args: P.args, **kwargs: P.kwargs) -> T:
            return client.ask(self.make(*args, **kwargs))

        return method


class Each(Generic[P, T]):
    """A method that walks over all pages of a list."""

    def __init__(self, make: Callable[P, Call[Page[T]]]) -> None:
        self.make = make

    @overload
    def __get__(self, group: None, owner: type) -> Self: ...
    @overload
    def __get__(self, group: Group, owner: type) -> Callable[P, Iterator[T]]: ...
    def __get__(self, group: Group | None, owner: type) -> Self | Callable[P, Iterator[T]]:
        if group is None:
            return self
        client = group._client

        @wraps(self.make)
        def method(*args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
            return client._each(self.make(*args, **kwargs))

        return method


class Options(TypedDict, total=False):
    timeout_seconds: float
    """For each try; 30 if left out."""
    retries: Retries
    transport: httpx.BaseTransport
    """This and those below are for tests."""
    outside: Outside
    sleep: Callable[[float], None]


class Client(Group):
    """Asks one or more services at their addresses, all with the same key."""

    def __init__(self, urls: Mapping[Service, str], key: str, **options: Unpack[Options]) -> None:
        super().__init__(self)
        seconds, transport = options.get("timeout_seconds", 30.0), options.get("transport")
        self._wires = {service: Wire(url, key, seconds) for service, url in urls.items()}
        where = {service: wire.where for service, wire in self._wires.items()}
        self._talker = Talker(where, options.get("retries") or Retries(), options.get("outside") or Outside())
        # Making one takes a while; only an address beyond this machine needs another.
        kinds = {wire.trusts_env: wire for wire in self._wires.values()}
        self._https = {kind: httpx.Client(transport=transport, **wire.options()) for kind, wire in kinds.items()}
        self._sleep = options.get("sleep") or time.sleep

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for http in self._https.values():
            http.close()

    def ask(self, call: Call[T]) -> T:
        """Any call; the methods are made of this."""
        return self._run(self._talker.ask(call))

    def _each(self, call: Call[Page[T]]) -> Iterator[T]:
        pages = Pages(self._talker, call)
        while not pages.done:
            yield from self._run(pages.next())

    def _watch(self, call: Call[E], timeout_seconds: float, every_seconds: float) -> Iterator[E]:
        watch = Watch(self._talker, call, timeout_seconds, every_seconds)
        while not watch.done:
            yield self._run(watch.next())

    def _wait(self, call: Call[E], timeout_seconds: float, every_seconds: float) -> E:
        return self._run(Watch(self._talker, call, timeout_seconds, every_seconds).end())

    def _run(self, talk: Talk[T]) -> T:
        heard: Reply | Lost | None = None
        while True:
            try:
                step = talk.send(heard)
            except StopIteration as end:
                answer: T = end.value
                return answer
            heard = self._step(step)

    def _step(self, step: Ask | Pause) -> Reply | Lost | None:
        if isinstance(step, Pause):
            self._sleep(step.seconds)
            return None
        try:
            with self._open(step) as response:
                return self._reply(response, step)
        except httpx.HTTPError as error:
            return lost(error)

    def _open(self, step: Ask, *, is_stream: bool = False) -> AbstractContextManager[httpx.Response]:
        wire = self._wires[step.service]
        return self._https[wire.trusts_env].stream(**wire.request(step, is_stream=is_stream))

    def _reply(self, response: httpx.Response, step: Ask) -> Reply:
        body = Body(response, self._wires[step.service].where)
        for chunk in response.iter_bytes():
            body.add(chunk)
        return body.reply()
