"""What waits for a number, in the order it will go, and canceling it."""

from paceline.client.answers_fleet_numbers import QueueCanceled
from paceline.client.answers_lists import QueuedMessage
from paceline.dashboard.parts import words
from paceline.dashboard.parts.acting import act, confirm, notify
from paceline.dashboard.parts.inputs import button
from paceline.dashboard.parts.page import Visit
from paceline.dashboard.parts.panel import Panel
from paceline.dashboard.parts.table import Column, Row, Table
from paceline.dashboard.parts.work import message_state

ROWS = 25
COLUMNS = [
    Column("position", "#", "number"),
    Column("to", "To", classes="nowrap"),
    Column("state", "State", "state"),
    Column("why", "Why it waits", classes="words"),
    Column("expires", "Expires", "when"),
]


def queue(visit: Visit, session_id: str) -> None:
    may = visit.may("send")

    async def cancel(_action: str, message_id: str) -> None:
        asked = "It is not sent. The others of its job go on. This cannot be undone."
        if await confirm("Cancel this message?", asked, "Cancel the message", danger=True):
            await act(visit, visit.api.queues.cancel(session_id, message_id), "Canceled.")

    async def cancel_all() -> None:
        words_ = "Each message that waits for this number ends “canceled”. What a worker holds is not touched."
        if await confirm("Cancel its whole queue?", words_, "Cancel all of it", danger=True):
            done = await act(visit, visit.api.sessions.cancel_queue(session_id))
            if done is not None:
                notify(canceled_words(done), tone="plain" if done.failed else "good")

    with Panel("Queue", classes="panel--flush") as panel:
        columns = [*COLUMNS, Column("acts", "Actions", "actions", quiet=True)] if may else COLUMNS
        table = Table("Queue", columns, none="Nothing waits.", on_change=visit.live.now, on_act=cancel)
    assert panel.head is not None
    if visit.may("admin"):
        with panel.head:
            button("Cancel all", cancel_all, kind="small danger")

    async def refresh() -> None:
        found = await visit.api.queues.get(session_id, cursor=table.cursor, limit=ROWS)
        panel.empty("" if found.items or table.cursor else "Nothing waits for this number.")
        parts = [words.count(found.total, "message")]
        parts += [f"{found.parked:,} parked"] if found.parked else []
        parts += [f"{found.scheduled:,} scheduled"] if found.scheduled else []
        rows = [row_of(one, may=may) for one in found.items]
        table.show(rows, next_cursor=found.next_cursor, note=" · ".join(parts))

    visit.live.add(refresh, panel)


def canceled_words(done: QueueCanceled) -> str:
    parts = [f"{words.count(done.canceled, 'message')} canceled."]
    parts += [f"{done.failed:,} may have gone out and ended failed."] if done.failed else []
    parts += [f"{done.open:,} with a worker: those end as they end."] if done.open else []
    return " ".join(parts)


def row_of(one: QueuedMessage, *, may: bool) -> Row:
    return {
        "id": one.message_id,
        "position": None if one.position is None else one.position + 1,
        "to": {"text": words.phone(one.to), "href": f"/jobs/{one.job_id}", "title": one.message_id},
        "state": message_state(one.state),
        "why": one.waiting.text,
        "expires": one.expires_at,
        "acts": [{"name": "cancel", "label": "Cancel", "danger": True}] if may else [],
    }
