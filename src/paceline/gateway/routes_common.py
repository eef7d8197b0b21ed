"""What the gateway's routes share: the guard's mark in the documentation, the shape of a page, a job's two bodies."""

from collections.abc import Awaitable, Callable
from typing import Annotated

import msgspec
from litestar.params import QueryParameter

from paceline.domain.errors import BadRequest
from paceline.gateway import csv_contacts
from paceline.gateway.schemas import JobRequest
from paceline.kits.web import AnyRequest, read_body

KEY = [{"apiKey": list[str]()}]
"""In the documentation: this route needs a key."""
CSV_BODY = {"text_bodies": {"text/csv": csv_contacts.EXAMPLE}}
"""In the documentation: this route takes a job's contacts as CSV too."""

Cursor = Annotated[str, QueryParameter(max_length=64, description="nextCursor of the page before")]
Limit = Annotated[int, QueryParameter(ge=1, le=1_000)]

_UTF8 = ("utf-8", "utf8", "us-ascii")


async def read_job(request: AnyRequest, breathe: Callable[[], Awaitable[None]]) -> JobRequest:
    """A job as JSON; or its contacts as CSV, with everything else in the query."""
    content_type, parameters = request.content_type
    if content_type != "text/csv":
        return await read_body(request, JobRequest)
    if parameters.get("charset", "utf-8").strip('"').lower() not in _UTF8:
        raise BadRequest("INVALID_CSV", "send the file as UTF-8", field="Content-Type")
    asked = csv_contacts.options(request.query_params.multi_items())
    sheet = csv_contacts.Sheet(await request.body())
    for _ in sheet.stretches():
        await breathe()
    return msgspec.structs.replace(asked, contacts=sheet.contacts)
