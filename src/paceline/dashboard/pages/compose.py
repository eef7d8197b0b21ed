"""Writing to many: recipients, message, plan, send. What is sent is what was planned, and it is sent once.

Neighbours: `compose_form` is what is filled in, `compose_preview` and `compose_plan` show what it comes to.
"""

import secrets
from dataclasses import replace

from nicegui import ui

from paceline.client import JobPlan
from paceline.dashboard.draft import Draft
from paceline.dashboard.pages.compose_form import Form
from paceline.dashboard.pages.compose_plan import show_plan
from paceline.dashboard.pages.compose_preview import Preview
from paceline.dashboard.parts.acting import act
from paceline.dashboard.parts.frame import heading
from paceline.dashboard.parts.inputs import button
from paceline.dashboard.parts.page import Page, Visit
from paceline.dashboard.parts.panel import Panel
from paceline.dashboard.parts.text import text

CHANGED = "The form has changed since the plan. Plan again."


async def build(visit: Visit) -> None:
    heading("Compose", lead="Nothing is sent before you have seen the plan.")
    Compose(visit)


class Compose:
    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._draft = Draft()
        self._planned: Draft | None = None
        self._once = ""
        self._changes = 0
        with ui.element("div").classes("columns columns--compose"):
            with ui.element("div").classes("stack"):
                self._form = Form(visit, self._draft, self._changed, self._pictured)
            with ui.element("div").classes("stack compose-side"):
                with Panel("Preview") as preview:
                    self._preview = Preview()
                with Panel("Plan") as plan:
                    self._plan = ui.element("div").props('aria-live="polite"')
                    with ui.element("div").classes("row plan-buttons"):
                        self._ask = button("Plan", self._do_plan, kind="main")
                        self._send = button("Send", self._do_send, kind="main")
        for panel in (preview, plan):
            panel.recover()
        self._forget()

    def _changed(self) -> None:
        self._changes += 1
        self._preview.show(self._draft.audience, self._draft.text)
        if self._planned is not None:
            self._forget(CHANGED)

    def _pictured(self, address: str) -> None:
        self._preview.picture(address)

    def _forget(self, why: str = "When will it be done, from which numbers, and who is left out?") -> None:
        self._planned = None
        self._plan.clear()
        with self._plan:
            text("p", why, "quiet")
        self._send.set_visibility(False)
        self._ask.set_visibility(True)

    async def _do_plan(self) -> None:
        await self._form.settle()
        if not self._form.check():
            self._forget("Something is missing; it is marked in the form.")
            return
        asked, changes = replace(self._draft), self._changes
        answer = await act(self._visit, self._visit.api.jobs.plan(**asked.people(), **asked.options()))
        if answer is None:
            return
        # Whoever went on writing meanwhile has another form than the one this is the plan of.
        if self._changes == changes:
            self._show(asked, answer)
        else:
            self._forget(CHANGED)

    def _show(self, planned: Draft, answer: JobPlan) -> None:
        self._planned = planned
        # One for this plan: pressed twice, or asked again after a lost answer, it is still one job.
        self._once = secrets.token_hex(16)
        self._plan.clear()
        with self._plan:
            show_plan(answer)
        self._send.clear()
        with self._send:
            people = f"{answer.accepted:,} people" if answer.accepted != 1 else "one person"
            text("span", f"Send to {people}")
        self._send.set_visibility(True)
        self._ask.set_visibility(False)

    async def _do_send(self) -> None:
        draft = self._planned
        if draft is None:
            return
        asking = self._visit.api.jobs.create(**draft.people(), **draft.options(), idempotency_key=self._once)
        job = await act(self._visit, asking)
        if job is not None:
            ui.navigate.to(f"/jobs/{job.job_id}")


PAGE = Page("/compose", "Compose", build, icon="compose", scope="send")
