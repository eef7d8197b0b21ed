"""The messages of a job, by state, with why each waits; one can be canceled."""

from typing import Any

from paceline.client import Progress
from paceline.client.answers_jobs import MessageItem
from paceline.dashboard.parts import work
from paceline.dashboard.parts.acting import act, confirm
from paceline.dashboard.parts.choices import Choices
from paceline.dashboard.parts.page import Visit
from paceline.dashboard.parts.panel import Panel
from paceline.dashboard.parts.table import Column, Table

ROWS = 50
_COLUMNS = [
    Column("to", "To"),
    Column("state", "State", "state"),
    Column("why", "Why", classes="words"),
    Column("number", "From"),
    Column("attempts", "Tries", "number"),
    Column("at", "Last step", "when"),
    Column("actions", "Actions", "actions", quiet=True),
]


class JobMessages:
    def __init__(self, visit: Visit, job_id: str) -> None:
        self._visit = visit
        self._job_id = job_id
        with Panel("Messages", classes="panel--flush") as panel:
            self._table = Table(
                "Messages of this job",
                _COLUMNS,
                none="No message is in this state.",
                on_change=visit.live.now,
                on_act=self._act,
            ).classes("cards")
        assert panel.head is not None
        with panel.head:
            self._filter = Choices("Which messages", work.FILTERS, self._changed)
        visit.live.add(self._refresh, panel)

    def count(self, progress: Progress) -> None:
        counts = {"all": progress.total, "waiting": work.waiting(progress), "sent": progress.sent}
        counts |= {name: getattr(progress, name) for name in ("failed", "expired", "canceled", "suppressed")}
        self._filter.count({states: counts[word] for states, word in work.FILTERS.items()})

    async def _refresh(self) -> None:
        page = await self._visit.api.jobs.messages(
            self._job_id, state=self._filter.value, cursor=self._table.cursor, limit=ROWS
        )
        rows = [row(item, may_cancel=self._visit.may("send")) for item in page.items]
        self._table.show(rows, next_cursor=page.next_cursor)

    async def _changed(self) -> None:
        self._table.rewind()
        await self._visit.live.now()

    async def _act(self, name: str, message_id: str) -> None:
        words = "It is not sent. The others of this job go on. This cannot be undone."
        if await confirm("Cancel this message?", words, "Cancel the message", danger=True):
            await act(self._visit, self._visit.api.messages.cancel(message_id), "Canceled.")


def row(message: MessageItem, *, may_cancel: bool) -> dict[str, Any]:
    number: dict[str, Any] | None = None
    if message.phone:
        number = {"text": work.number(message.phone), "title": message.session_id}
        if message.session_id:
            number["href"] = f"/sessions/{message.session_id}"
    cancel = {"name": "cancel", "label": "Cancel", "title": f"Cancel the message to {message.to}"}
    return {
        "id": message.message_id,
        "to": {"text": work.number(message.to), "note": message.client_ref},
        "state": work.message_state(message.state),
        "why": work.why(message),
        "number": number,
        "attempts": message.attempts,
        "at": last_step(message),
        "actions": [cancel] if may_cancel and message.state in work.CANCELABLE else [],
    }


def last_step(message: MessageItem) -> int | None:
    times = message.times
    known = (times.ended_at, times.read_at, times.delivered_at, times.sent_at, times.claimed_at, times.handed_off_at)
    return max((at for at in known if at), default=times.accepted_at)
