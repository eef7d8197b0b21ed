"""A number's past: what its worker said, what was decided about it, what it sent."""

from collections.abc import Callable

from paceline.client.answers_fleet_sessions import AuditRow, SessionEvent
from paceline.dashboard.parts import words
from paceline.dashboard.parts.feed import Feed, Item
from paceline.dashboard.parts.page import Visit
from paceline.dashboard.parts.panel import Panel

STEP = 20
MOST = 200
_TONES = {
    "CONNECTED": "good",
    "DISCONNECTED": "warn",
    "ERROR": "bad",
    "RESTRICTION": "warn",
    "MESSAGE_FAILED": "bad",
    "MESSAGE_SENT": "busy",
}


def past(visit: Visit, session_id: str) -> None:
    def amount() -> tuple[Callable[[], int], Callable[[], None]]:
        """How many are shown, and asking for more."""
        shown = STEP

        def more() -> None:
            nonlocal shown
            shown = min(MOST, shown + STEP)

        return lambda: shown, more

    events_shown, more_events = amount()
    history_shown, more_history = amount()

    async def show_more_events() -> None:
        more_events()
        await visit.live.now()

    async def show_more_history() -> None:
        more_history()
        await visit.live.now()

    with Panel("Events", classes="panel--flush") as events:
        event_feed = Feed("Events", short=True, on_more=show_more_events)
    with Panel("History", classes="panel--flush") as history:
        history_feed = Feed("History", short=True, on_more=show_more_history)

    async def refresh_events() -> None:
        page = await visit.api.sessions.events(session_id, limit=events_shown())
        events.empty("" if page.items else "Its worker has not said anything yet.")
        event_feed.show([event_item(one) for one in page.items], more=bool(page.next_cursor) and events_shown() < MOST)

    async def refresh_history() -> None:
        page = await visit.api.sessions.history(session_id, limit=history_shown())
        history.empty("" if page.items else "Nothing was decided about it yet, and it has sent nothing.")
        more = bool(page.next_cursor) and history_shown() < MOST
        history_feed.show([history_item(one) for one in page.items], more=more)

    visit.live.add(refresh_events, events)
    visit.live.add(refresh_history, history, every_seconds=5)


def event_item(one: SessionEvent) -> Item:
    data = one.data
    said = words.EVENTS.get(one.event) or words.spelled(one.event.removeprefix("MESSAGE_"))
    to = f" · {words.phone(str(data['to']))}" if data.get("to") else ""
    item = Item(
        id=one.event_id,
        at=one.at,
        text=said + to,
        tone=_TONES.get(one.event, "plain"),
    )
    error = data.get("error")
    reason = error.get("message") or error.get("code") if isinstance(error, dict) else data.get("reason")
    if reason:
        item["note"] = str(reason)
    return item


def history_item(one: AuditRow) -> Item:
    if one.kind == "SENT":
        return Item(id=str(one.id), at=one.at, text=f"Sent {one.message_id}", tone="busy")
    if one.kind == "BINDING":
        holds = [f"proxy {one.proxy_ip}" if one.proxy_ip else "", f"profile {one.profile_id}" if one.profile_id else ""]
        held = " and ".join(part for part in holds if part) or "no proxy"
        item = Item(id=str(one.id), at=one.at, text=f"{words.spelled(one.status or 'bound')}: {held}")
    else:
        item = Item(id=str(one.id), at=one.at, text=words.spelled(one.action or "decided"))
    notes = [f"by key {one.by}" if one.by else "", one.reason]
    if note := " · ".join(part for part in notes if part):
        item["note"] = note
    return item
