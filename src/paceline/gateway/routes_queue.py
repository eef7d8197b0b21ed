"""Routes about a session's number: its queue in order, canceling one message of it or of any, its day in figures."""

from typing import Annotated

from litestar import delete, get
from litestar.params import FromPath, QueryParameter

from paceline.domain.errors import BadRequest, Conflict, NotFound
from paceline.domain.ids import parse_task_id
from paceline.domain.states import MESSAGE_STATE
from paceline.edge import Keys
from paceline.gateway import answers, checks
from paceline.gateway.intake import Intake
from paceline.gateway.routes_common import KEY, Cursor, Limit
from paceline.gateway.views import MessageCanceled, QueueView, SessionStats
from paceline.gateway.waiting import Teller
from paceline.kits.clock import Clock
from paceline.kits.web import Handler
from paceline.policy import hours
from paceline.store.queues import TaskCanceled
from paceline.store.store import Store

LOOKS = 3
"""A message may get its number between the look and the deed, and a retry may move it; not three times."""

Date = Annotated[str, QueryParameter(description="YYYY-MM-DD; today in the number's timezone if left out")]


def queue_routes(store: Store, intake: Intake, keys: Keys, clock: Clock) -> list[Handler]:
    @get(
        "/api/v1/queue/{session_id:str}",
        summary="What waits for a session's number, in order",
        tags=["Queues"],
        guards=[keys.requires("read")],
        security=KEY,
    )
    async def queue(session_id: FromPath[str], cursor: Cursor = "", limit: Limit = 100) -> QueueView:
        """Priority 3, 2, 1, each from its head; then what is parked, by its time. Nothing is changed by looking."""
        after = answers.mark_of(cursor) if cursor else None
        if cursor and after is None:
            raise BadRequest("INVALID_REQUEST", "not a cursor of ours", field="cursor")
        phone = await intake.owner_of(session_id)
        page = await store.queues.page(phone, after, limit)
        teller = Teller(page.fleet, phone, page.phone.get("timezone"), now_ms=clock.now_ms())
        return answers.queue_view(session_id, phone, page, teller)

    @delete(
        "/api/v1/queue/{session_id:str}/{message_id:str}",
        status_code=200,
        summary="Cancel one message that waits",
        tags=["Queues"],
        guards=[keys.requires("send")],
        security=KEY,
    )
    async def cancel_message(session_id: FromPath[str], message_id: FromPath[str]) -> MessageCanceled:
        """409 once a worker holds it: it may be on its way. One that may have gone out in an earlier try ends `failed`
        instead, since `canceled` says that it was not sent."""
        phone = await intake.owner_of(session_id)
        if parse_task_id(message_id) is None:
            raise _no_message()
        return _canceled(message_id, await store.queues.cancel_task(message_id, phone, now_ms=clock.now_ms()))

    @delete(
        "/v1/messages/{message_id:str}",
        status_code=200,
        summary="Cancel one message, wherever it waits",
        tags=["Messages"],
        guards=[keys.requires("send")],
        security=KEY,
    )
    async def cancel_anywhere(message_id: FromPath[str]) -> MessageCanceled:
        """The same for whoever does not know its number, and for one that has none yet."""
        answer = TaskCanceled("UNKNOWN")
        for _ in range(LOOKS):
            view = await store.jobs.message(message_id)
            if view is None:
                break
            phone = view.phone or view.job.phone
            answer = await store.queues.cancel_task(message_id, phone, now_ms=clock.now_ms())
            if answer.code != "UNKNOWN":
                break
        return _canceled(message_id, answer)

    @get(
        "/api/v1/stats/{session_id:str}",
        summary="A session's day in figures",
        tags=["Queues"],
        guards=[keys.requires("read")],
        security=KEY,
    )
    async def stats(session_id: FromPath[str], date: Date = "") -> SessionStats:
        """Counted by the calendar day of the number's timezone; kept for 30 days."""
        day = checks.day(date) if date else None
        phone = await intake.owner_of(session_id)
        if day is None:
            zone = hours.phone_zone(phone, await store.sessions.phone_timezone(phone))
            day = hours.local_day(zone, clock.now_ms())
        return answers.session_stats(session_id, day, await store.queues.day(session_id, phone, day))

    return [queue, cancel_message, cancel_anywhere, stats]


def _canceled(message_id: str, answer: TaskCanceled) -> MessageCanceled:
    state = MESSAGE_STATE.get(answer.state, "")
    if answer.code == "UNKNOWN":
        raise _no_message()
    if answer.code == "CLAIMED":
        raise Conflict("MESSAGE_CLAIMED", "a worker holds this message already", details={"state": state})
    if answer.code == "ENDED":
        raise Conflict("MESSAGE_ENDED", "this message has ended already", details={"state": state})
    return MessageCanceled(message_id=message_id, state=state)


def _no_message() -> NotFound:
    return NotFound("UNKNOWN_MESSAGE", "there is no such message here", field="messageId")
