"""Routes of the suppression list, as JSON and as CSV."""

from typing import Annotated

from litestar import Response, delete, get, post
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import FromPath, QueryParameter
from litestar.response import Stream

from paceline.edge import Keys, holder
from paceline.gateway import suppression_csv
from paceline.gateway.routes_common import KEY, Cursor, Limit
from paceline.gateway.schemas import ImportedSuppressions, Removed, Suppressed, SuppressionPage, SuppressRequest
from paceline.gateway.suppressions import BATCH, Suppressions
from paceline.kits import queries
from paceline.kits.clock import Clock
from paceline.kits.web import BODY_LIMIT, MEGABYTE, AnyRequest, Handler, Problem, read_body

CSV_LIMIT = 32 * MEGABYTE
"""100,000 rows of the longest kind, as for a job's contacts."""
CSV = "text/csv"

To = Annotated[str, QueryParameter(max_length=64, description="only this person, in any notation of their number")]


def suppression_routes(suppressions: Suppressions, keys: Keys, clock: Clock) -> list[Handler]:
    @get(
        "/v1/suppressions",
        summary="Who must not be written to",
        tags=["Suppressions"],
        guards=[keys.requires("read")],
        security=KEY,
        responses={200: ResponseSpec(SuppressionPage, description="A page, or the whole list as CSV")},
    )
    async def list_suppressions(
        request: AnyRequest, to: To = "", cursor: Cursor = "", limit: Limit = 100
    ) -> Response[SuppressionPage] | Stream:
        """A page of them. With `Accept: text/csv` all of them from `cursor` on: `to,at,reason,source`, safe to open in
        a spreadsheet, and a file that can be imported again. With `to` that person alone, if they are on the list."""
        is_csv = request.accept.best_match(["application/json", CSV], default="application/json") == CSV
        # The first page is read before anything is answered: an error is an answer of its own.
        if any(name == "to" for name, _ in queries.given(request)):
            first = await suppressions.of_person(to, cursor)
        else:
            first = await suppressions.page(cursor, BATCH if is_csv else limit)
        if not is_csv:
            return Response(first)
        headers = {"Content-Disposition": 'attachment; filename="suppressions.csv"'}
        return Stream(suppressions.export_csv(first), media_type=CSV, headers=headers)

    @post(
        "/v1/suppressions",
        status_code=200,
        summary="Never write to these people again",
        tags=["Suppressions"],
        guards=[keys.requires("send")],
        security=KEY,
        opt={"body": SuppressRequest, "text_bodies": {CSV: suppression_csv.EXAMPLE}},
        request_max_body_size=CSV_LIMIT,
    )
    async def add_suppressions(request: AnyRequest) -> Suppressed | ImportedSuppressions:
        """Holds at once, also for what is accepted already: it is checked again before each message goes out. As JSON
        up to 10,000, all or none. As `text/csv` up to 100,000 rows `to[,reason]`: bad rows are listed by their line,
        the rest is stored."""
        content_type, parameters = request.content_type
        if content_type == CSV:
            if parameters.get("charset", "utf-8").strip('"').lower() not in ("utf-8", "utf8", "us-ascii"):
                raise Problem(400, "INVALID_CSV", "send the file as UTF-8", field="Content-Type")
            return await suppressions.import_csv(await request.body(), by=holder(request), now_ms=clock.now_ms())
        if len(await request.body()) > BODY_LIMIT:
            raise Problem(413, "BODY_TOO_LARGE", "the body is too large; a long list may be sent as text/csv")
        asked = await read_body(request, SuppressRequest)
        return await suppressions.add(asked, by=holder(request), now_ms=clock.now_ms())

    @delete(
        "/v1/suppressions/{to:str}",
        status_code=200,
        summary="Take a person off the list",
        tags=["Suppressions"],
        guards=[keys.requires("admin")],
        security=KEY,
    )
    async def remove_suppression(request: AnyRequest, to: FromPath[str]) -> Removed:
        """Needs the admin scope: a key that may send must not be able to lift what stops it."""
        return await suppressions.remove(to, by=holder(request), now_ms=clock.now_ms())

    return [list_suppressions, add_suppressions, remove_suppression]
