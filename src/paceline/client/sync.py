"""The client of the gateway for code that blocks. What it can do is named here; how a call is made is in `requests_*`,
when it is repeated in `talking`. `aio` is the same to await, `sync_fleet` adds what operators do."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Unpack

import httpx

from paceline.client import requests_lists as lists
from paceline.client import requests_sending as sending
from paceline.client.answers_events import Event
from paceline.client.answers_jobs import JobStatus, MessageStatus
from paceline.client.blocking import Client, Does, Each, Group, Options
from paceline.client.calls import Service
from paceline.client.reading import Lost, Reply
from paceline.client.streaming import Stream
from paceline.client.wire import lost


class Jobs(Group):
    create = Does(sending.create_job)
    plan = Does(sending.plan_job)
    get = Does(sending.get_job)
    timeline = Does(sending.job_timeline)
    backlog = Does(sending.backlog)
    list = Does(sending.list_jobs)
    each = Each(sending.list_jobs)
    messages = Does(sending.job_messages)
    each_message = Each(sending.job_messages)
    cancel = Does(sending.cancel_job)
    pause = Does(sending.pause_job)
    resume = Does(sending.resume_job)

    def watch(self, job_id: str, *, timeout_seconds: float = 600, every_seconds: float = 1) -> Iterator[JobStatus]:
        """How it is doing, at every change, until it has ended; `TimedOut` if it has not by then."""
        return self._client._watch(sending.get_job(job_id), timeout_seconds, every_seconds)

    def wait(self, job_id: str, *, timeout_seconds: float = 600, every_seconds: float = 1) -> JobStatus:
        """How it ended; `TimedOut`, with how it stands in `last`, if it has not by then."""
        return self._client._wait(sending.get_job(job_id), timeout_seconds, every_seconds)


class Messages(Group):
    get = Does(sending.get_message)
    cancel = Does(sending.cancel_message)
    find = Does(sending.find_messages)
    each = Each(sending.find_messages)

    def wait(self, message_id: str, *, timeout_seconds: float = 600, every_seconds: float = 1) -> MessageStatus:
        """How it ended: sent or beyond, failed, expired, canceled, suppressed."""
        return self._client._wait(sending.get_message(message_id), timeout_seconds, every_seconds)


class Queues(Group):
    get = Does(lists.queue)
    each = Each(lists.queue)
    cancel = Does(lists.cancel_message)
    stats = Does(lists.stats)


class Media(Group):
    upload = Does(sending.upload)


class Suppressions(Group):
    add = Does(lists.suppress)
    import_csv = Does(lists.import_suppressions)
    list = Does(lists.list_suppressions)
    each = Each(lists.list_suppressions)
    export_csv = Does(lists.export_suppressions)
    remove = Does(lists.lift_suppression)


class Recipients(Group):
    erase = Does(lists.erase)


class DeadLetters(Group):
    list = Does(lists.list_letters)
    each = Each(lists.list_letters)
    replay = Does(lists.replay)
    replay_all = Does(lists.replay_all)


class Keys(Group):
    create = Does(lists.create_key)
    list = Does(lists.list_keys)
    each = Each(lists.list_keys)
    own = Does(lists.own_key)
    revoke = Does(lists.revoke_key)


class Webhooks(Group):
    create = Does(lists.create_webhook)
    list = Does(lists.list_webhooks)
    each = Each(lists.list_webhooks)
    remove = Does(lists.remove_webhook)
    deliveries = Does(lists.deliveries)
    each_delivery = Each(lists.deliveries)
    redrive = Does(lists.redrive)


class AsksGateway(Client):
    """All that a gateway can be asked."""

    health = Does(lists.health)
    send = Does(sending.send)
    send_batch = Does(sending.send_batch)

    def __init__(self, urls: Mapping[Service, str], key: str, **options: Unpack[Options]) -> None:
        super().__init__(urls, key, **options)
        self.jobs = Jobs(self)
        self.messages = Messages(self)
        self.queues = Queues(self)
        self.media = Media(self)
        self.suppressions = Suppressions(self)
        self.recipients = Recipients(self)
        self.dead_letters = DeadLetters(self)
        self.keys = Keys(self)
        self.webhooks = Webhooks(self)

    def events(self, types: str | Sequence[str] = (), *, after: str | None = None) -> Iterator[Event]:
        """What happens from now on, or after the event with that id; without end. A connection that ends is opened
        again where it stopped. An event of type `gap` says that some are no longer kept."""
        stream = Stream(self._talker, types, after)
        while True:
            heard: Reply | Lost | None = None
            try:
                with self._open(asked := stream.ask(), is_stream=True) as response:
                    if response.status_code == httpx.codes.OK:
                        for chunk in response.iter_bytes():
                            yield from stream.feed(chunk)
                    else:
                        heard = self._reply(response, asked)
            except httpx.HTTPError as error:
                heard = lost(error)
            self._sleep(stream.ended(heard))


class Paceline(AsksGateway):
    """The public gateway at `url`, asked with `key`. Safe to share between threads; close it, or use `with`."""

    def __init__(self, url: str, key: str, **options: Unpack[Options]) -> None:
        super().__init__({Service.GATEWAY: url}, key, **options)
