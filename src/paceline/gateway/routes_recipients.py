"""Routes about people: erasing one."""

from litestar import delete
from litestar.params import FromPath

from paceline.edge import Keys, holder
from paceline.gateway.erasing import Erasing
from paceline.gateway.routes_common import KEY
from paceline.gateway.schemas import ErasedPerson
from paceline.kits.clock import Clock
from paceline.kits.web import AnyRequest, Handler


def recipient_routes(erasing: Erasing, keys: Keys, clock: Clock) -> list[Handler]:
    @delete(
        "/v1/recipients/{to:str}",
        status_code=200,
        summary="Erase a person",
        tags=["Recipients"],
        guards=[keys.requires("admin")],
        security=KEY,
    )
    async def erase_recipient(request: AnyRequest, to: FromPath[str]) -> ErasedPerson:
        """What waits for them is canceled, and their number is removed from everything that is kept; the counts of jobs
        stay right. On the suppression list they stay. Asking again does no harm, and finishes what a worker held."""
        return await erasing.erase(to, by=holder(request), now_ms=clock.now_ms())

    return [erase_recipient]
