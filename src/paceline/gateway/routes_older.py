"""Routes that older clients know: a form with contacts and a text or a picture; a single send under its old name."""

import msgspec
from litestar import MediaType, Response, post
from litestar.openapi.datastructures import ResponseSpec

from paceline.domain.media import Media
from paceline.edge import Keys, holder
from paceline.gateway.intake import Intake
from paceline.gateway.media import MediaDesk
from paceline.gateway.older import read_older
from paceline.gateway.once import Once
from paceline.gateway.routes_common import KEY
from paceline.gateway.schemas import JobAccepted, OlderSendRequest, SendAccepted, SendRequest
from paceline.kits.forms import BINARY, chunks_of, form_content, read_form
from paceline.kits.web import MEGABYTE, AnyRequest, Handler, json_answer, read_body

CONTACTS_LIMIT = 8 * MEGABYTE
"""A hundred thousand numbers with room to spare; who has more to say of each uses /v1/jobs."""


_TEXT = {"type": "string"}
_FORM = form_content(
    ["contacts"], contacts=_TEXT, message=_TEXT, image=BINARY, caption=_TEXT, sessionId=_TEXT, phone=_TEXT
)


def older_routes(once: Once, intake: Intake, media: MediaDesk, keys: Keys) -> list[Handler]:
    @post(
        "/api/messages",
        status_code=202,
        summary="Send a text or a picture to many, as a form",
        tags=["Older clients"],
        guards=[keys.requires("send")],
        security=KEY,
        opt={"content": _FORM},
        responses={202: ResponseSpec(JobAccepted, media_type=MediaType.JSON, description="Accepted")},
        request_max_body_size=media.limits.max_bytes + CONTACTS_LIMIT,
    )
    async def messages(request: AnyRequest) -> Response[bytes]:
        """multipart/form-data: `contacts` (a JSON list, or one number a line) and either `message` or an `image` file
        (with `caption`); `sessionId` or `phone` if all go from one number. Then as /v1/jobs."""
        async with read_form(request) as form:
            older = await read_older(form)
            image = older.image

            async def stored(now_ms: int) -> Media:
                assert image is not None
                chunks, type_, name = chunks_of(image), image.content_type, image.filename
                return (await media.take(chunks, type_, name, field="image", now_ms=now_ms, mode="image")).media

            async def work(job_id: str, key: str | None, now_ms: int) -> JobAccepted:
                return await intake.job(
                    older.job,
                    by=holder(request),
                    job_id=job_id,
                    idem_key=key,
                    now_ms=now_ms,
                    file=None if image is None else stored,
                )

            # By its content: a repeated form has another boundary.
            answer = await once.answer(request, work, body=msgspec.json.encode(older.job))
        return json_answer(answer, 202)

    @post(
        "/api/send",
        status_code=200,
        summary="Send one message (an older name of /api/v1/send)",
        tags=["Older clients"],
        guards=[keys.requires("send")],
        security=KEY,
        opt={"body": OlderSendRequest},
        responses={200: ResponseSpec(SendAccepted, media_type=MediaType.JSON, description="Queued")},
    )
    async def send(request: AnyRequest) -> Response[bytes]:
        """As /api/v1/send, with the text in `text`."""
        older = await read_body(request, OlderSendRequest)
        asked = SendRequest(
            to=older.to,
            message=older.text,
            session_id=older.session_id,
            phone=older.phone,
            priority=older.priority,
            send_at=older.send_at,
        )

        async def work(job_id: str, key: str | None, now_ms: int) -> SendAccepted:
            return await intake.send(
                asked, by=holder(request), job_id=job_id, idem_key=key, now_ms=now_ms, text_field="text"
            )

        return json_answer(await once.answer(request, work), 200)

    return [messages, send]
