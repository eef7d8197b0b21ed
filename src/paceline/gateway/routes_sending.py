"""Routes that send: a job, one message, a batch. Each may be repeated safely under an Idempotency-Key."""

import hashlib
from collections.abc import Awaitable, Callable

import msgspec
from litestar import MediaType, Response, post
from litestar.openapi.datastructures import ResponseSpec

from paceline.edge import Keys, holder
from paceline.gateway.idempotency import HEADER, Idempotency, checked
from paceline.gateway.intake import Intake
from paceline.gateway.pressure import Pressure
from paceline.gateway.routes_common import KEY
from paceline.gateway.schemas import (
    BatchAccepted,
    BatchRequest,
    JobAccepted,
    JobRequest,
    SendAccepted,
    SendRequest,
)
from paceline.kits.clock import Clock
from paceline.kits.web import MEGABYTE, AnyRequest, Handler, json_answer, read_body
from paceline.store.store import Store

JOB_BODY_LIMIT = 32 * MEGABYTE

_encode = msgspec.json.Encoder().encode


def sending_routes(store: Store, intake: Intake, keys: Keys, clock: Clock) -> list[Handler]:
    idempotency, pressure = Idempotency(store), Pressure(store)

    async def answer_once(
        request: AnyRequest, work: Callable[[str, str | None, int], Awaitable[msgspec.Struct]]
    ) -> bytes:
        """Under the caller's Idempotency-Key, if there is one."""
        now_ms, key = clock.now_ms(), checked(request.headers.get(HEADER))
        await pressure.check(now_ms)

        async def encoded(job_id: str) -> bytes:
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
        security=KEY,
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
        security=KEY,
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

    @post(
        "/api/v1/send/batch",
        status_code=200,
        summary="Send each of many people a text of their own",
        tags=["Sending"],
        guards=[keys.requires("send")],
        security=KEY,
        opt={"body": BatchRequest},
        responses={200: ResponseSpec(BatchAccepted, media_type=MediaType.JSON, description="Queued")},
    )
    async def send_batch(request: AnyRequest) -> Response[bytes]:
        """1 to 10,000 messages, one job. With `spreadMinutes` the i-th goes i/n of that time from now at the earliest.
        Texts go out as they are. One bad message refuses all of them; suppressed people are skipped and counted."""
        asked = await read_body(request, BatchRequest)

        async def work(job_id: str, key: str | None, now_ms: int) -> BatchAccepted:
            return await intake.batch(asked, by=holder(request), job_id=job_id, idem_key=key, now_ms=now_ms)

        return json_answer(await answer_once(request, work), 200)

    return [create_job, send, send_batch]
