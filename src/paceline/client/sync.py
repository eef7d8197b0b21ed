"""The client for code that blocks. What it can do is named here; how a call is made is in `requests_*`, when it is
repeated in `talking`. `aio` is the same to await."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Generic, ParamSpec, Self, TypeVar, overload

import httpx

from paceline.client import requests_lists as lists
from paceline.client import requests_sending as sending
from paceline.client.answers_events import Event
from paceline.client.answers_jobs import JobStatus, MessageStatus, Page
from paceline.client.calls import Call
from paceline.client.reading import Ask, Lost, Pause, Reply
from paceline.client.streaming import Stream
from paceline.client.talking import E, Outside, Pages, Retries, Talk, Talker, Watch
from paceline.client.wire import Body, Wire, lost

P = ParamSpec("P")
T = TypeVar("T")


class _Group:
    def __init__(self, client: "Paceline") -> None:
        self._client = client


class _Does(Generic[P, T]):
    """A method that makes a call of its arguments and returns the answer."""

    def __init__(self, make: Callable[P, Call[T]]) -> None:
        self.make = make

    @overload
    def __get__(self, group: None, owner: type) -> Self: ...
    @overload
    def __get__(self, group: _Group, owner: type) -> Callable[P, T]: ...
    def __get__(self, group: _Group | None, owner: type) -> Self | Callable[P, T]:
        if group is None:
            return self
        client = group._client

        @wraps(self.make)
        def method(*args: P.args, **kwargs: P.kwargs) -> T:
            return client.ask(self.make(*args, **kwargs))

        return method


class _Each(Generic[P, T]):
    """A method that walks over all pages of a list."""

    def __init__(self, make: Callable[P, Call[Page[T]]]) -> None:
        self.make = make

    @overload
    def __get__(self, group: None, owner: type) -> Self: ...
    @overload
    def __get__(self, group: _Group, owner: type) -> Callable[P, Iterator[T]]: ...
    def __get__(self, group: _Group | None, owner: type) -> Self | Callable[P, Iterator[T]]:
        if group is None:
            return self
        client = group._client

        @wraps(self.make)
        def method(*args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
            return client._each(self.make(*args, **kwargs))

        return method


class Jobs(_Group):
    create = _Does(sending.create_job)
    plan = _Does(sending.plan_job)
    get = _Does(sending.get_job)
    list = _Does(sending.list_jobs)
    each = _Each(sending.list_jobs)
    messages = _Does(sending.job_messages)
    each_message = _Each(sending.job_messages)
    cancel = _Does(sending.cancel_job)
    pause = _Does(sending.pause_job)
    resume = _Does(sending.resume_job)

    def watch(self, job_id: str, *, timeout_seconds: float = 600, every_seconds: float = 1) -> Iterator[JobStatus]:
        """How it is doing, at every change, until it has ended; `TimedOut` if it has not by then."""
        return self._client._watch(sending.get_job(job_id), timeout_seconds, every_seconds)

    def wait(self, job_id: str, *, timeout_seconds: float = 600, every_seconds: float = 1) -> JobStatus:
        """How it ended; `TimedOut`, with how it stands in `last`, if it has not by then."""
        return self._client._wait(sending.get_job(job_id), timeout_seconds, every_seconds)


class Messages(_Group):
    get = _Does(sending.get_message)
    find = _Does(sending.find_messages)
    each = _Each(sending.find_messages)

    def wait(self, message_id: str, *, timeout_seconds: float = 600, every_seconds: float = 1) -> MessageStatus:
        """How it ended: sent or beyond, failed, expired, canceled, suppressed."""
        return self._client._wait(sending.get_message(message_id), timeout_seconds, every_seconds)


class Queues(_Group):
    get = _Does(lists.queue)
    each = _Each(lists.queue)
    cancel = _Does(lists.cancel_message)
    stats = _Does(lists.stats)


class Media(_Group):
    upload = _Does(sending.upload)


class Suppressions(_Group):
    add = _Does(lists.suppress)
    import_csv = _Does(lists.import_suppressions)
    list = _Does(lists.list_suppressions)
    each = _Each(lists.list_suppressions)
    export_csv = _Does(lists.export_suppressions)
    remove = _Does(lists.lift_suppression)


class Recipients(_Group):
    erase = _Does(lists.erase)


class DeadLetters(_Group):
    list = _Does(lists.list_letters)
    each = _Each(lists.list_letters)
    replay = _Does(lists.replay)
    replay_all = _Does(lists.replay_all)


class Keys(_Group):
    create = _Does(lists.create_key)
    list = _Does(lists.list_keys)
    each = _Each(lists.list_keys)
    revoke = _Does(lists.revoke_key)


class Webhooks(_Group):
    create = _Does(lists.create_webhook)
    list = _Does(lists.list_webhooks)
    each = _Each(lists.list_webhooks)
    remove = _Does(lists.remove_webhook)
    deliveries = _Does(lists.deliveries)
    each_delivery = _Each(lists.deliveries)
    redrive = _Does(lists.redrive)


class Paceline(_Group):
    """The public gateway at `url`, asked with `key`. Safe to share between threads; close it, or use `with`."""

    health = _Does(lists.health)
    send = _Does(sending.send)
    send_batch = _Does(sending.send_batch)

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout_seconds: float = 30,
        retries: Retries | None = None,
        transport: httpx.BaseTransport | None = None,
        outside: Outside | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`timeout_seconds` is for each try. `transport`, `outside` and `sleep` are for tests."""
        super().__init__(self)
        self._wire = Wire(url, key, timeout_seconds)
        self._talker = Talker(self._wire.where, retries or Retries(), outside or Outside())
        self._http = httpx.Client(transport=transport, **self._wire.options())
        self._sleep = sleep
        self.jobs = Jobs(self)
        self.messages = Messages(self)
        self.queues = Queues(self)
        self.media = Media(self)
        self.suppressions = Suppressions(self)
        self.recipients = Recipients(self)
        self.dead_letters = DeadLetters(self)
        self.keys = Keys(self)
        self.webhooks = Webhooks(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def ask(self, call: Call[T]) -> T:
        """Any call; the methods are made of this."""
        return self._run(self._talker.ask(call))

    def events(self, types: str | Sequence[str] = (), *, after: str | None = None) -> Iterator[Event]:
        """What happens from now on, or after the event with that id; without end. A connection that ends is opened
        again where it stopped. An event of type `gap` says that some are no longer kept."""
        stream = Stream(self._talker, types, after)
        while True:
            heard: Reply | Lost | None = None
            try:
                with self._http.stream(**self._wire.request(stream.ask(), is_stream=True)) as response:
                    if response.status_code == httpx.codes.OK:
                        for chunk in response.iter_bytes():
                            yield from stream.feed(chunk)
                    else:
                        heard = self._reply(response)
            except httpx.HTTPError as error:
                heard = lost(error)
            self._sleep(stream.ended(heard))

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
            with self._http.stream(**self._wire.request(step)) as response:
                return self._reply(response)
        except httpx.HTTPError as error:
            return lost(error)

    def _reply(self, response: httpx.Response) -> Reply:
        body = Body(response, self._wire.where)
        for chunk in response.iter_bytes():
            body.add(chunk)
        return body.reply()
