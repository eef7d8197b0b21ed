"""The gateway's HTTP: each route reads its body, asks the logic beside it, and answers."""

import hashlib
from collections.abc import Awaitable, Callable
from typing import Annotated

import msgspec
from litestar import MediaType, Response, delete, get, post
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import FromPath, QueryParameter

from paceline.domain.errors import Conflict, NotFound
from paceline.domain.ids import is_job_id
from paceline.edge import Keys, holder, service
from paceline.gateway import answers
from paceline.gateway.idempotency import HEADER, Idempotency, checked
from paceline.gateway.intake import Intake
from paceline.gateway.pressure import Pressure
from paceline.gateway.schemas import (
    JobAccepted,
    JobCanceled,
    JobRequest,
    JobStatus,
    MessageStatus,
    Removed,
    SendAccepted,
    SendRequest,
    Suppressed,
    SuppressionPage,
    SuppressRequest,
)
from paceline.gateway.suppressions import Suppressions
from paceline.kits.clock import Clock
from paceline.kits.web import MEGABYTE, AnyRequest, Handler, Service, json_answer, read_body
from paceline.store import keys as keyspace
from paceline.store.store import Store

JOB_BODY_LIMIT = 32 * MEGABYTE
_KEY = [{"apiKey": list[str]()}]

Cursor = Annotated[str, QueryParameter(max_length=64, description="nextCursor of the page before")]
Limit = Annotated[int, QueryParameter(ge=1, le=1_000)]

_encode = msgspec.json.Encoder().encode


def create_app(store: Store, intake: Intake, keys: Keys, clock: Clock) -> Service:
    return service(
        name="gateway",
        description="Takes jobs and messages, and tells how they are doing. Times are Unix milliseconds.",
        routes=[
            *_intake_routes(store, intake, keys, clock),
            *_job_routes(store, intake, keys, clock),
            *_suppression_routes(Suppressions(store), keys, clock),
            _health(store),
        ],
    )


def _intake_routes(store: Store, intake: Intake, keys: Keys, clock: Clock) -> list[Handler]:
    idempotency, pressure = Idempotency(store), Pressure(store)

    async def answer_once(
        request: AnyRequest, work: Callable[[str, str | None, int], Awaitable[msgspec.Struct]]
    ) -> bytes:
        """Under the caller's Idempotency-Key, if there is one."""
        now_ms, key = clock.now_ms(), checked(request.headers.get(HEADER))
        await pressure.check(now_ms)

        async def encoded(job_id: FromPath[str]) -> bytes:
            return _encode(await work(job_id, key, now_ms))

        # A large body is hashed only if the hash is needed.
        body = hashlib.sha256(request.url.path.encode() + b"\n" + await request.body()).hexdigest() if key else ""
        job_id = intake.new_job_id(now_ms)
        return await idempotency.answer(
            by=holder(request), key=key, body=body, job_id=job_id, now_ms=now_ms, work=encoded
        )

    @post(
        "/v1/jobs",
        status_code=202,
        summary="Send a text to many",
        tags=["Sending"],
        guards=[keys.requires("send")],
        security=_KEY,
        opt={"body": JobRequest},
        responses={202: ResponseSpec(JobAccepted, media_type=MediaType.JSON, description="Accepted")},
        request_max_body_size=JOB_BODY_LIMIT,
    )
    async def create_job(request: AnyRequest) -> Response[bytes]:
        """1 to 100,000 contacts. Bad ones are listed and skipped, or all refused with `strict`. Give an Idempotency-Key
        header to be able to repeat the request safely."""
        asked = await read_body(request, JobRequest)

        async def work(job_id: str, key: str | None, now_ms: int) -> JobAccepted:
            return await intake.job(asked, by=holder(request), job_id=job_id, idem_key=key, now_ms=now_ms)

        return json_answer(await answer_once(request, work), 202)

    @post(
        "/api/v1/send",
        status_code=200,
        summary="Send one message",
        tags=["Sending"],
        guards=[keys.requires("send")],
        security=_KEY,
        opt={"body": SendRequest},
        responses={200: ResponseSpec(SendAccepted, media_type=MediaType.JSON, description="Queued")},
    )
    async def send(request: AnyRequest) -> Response[bytes]:
        """The number is chosen at once unless one is named. Give an Idempotency-Key header to be able to repeat it
        safely."""
        asked = await read_body(request, SendRequest)

        async def work(job_id: str, key: str | None, now_ms: int) -> SendAccepted:
            return await intake.send(asked, by=holder(request), job_id=job_id, idem_key=key, now_ms=now_ms)

        return json_answer(await answer_once(request, work), 200)

    return [create_job, send]


