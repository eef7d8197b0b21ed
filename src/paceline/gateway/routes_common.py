"""What the gateway's routes share: the guard's mark in the documentation, the shape of a page, a job's two bodies."""

from collections.abc import Awaitable, Callable
from operator import attrgetter
from typing import Annotated, Any

import msgspec
from litestar.params import QueryParameter

from paceline import apidoc
from paceline.domain.errors import BadRequest
from paceline.domain.text import variables
from paceline.gateway import checks, csv_contacts
from paceline.gateway.glance import people_among
from paceline.gateway.schemas import JobRequest
from paceline.kits import queries
from paceline.kits.strict_json import Part
from paceline.kits.web import AnyRequest, decode, read_body

KEY = apidoc.KEY
CSV_BODY = {"text_bodies": {"text/csv": csv_contacts.EXAMPLE}, "any_query": True}
"""This route takes a job's contacts as CSV too; `read_job` minds its query."""

Cursor = Annotated[str, QueryParameter(max_length=64, description="nextCursor of the page before")]
Limit = Annotated[int, QueryParameter(ge=1, le=1_000, description="items in a page")]

_UTF8 = ("utf-8", "utf8", "us-ascii")


class _JobIn(JobRequest, frozen=True, kw_only=True):
    """Metadata as it stands there: a megabyte of it would be forty as objects, before anybody could measure it."""

    metadata: msgspec.Raw = msgspec.Raw(b"{}")  # type: ignore[assignment]


class _Contacts(msgspec.Struct):
    contacts: msgspec.Raw


def _contacts_of(body: bytes, job: _JobIn) -> Part:
    """As they stand there, and how many fields they have. One that is given as its default counts as none, which only
    costs a longer look."""
    people = people_among(job.contacts)
    values = list(map(attrgetter("vars"), people))
    fields = len(people) + sum(map(len, values)) + sum(map(bool, values))
    for name in ("timezone", "client_ref"):
        fields += len(people) - list(map(attrgetter(name), people)).count(None)
    return Part(bytes(msgspec.json.decode(body, type=_Contacts).contacts), fields)


def _decoded(job: _JobIn) -> JobRequest:
    written = bytes(job.metadata)
    checks.written_metadata(written)
    metadata = decode(written, dict[str, Any], inside="metadata")
    return JobRequest(**{**msgspec.structs.asdict(job), "metadata": metadata})


async def read_job(request: AnyRequest, breathe: Callable[[], Awaitable[None]]) -> JobRequest:
    """A job as JSON; or its contacts as CSV, with everything else in the query."""
    content_type, parameters = request.content_type
    if content_type != "text/csv":
        asked = _decoded(await read_body(request, _JobIn, part_of=_contacts_of))
        for name, _ in queries.given(request):
            # It would be overlooked: `?strict=true` must not look as if it had been heard.
            raise BadRequest("INVALID_REQUEST", "a JSON body says this itself; only CSV has it here", field=name)
        return asked
    if parameters.get("charset", "utf-8").strip('"').lower() not in _UTF8:
        raise BadRequest("INVALID_CSV", "send the file as UTF-8", field="Content-Type")
    asked = csv_contacts.options(queries.given(request))
    sheet = csv_contacts.Sheet(await request.body(), variables(asked.text))
    for _ in sheet.stretches():
        await breathe()
    return msgspec.structs.replace(asked, contacts=sheet.contacts)
