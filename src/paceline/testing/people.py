"""The people of a run who write: a client who registers the fleet and posts jobs. Neighbour: `operators`.

They use what the routes use, and insist until they are answered.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from paceline.domain.errors import Conflict, RequestError, Unavailable
from paceline.domain.media import Media
from paceline.gateway.idempotency import Idempotency
from paceline.gateway.intake import Intake
from paceline.gateway.schemas import JobRequest, SendRequest
from paceline.store.guards import IDEMPOTENCY_TTL_S, Suppression
from paceline.store.lists import JobFilter
from paceline.store.store import Store
from paceline.testing.plans import JobPlan, PhonePlan
from paceline.testing.steps import Pause, Point, Process, ProcessDied

if TYPE_CHECKING:
    from paceline.testing.world import World


class People:
    def __init__(self, world: "World") -> None:
        self.world = world
        self.sim = world.sim
        self.scenario = world.scenario
        self.outside = world.outside

    async def insist(self, process: Process, deed: Callable[[], Awaitable[Any]]) -> Any:
        """As a careful caller does: again, with the same id, until there is an answer."""
        while True:
            try:
                await Point(process)
                return await deed()
            except (ProcessDied, Unavailable):
                await Pause(self.sim.now_ms + 700)


class Client(People):
    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self.done = False

    async def live(self, process: Process) -> None:
        """Registers the fleet, then does everything the scenario says, each at its time and until it is answered."""
        store = self.world.store(self.world.gateway)
        intake = Intake(store, self.world.rules, Random(self.scenario.seed), media=self.world.files)
        if self.world.customer is not None:
            await self.insist(process, self.world.customer.subscribe)
        if self.scenario.around.proxies:
            await self.insist(process, partial(self._add_proxies, store))
        for phone in self.scenario.phones:
            await self.insist(process, partial(self._register, store, phone))
        for at_ms, deed in sorted(self._deeds(store, intake), key=lambda item: item[0]):
            await Pause(at_ms)
            await self.insist(process, deed)
        self.done = True

    def _deeds(self, store: Store, intake: Intake) -> list[tuple[int, Callable[[], Awaitable[None]]]]:
        deeds: list[tuple[int, Callable[[], Awaitable[None]]]] = []
        idempotency = Idempotency(store, f"caller-{self.sim.now_ms}")
        for job in self.scenario.jobs:
            deeds.append((job.at_ms, partial(self._submit, store, intake, idempotency, job)))
        for at_ms, to in self.scenario.suppressions:
            deeds.append((at_ms, partial(self._suppress, store, to)))
        deeds.append((self.scenario.outage[0], self._outage))
        for at_ms, index in self.scenario.cancels:
            deeds.append((at_ms, partial(self._cancel, store, self.scenario.jobs[index])))
        return deeds

    async def _add_proxies(self, store: Store) -> None:
        urls = [proxy_url(number) for number in range(self.scenario.around.proxies)]
        await store.inventory.add_proxies(urls, limit=100, by="world", now_ms=self._now_ms)

    @property
    def _now_ms(self) -> int:
        """By the gateway's clock."""
        return self.sim.time_of(self.world.gateway)

    @property
    def _driver(self) -> str:
        """As far as the platform knows: one that goes out by a proxy, if there are any."""
        return "baileys" if self.scenario.around.proxies else "simulated"

    async def _register(self, store: Store, phone: PhonePlan) -> None:
        await store.sessions.register(
            phone.session, phone.phone, driver=self._driver, created_at_ms=self.scenario.start_ms - phone.age_ms,
            timezone=phone.timezone, tags=[], limit=4, now_ms=self._now_ms,
        )  # fmt: skip

    async def _submit(self, store: Store, intake: Intake, idempotency: Idempotency, job: JobPlan) -> None:
        """The caller knows no job id, only its Idempotency-Key; each try brings a new id, and one of them counts. A key
        that has ended meanwhile (a clock was set forward) protects nobody: then the caller looks before it repeats."""
        posted_at = self.world.posted_at.setdefault(job.name, self.sim.now_ms)
        if self.sim.now_ms - posted_at >= IDEMPOTENCY_TTL_S * 1_000 and (known := await self._accepted(store, job)):
            self.world.jobs[known] = job
            return
        try:
            answer = await idempotency.answer(
                by="world", key=job.name, body=job.name, job_id=intake.new_job_id(self._now_ms),
                now_ms=self._now_ms, work=partial(self._accept, intake, job),
            )  # fmt: skip
            await Point(self.world.gateway)
        except Conflict as error:
            raise Unavailable("the first request is still in flight") from error
        except RequestError:
            # Refused, e.g. everybody in it said stop before: then nothing of it may ever be sent.
            return
        named = msgspec.json.decode(answer)
        self.world.jobs[named.get("jobId") or named["messageId"].partition(":")[0]] = job

    async def _accepted(self, store: Store, job: JobPlan) -> str | None:
        """The id under which it was accepted after all, by its text, which no other has."""
        page = await store.lists.jobs(JobFilter(by="world"), None, limit=1_000, look=1_000)
        return next((listed.job.job_id for listed in page.jobs if listed.job.text == job.text), None)

    async def _accept(self, intake: Intake, job: JobPlan, job_id: str) -> bytes:
        now_ms = self._now_ms
        send_at = job.at_ms + job.delay_ms if job.at_ms + job.delay_ms > now_ms else None
        answer: msgspec.Struct
        if job.single:
            single = SendRequest(
                to=job.contacts[0], message=job.text, priority=job.priority, send_at=send_at, phone=job.phone
            )
            answer = await intake.send(single, by="world", job_id=job_id, idem_key=job.name, now_ms=now_ms)
        else:
            file = await self._upload(job, now_ms) if job.file else None
            request = JobRequest(
                mode="document" if file else "message",
                media_ref=file.ref if file else None,
                contacts=list(job.contacts),
                text=job.text,
                priority=job.priority,
                on_unknown=job.on_unknown,  # type: ignore[arg-type]
                validity_seconds=job.validity_seconds,
                send_at=send_at,
                spread_minutes=job.spread_minutes,
                strategy=job.strategy,
                phone=job.phone,
            )
            answer = await intake.job(request, by="world", job_id=job_id, idem_key=job.name, now_ms=now_ms)
        return msgspec.json.encode(answer)

    async def _upload(self, job: JobPlan, now_ms: int) -> Media:
        file = self.world.files.keep(job.file)
        await self.world.gateway_store.media.save(file, now_ms=now_ms)
        return file

    async def _outage(self) -> None:
        worker = self.world.workers.of(self.scenario.phones[0].session)
        self.sim.freeze(worker, self.scenario.outage[1])

    async def _suppress(self, store: Store, to: str) -> None:
        await store.guards.suppress([Suppression(to, self._now_ms)])
        self.outside.suppressed_at.setdefault(to, self.sim.now_ms)

    async def _cancel(self, store: Store, job: JobPlan) -> None:
        for job_id in self.world.ids_of(job):
            await cancel_job(self.world, store, job_id)


def proxy_url(number: int) -> str:
    return f"socks5h://user:secret@10.0.0.{number + 1}:1080"


async def cancel_job(world: "World", store: Store, job_id: str) -> None:
    if (await store.jobs.cancel(job_id, now_ms=world.sim.time_of(world.gateway))).code == "OK":
        world.canceled_at.setdefault(job_id, world.sim.now_ms)
