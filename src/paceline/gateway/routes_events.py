"""The route of live events. What it sends is in `live`."""

from typing import Annotated

from litestar import get
from litestar.params import QueryParameter

from paceline.domain.errors import BadRequest
from paceline.domain.events import ALL_EVENTS, EVENT_TYPES, is_place
from paceline.edge import Keys, holder
from paceline.gateway.live import EventStream, Live, Reader
from paceline.gateway.routes_common import KEY
from paceline.kits.web import AnyRequest, Handler

Types = Annotated[str, QueryParameter(max_length=512, description="comma-separated event types; left out, all")]
LastEventId = Annotated[
    str,
    QueryParameter(
        name="lastEventId", max_length=64, description="like the header Last-Event-ID: what comes after that one"
    ),
]


def event_routes(live: Live, keys: Keys) -> list[Handler]:
    @get(
        "/v1/events",
        summary="Events as they happen (SSE)",
        tags=["Events"],
        guards=[keys.requires("read")],
        security=KEY,
        media_type="text/event-stream",
    )
    async def stream_events(request: AnyRequest, types: Types = "", last_event_id: LastEventId = "") -> EventStream:
        """Server-sent events: `id`, `event` (its type), `data` (the body a webhook gets). From now on, or after
        `Last-Event-ID`; an event `gap` says that some after it are gone. A comment comes every 15 s. The server ends it
        after 15 minutes, when nothing is taken for 30 s, or with its key; readers come back by themselves."""
        place = request.headers.get("last-event-id") or last_event_id or None
        if place is not None and not is_place(place):
            raise BadRequest("INVALID_REQUEST", "not an id of an event of ours", field="lastEventId")
        key_id = holder(request)
        return await live.stream(place, Reader(_wanted(types), may_read=lambda: keys.is_live(key_id)))

    return [stream_events]


def _wanted(types: str) -> "_Wanted":
    names = frozenset(name.strip() for name in types.split(",") if name.strip())
    unknown = sorted(names - {*EVENT_TYPES, ALL_EVENTS})
    if unknown:
        raise BadRequest("INVALID_REQUEST", f"{unknown[0]!r} is no event type", field="types")
    return _Wanted(names)


class _Wanted:
    def __init__(self, names: frozenset[str]) -> None:
        self._names = names if ALL_EVENTS not in names else frozenset()

    def __call__(self, event_type: str) -> bool:
        return not self._names or event_type in self._names
