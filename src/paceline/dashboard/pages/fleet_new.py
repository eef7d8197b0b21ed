"""The dialog that registers a number."""

from nicegui import ui

from paceline.dashboard.parts.acting import act
from paceline.dashboard.parts.inputs import Field, button
from paceline.dashboard.parts.page import Visit
from paceline.dashboard.parts.text import text

DRIVERS = {
    "baileys": "WhatsApp, linked like WhatsApp Web",
    "simulated": "Simulated: nothing leaves this machine",
}


async def new_number(visit: Visit) -> None:
    with ui.dialog() as dialog, ui.element("div").classes("dialog"):
        dialog.props('aria-label="Add a number"')
        text("h2", "Add a number")
        phone = Field("Phone number", hint="With its country code: +44 7700 900123", inputmode="tel", autofocus=True)
        driver = Field("How it sends", kind="select", options=DRIVERS, value="baileys")
        session = Field("Name of the session", hint="Left empty, one is made up.")
        with ui.element("div").classes("dialog-buttons"):
            button("Cancel", lambda: dialog.submit(None))
            button("Add", lambda: _add(visit, dialog, phone, driver, session), kind="main")
    await dialog
    dialog.delete()


async def _add(visit: Visit, dialog: ui.dialog, phone: Field, driver: Field, session: Field) -> None:
    if not phone.value.strip():
        phone.set_fault("Which number?")
        return
    asked = visit.api.sessions.create(
        phone.value, session_id=session.value.strip() or None, driver=driver.value, proxy=None
    )
    made = await act(visit, asked)
    if made is not None:
        dialog.submit(None)
        ui.navigate.to(f"/sessions/{made.session_id}")
