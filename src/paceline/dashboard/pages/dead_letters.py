"""What was given up, with its history, and sending it again on purpose."""

from typing import Any, cast

from nicegui import ui

from paceline.client.answers_lists import DeadLetter, ReplayedMany
from paceline.client.requests_lists import ErrorClass
from paceline.dashboard.parts import work
from paceline.dashboard.parts.acting import act, confirm, notify
from paceline.dashboard.parts.choices import Choices
from paceline.dashboard.parts.inputs import Field, button
from paceline.dashboard.parts.page import Visit
from paceline.dashboard.parts.panel import Panel
from paceline.dashboard.parts.table import Column, Table
from paceline.dashboard.parts.text import text
from paceline.dashboard.parts.when import When
from paceline.dashboard.parts.words import count

ROWS = 25
AT_ONCE = 1_000
"""As many as the gateway replays in one call; `more` says when some are left."""
NOT_YOURS = "Your key has no “send” scope."
_CLASSES = {"": "all", "transient": "may pass", "recipient": "the recipient's", "platform": "refused by WhatsApp"}
_TONES = {"transient": "plain", "recipient": "warn", "platform": "bad"}
_COLUMNS = [
    Column("to", "To"),
    Column("why", "Why", classes="words"),
    Column("class", "Kind", "state"),
    Column("job", "Job"),
    Column("attempts", "Tries", "number"),
    Column("at", "Given up", "when"),
    Column("actions", "Actions", "actions", quiet=True),
]


class DeadLetters:
    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._letters: dict[str, DeadLetter] = {}
        with Panel("Dead letters", classes="panel--flush") as self._panel:
            self._table = Table(
                "Dead letters", _COLUMNS, none="None matches.", on_change=visit.live.now, on_act=self._act
            ).classes("cards")
        assert self._panel.head is not None
        with self._panel.head, ui.element("div").classes("filters"):
            self._class = Choices("Which dead letters", _CLASSES, self._changed)
            self._code = Field("Code", kind="search", placeholder="Code", on_change=self._typed).hidden_label()
            why_not = "" if visit.may("send") else NOT_YOURS
            button("Replay all that match", self._replay_all, why_not=why_not)
        visit.live.add(self._refresh, self._panel, every_seconds=5)

    @property
    def _wanted(self) -> tuple[ErrorClass | None, str]:
        """The class and the code of the letters that are shown."""
        return cast("ErrorClass", self._class.value) or None, self._code.value.strip().upper()

    async def _refresh(self) -> None:
        class_, code = self._wanted
        asking = self._visit.api.dead_letters.list(class_=class_, code=code, cursor=self._table.cursor, limit=ROWS)
        page = await asking
        self._letters = {letter.id: letter for letter in page.items}
        nothing = not page.items and not self._table.cursor and not class_ and not code
        self._panel.empty("Nothing was given up." if nothing else "")
        rows = [row(letter, may_send=self._visit.may("send")) for letter in page.items]
        self._table.show(rows, next_cursor=page.next_cursor)

    async def _typed(self, _: str) -> None:
        await self._changed()

    async def _changed(self) -> None:
        self._table.rewind()
        await self._visit.live.now()

    async def _act(self, name: str, letter_id: str) -> None:
        letter = self._letters.get(letter_id)
        if letter is not None and name == "history":
            await _show_history(letter)
        elif letter is not None:
            await self._replay(letter)

    async def _replay(self, letter: DeadLetter) -> None:
        again = letter.replayed_as is not None
        words = "It goes out as a new message, with the text of the old one."
        if again:
            words += " It was sent again before: the person may get it twice."
        elif letter.code == "UNKNOWN_OUTCOME":
            words += " Nobody knows whether the first one arrived: the person may get it twice."
        if await confirm(f"Send it again to {_to(letter)}?", words, "Send again", danger=again):
            done = await act(self._visit, self._visit.api.dead_letters.replay(letter.id, again=again))
            if done is not None:
                notify(f"Sent again as job {done.job_id}.")

    async def _replay_all(self) -> None:
        class_, code = self._wanted
        words = (
            f"Up to {AT_ONCE:,} that match the filter go out as new messages. "
            "What WhatsApp refused, and what was sent again before, is skipped."
        )
        if await confirm("Send all of these again?", words, "Send all again"):
            asking = self._visit.api.dead_letters.replay_all(class_=class_, code=code or None, limit=AT_ONCE)
            done = await act(self._visit, asking)
            if done is not None:
                notify(summary(done))


def summary(done: ReplayedMany) -> str:
    skipped = done.skipped
    parts = [
        (skipped.not_replayable, "cannot be sent again"),
        (skipped.already_replayed, "were sent again before"),
        (skipped.suppressed, "are on the suppression list"),
    ]
    words = [f"{done.replayed:,} sent again in {count(len(done.jobs), 'job')}."]
    words += [f"{some:,} {why}." for some, why in parts if some]
    return " ".join([*words, "There are more: press again."] if done.more else words)


def _to(letter: DeadLetter) -> str:
    return work.number(letter.to) if letter.to else "somebody erased"


def row(letter: DeadLetter, *, may_send: bool) -> dict[str, Any]:
    return {
        "id": letter.id,
        "to": {"text": _to(letter), "note": f"from {work.number(letter.phone)}" if letter.phone else ""},
        "why": f"{letter.code}: {letter.message}".rstrip(": "),
        "class": {"text": _CLASSES.get(letter.class_, letter.class_), "tone": _TONES.get(letter.class_, "plain")},
        "job": {"text": f"…{letter.job_id[-8:]}", "href": f"/jobs/{letter.job_id}", "title": letter.job_id},
        "attempts": letter.attempts,
        "at": letter.at,
        "actions": _actions(letter, may_send=may_send),
    }


def _actions(letter: DeadLetter, *, may_send: bool) -> list[dict[str, Any]]:
    history = {"name": "history", "label": "History", "title": f"What happened to the message to {_to(letter)}"}
    if letter.replayed_as is not None:
        replay = {"name": "replay", "label": "Again", "title": f"Sent again as {letter.replayed_as}"}
    else:
        replay = {"name": "replay", "label": "Replay", "title": f"Send it again to {_to(letter)}"}
    if not may_send:
        replay["why"] = NOT_YOURS
    elif not letter.replayable:
        replay["why"] = "WhatsApp refused it, it was proven sent, or its job is not kept any more."
    return [history, replay]


async def _show_history(letter: DeadLetter) -> None:
    with ui.dialog() as dialog, ui.element("div").classes("dialog dialog--wide"):
        text("h2", f"What happened to the message to {_to(letter)}").props('dir="auto"')
        with ui.element("ol").classes("events"):
            for line in letter.history:
                with ui.element("li"):
                    When(line.get("at"), "exact")
                    rest = [str(line[name]) for name in ("what", "reason", "code", "message") if line.get(name)]
                    text("span", " · ".join(rest)).props('dir="auto"')
        with ui.element("div").classes("dialog-buttons"):
            button("Close", lambda: dialog.submit(None))
    dialog.props('aria-label="History"')
    await dialog
    dialog.delete()
