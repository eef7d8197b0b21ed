"""API keys: who may ask for what. A new key is shown once, here."""

from typing import Any

from nicegui import ui

from paceline.client.answers_lists import ApiKey, NewApiKey
from paceline.dashboard.parts.acting import act, confirm
from paceline.dashboard.parts.inputs import Field, button
from paceline.dashboard.parts.page import Visit
from paceline.dashboard.parts.panel import Panel
from paceline.dashboard.parts.table import Column, Table
from paceline.dashboard.parts.text import text

ROWS = 50
MOST_DAYS = 3_650
"""As the gateway has it."""
SCOPES = {
    "read": "Look: read",
    "send,read": "Send and look: send, read",
    "send": "Send only: send",
    "admin": "Everything: admin",
}
LIVE = "live"
_COLUMNS = [
    Column("name", "Key"),
    Column("scopes", "May"),
    Column("state", "State", "state"),
    Column("rate", "Requests a minute"),
    Column("expires", "Expires", "when"),
    Column("created", "Made", "when"),
    Column("actions", "Actions", "actions", quiet=True),
]


class Keys:
    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._shown: dict[str, ApiKey] = {}
        with Panel("API keys", classes="panel--flush") as panel:
            self._table = Table("API keys", _COLUMNS, none="No keys.", on_change=visit.live.now, on_act=self._revoke)
            self._table.classes("cards")
        assert panel.head is not None
        with panel.head:
            button("New key", self._create)
        visit.live.add(self._refresh, panel, every_seconds=10)

    async def _refresh(self) -> None:
        page = await self._visit.api.keys.list(cursor=self._table.cursor, limit=ROWS)
        self._shown = {key.key_id: key for key in page.items}
        rows = [row(key, own=self._visit.visitor.key_id) for key in page.items]
        self._table.show(rows, next_cursor=page.next_cursor)

    async def _revoke(self, _: str, key_id: str) -> None:
        name = self._shown[key_id].name
        words = "Whoever uses it is refused within a second. This cannot be undone."
        if await confirm(f"Revoke “{name}”?", words, "Revoke", danger=True):
            await act(self._visit, self._visit.api.keys.revoke(key_id), "Revoked.")

    async def _create(self) -> None:
        with ui.dialog() as dialog, ui.element("div").classes("dialog"):
            text("h2", "New key")
            name = Field("Name", hint="Who will use it", maxlength=100)
            scopes = Field("May", kind="select", options=SCOPES, value="read")
            # Not the browser's own number field: it says nothing at all of what it cannot read.
            days = Field("Expires after days", hint="Empty: never", inputmode="numeric")
            with ui.element("div").classes("dialog-buttons"):
                button("Cancel", lambda: dialog.submit(False))
                button("Make the key", lambda: dialog.submit(True) if _is_good(name, days) else None, kind="main")
        dialog.props('aria-label="New key"')
        if await dialog:
            asking = self._visit.api.keys.create(
                name.value.strip(), scopes.value.split(","), expires_in_days=int(days.value.strip() or 0) or None
            )
            made = await act(self._visit, asking)
            if made is not None:
                await _show_once(made)
        dialog.delete()


def _is_good(name: Field, days: Field) -> bool:
    """What is wrong is said beside its field, before anything is made: a mistyped expiry must not become none."""
    name.set_fault("" if name.value.strip() else "Who will use it?")
    days.set_fault(days_fault(days.value))
    return bool(name.value.strip()) and not days_fault(days.value)


def days_fault(words: str) -> str:
    typed = words.strip()
    is_whole = typed.isascii() and typed.isdigit() and len(typed) <= len(str(MOST_DAYS))
    is_good = not typed or (is_whole and 1 <= int(typed) <= MOST_DAYS)
    return "" if is_good else f"A whole number from 1 to {MOST_DAYS:,}, or nothing."


async def _show_once(made: NewApiKey) -> None:
    with ui.dialog() as dialog, ui.element("div").classes("dialog"):
        text("h2", f"The key “{made.name}”").props('dir="auto"')
        text("p", "Copy it now. It is not shown again, and nobody can look it up.", "dialog-text")
        text("code", made.key, "secret").props('tabindex="0"')
        with ui.element("div").classes("dialog-buttons"):
            button("I have it", lambda: dialog.submit(None), kind="main")
    dialog.props('persistent aria-label="The new key"')
    await dialog
    dialog.delete()


def row(key: ApiKey, *, own: str) -> dict[str, Any]:
    notes = [key.key_id] + (["the one you use"] if key.key_id == own else [])
    revoke: dict[str, Any] = {"name": "revoke", "label": "Revoke", "title": f"Revoke {key.name}"}
    if key.key_id == "bootstrap":
        revoke["why"] = "It is the setting API_KEY: change that and restart."
    return {
        "id": key.key_id,
        "name": {"text": key.name, "note": " · ".join(notes)},
        "scopes": ", ".join(key.scopes),
        "state": {"text": key.state, "tone": "good" if key.state == LIVE else "plain"},
        "rate": f"{key.rate_per_minute:,}" if key.rate_per_minute is not None else "the setting",
        "expires": key.expires_at,
        "created": key.created_at,
        "actions": [revoke] if key.state == LIVE else [],
    }
