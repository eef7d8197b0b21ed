"""The route that takes files: upload once, send to many."""

from collections.abc import AsyncIterator

from litestar import post
from litestar.openapi.datastructures import ResponseSpec

from paceline.domain.errors import BadRequest
from paceline.domain.media import TYPES
from paceline.edge import Keys
from paceline.gateway.media import MediaDesk, Stored
from paceline.gateway.routes_common import KEY
from paceline.gateway.schemas import MediaStored
from paceline.kits.clock import Clock
from paceline.kits.forms import BINARY, MULTIPART, chunks_of, form_content, read_form
from paceline.kits.web import AnyRequest, Handler

FORM_OVERHEAD = 65_536
"""What a form may have around its file: boundaries, headers."""


def media_routes(media: MediaDesk, keys: Keys, clock: Clock) -> list[Handler]:
    @post(
        "/v1/media",
        status_code=201,
        summary="Upload a file once, to send it to many",
        tags=["Sending"],
        guards=[keys.requires("send")],
        security=KEY,
        opt={
            "content": form_content(["file"], file=BINARY) | {type_: {"schema": BINARY} for type_ in TYPES},
            "streams": True,
        },
        responses={201: ResponseSpec(MediaStored, description="Stored; the same file always has the same `mediaRef`")},
        request_max_body_size=media.limits.max_bytes + FORM_OVERHEAD,
    )
    async def upload(request: AnyRequest) -> MediaStored:
        """A form with a `file`, or the file itself as the body with its Content-Type. What it is, its bytes must
        confirm. It is kept while a job needs it, and for some weeks after its last use."""
        if request.content_type[0] != MULTIPART:
            return _answer(
                await media.take(_body(request), request.content_type[0], None, field="file", now_ms=clock.now_ms())
            )
        async with read_form(request) as form:
            form.only(("file",))
            file = form.file("file")
            if file is None:
                raise BadRequest("INVALID_REQUEST", "the form has no file", field="file")
            stored = await media.take(
                chunks_of(file), file.content_type, file.filename, field="file", now_ms=clock.now_ms()
            )
        return _answer(stored)

    return [upload]


async def _body(request: AnyRequest) -> AsyncIterator[bytes]:
    async for chunk in request.stream():
        if chunk:
            yield chunk


def _answer(stored: Stored) -> MediaStored:
    media = stored.media
    return MediaStored(
        media_ref=media.ref, type=media.type, size=media.size, sha256=media.sha256, expires_at=stored.expires_at
    )