def _job_routes(store: Store, intake: Intake, keys: Keys, clock: Clock) -> list[Handler]:
    @get(
        "/v1/jobs/{job_id:str}",
        summary="How a job is doing",
        tags=["Jobs"],
        guards=[keys.requires("read")],
        security=_KEY,
    )
    async def job_status(job_id: FromPath[str]) -> JobStatus:
        now_ms = clock.now_ms()
        view = await store.jobs.view(job_id) if is_job_id(job_id) else None
        if view is None:
            raise _no_job()
        return answers.job_status(view, await intake.watcher.look(now_ms), now_ms=now_ms)

    @post(
        "/v1/jobs/{job_id:str}/cancel",
        status_code=200,
        summary="Stop what no worker has claimed",
        tags=["Jobs"],
        guards=[keys.requires("send")],
        security=_KEY,
    )
    async def cancel_job(job_id: FromPath[str]) -> JobCanceled:
        """Nothing vanishes: each message that is stopped ends `canceled`."""
        if not is_job_id(job_id):
            raise _no_job()
        answer = await store.jobs.cancel(job_id, now_ms=clock.now_ms())
        if answer.code == "GONE":
            raise _no_job()
        if answer.code == "CLOSED":
            raise Conflict("JOB_CLOSED", "this job has ended already", details={"state": answer.state})
        return JobCanceled(job_id=job_id, state="CANCELED", canceled=answer.canceled, open=answer.open)

    @get(
        "/api/v1/messages/{message_id:str}/status",
        summary="How a message is doing, and why it waits",
        tags=["Messages"],
        guards=[keys.requires("read")],
        security=_KEY,
    )
    async def message_status(message_id: FromPath[str]) -> MessageStatus:
        view = await store.jobs.message(message_id)
        if view is None:
            raise NotFound("UNKNOWN_MESSAGE", "there is no such message", field="messageId")
        return answers.message_status(view, now_ms=clock.now_ms())

    return [job_status, cancel_job, message_status]


def _suppression_routes(suppressions: Suppressions, keys: Keys, clock: Clock) -> list[Handler]:
    @get(
        "/v1/suppressions",
        summary="Who must not be written to",
        tags=["Suppressions"],
        guards=[keys.requires("read")],
        security=_KEY,
    )
    async def list_suppressions(cursor: Cursor = "", limit: Limit = 100) -> SuppressionPage:
        return await suppressions.page(cursor, limit)

    @post(
        "/v1/suppressions",
        status_code=200,
        summary="Never write to these people again",
        tags=["Suppressions"],
        guards=[keys.requires("send")],
        security=_KEY,
        opt={"body": SuppressRequest},
    )
    async def add_suppressions(request: AnyRequest) -> Suppressed:
        """Holds at once, also for what is accepted already: it is checked again before each message goes out."""
        asked = await read_body(request, SuppressRequest)
        return await suppressions.add(asked, by=holder(request), now_ms=clock.now_ms())

    @delete(
        "/v1/suppressions/{to:str}",
        status_code=200,
        summary="Take a person off the list",
        tags=["Suppressions"],
        guards=[keys.requires("admin")],
        security=_KEY,
    )
    async def remove_suppression(to: FromPath[str]) -> Removed:
        """Needs the admin scope: a key that may send must not be able to lift what stops it."""
        return await suppressions.remove(to)

    return [list_suppressions, add_suppressions, remove_suppression]


def _health(store: Store) -> Handler:
    @get("/health", summary="Is it working?", tags=["Service"], security=[])
    async def health() -> dict[str, str]:
        """Open to everybody. 503 while the store does not answer."""
        await store.pacers.queue_status((("due", "ZCARD", keyspace.due()),))
        return {"status": "ok"}

    return health


def _no_job() -> NotFound:
    return NotFound("UNKNOWN_JOB", "there is no such job", field="jobId")
