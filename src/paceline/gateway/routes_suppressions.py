"""Routes of the suppression list."""

from litestar import delete, get, post
from litestar.params import FromPath

from paceline.edge import Keys, holder
from paceline.gateway.routes_common import KEY, Cursor, Limit
from paceline.gateway.schemas import Removed, Suppressed, SuppressionPage, SuppressRequest
from paceline.gateway.suppressions import Suppressions
from paceline.kits.clock import Clock
from paceline.kits.web import AnyRequest, Handler, read_body


def suppression_routes(suppressions: Suppressions, keys: Keys, clock: Clock) -> list[Handler]:
    @get(
        "/v1/suppressions",
        summary="Who must not be written to",
        tags=["Suppressions"],
        guards=[keys.requires("read")],
        security=KEY,
    )
    async def list_suppressions(cursor: Cursor = "", limit: Limit = 100) -> SuppressionPage:
        return await suppressions.page(cursor, limit)

    @post(
        "/v1/suppressions",
        status_code=200,
        summary="Never write to these people again",
        tags=["Suppressions"],
        guards=[keys.requires("send")],
        security=KEY,
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
        security=KEY,
    )
    async def remove_suppression(to: FromPath[str]) -> Removed:
        """Needs the admin scope: a key that may send must not be able to lift what stops it."""
        return await suppressions.remove(to)

    return [list_suppressions, add_suppressions, remove_suppression]
