"""The dialog that registers a number."""

import secrets

from nicegui import ui

from paceline.dashboard.parts.acting import act
from paceline.dashboard.parts.inputs import Field, button
from paceline.dashboard.parts.page import Visit
from paceline.dashboard.parts.text import text

DRIVERS = {
    "baileys": "WhatsApp, linked like WhatsApp Web",
    "simulated": "Simulated: nothing leaves this machine",
}


PROXIES = {"": "A proxy of the pool, if it needs one", "direct": "No proxy: the address of this machine"}


async def new_number(visit: Visit) -> None:
    with ui.dialog() as dialog, ui.element("div").classes("dialog"):
        dialog.props('aria-label="Add a number"')
        text("h2", "Add a number")
        form = Form()
        with ui.element("div").classes("dialog-buttons"):
            button("Cancel", lambda: dialog.submit(None))
            button("Add", lambda: _add(visit, dialog, form), kind="main")
    await dialog
    dialog.delete()


class Form:
    def __init__(self) -> None:
        self.phone = Field(
            "Phone number", hint="With its country code: +44 7700 900123", inputmode="tel", autofocus=True
        )
        self.driver = Field("How it sends", kind="select", options=DRIVERS, value="baileys")
        self.proxy = Field("Goes out by", kind="select", options=PROXIES)
        self.session = Field("Name of the session", hint="Left empty, one is made up.")
        # Once for this dialog: pressed twice, or again after a lost answer, it is still one session.
        self.made_up = f"s-{secrets.token_hex(8)}"


async def _add(visit: Visit, dialog: ui.dialog, form: Form) -> None:
    if not form.phone.value.strip():
        form.phone.set_fault("Which number?")
        return
    asked = visit.api.sessions.create(
        form.phone.value,
        session_id=form.session.value.strip() or form.made_up,
        driver=form.driver.value,
        proxy=form.proxy.value or None,
    )
    made = await act(visit, asked)
    if made is not None:
        dialog.submit(None)
        ui.navigate.to(f"/sessions/{made.session_id}")
