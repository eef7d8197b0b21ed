"""Routes that send: a job, one message, a batch. Each may be repeated safely under an Idempotency-Key."""

from litestar import MediaType, Response, post
from litestar.openapi.datastructures import ResponseSpec

from paceline.edge import Keys, holder
from paceline.gateway.intake import Intake
from paceline.gateway.once import Once
from paceline.gateway.plain_sends import PlainSends
from paceline.gateway.routes_common import CSV_BODY, KEY, read_job
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


def sending_routes(store: Store, intake: Intake, keys: Keys, clock: Clock) -> list[Handler]:
    once = Once(store, intake, clock)

    @post(
        "/v1/jobs",
        status_code=202,
        summary="Send a text to many",
        tags=["Sending"],
        guards=[keys.requires("send")],
        security=KEY,
        opt={"body": JobRequest, **CSV_BODY},
        responses={202: ResponseSpec(JobAccepted, media_type=MediaType.JSON, description="Accepted")},
        request_max_body_size=JOB_BODY_LIMIT,
    )
    async def create_job(request: AnyRequest) -> Response[bytes]:
        """1 to 100,000 contacts. Bad ones are listed and skipped, or all refused with `strict`. Give an Idempotency-Key
        header to be able to repeat the request safely. The contacts may come as `text/csv` too: a header row with `to`,
        optionally `clientRef` and `timezone`, and a variable in every other column; the other fields are query
        parameters then, and only then."""
        asked = await read_job(request, intake.breathe)

        async def work(job_id: str, key: str | None, now_ms: int) -> JobAccepted:
            return await intake.job(asked, by=holder(request), job_id=job_id, idem_key=key, now_ms=now_ms)

        return json_answer(await once.answer(request, work), 202)

    async def one(request: AnyRequest) -> bytes:
        asked = await read_body(request, SendRequest)

        async def work(job_id: str, key: str | None, now_ms: int) -> SendAccepted:
            return await intake.send(asked, by=holder(request), job_id=job_id, idem_key=key, now_ms=now_ms)

        return await once.answer(request, work)

    @post(
        "/api/v1/send",
        status_code=200,
        summary="Send one message",
        tags=["Sending"],
        guards=[keys.requires("send")],
        security=KEY,
        opt={"body": SendRequest, "direct": one, "brief": PlainSends(store, intake, keys, clock)},
        responses={200: ResponseSpec(SendAccepted, media_type=MediaType.JSON, description="Queued")},
    )
    async def send(request: AnyRequest) -> Response[bytes]:
        """The number is chosen at once unless one is named. Give an Idempotency-Key header to be able to repeat it
        safely."""
        return json_answer(await one(request), 200)

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

        return json_answer(await once.answer(request, work), 200)

    return [create_job, send, send_batch]
