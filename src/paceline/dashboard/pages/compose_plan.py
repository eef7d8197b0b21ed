"""What a plan says: when it would be done, the load on each number, who is left out, what would help."""

from collections import Counter
from typing import Any

from nicegui import ui

from paceline.client import JobPlan
from paceline.client.answers_plan import PlanPhone
from paceline.dashboard.parts import work
from paceline.dashboard.parts.table import Column, Table
from paceline.dashboard.parts.text import text
from paceline.dashboard.parts.when import When

LIMITS = {
    "DAILY_CAP": "daily caps",
    "HOURS": "the numbers' hours",
    "RECIPIENT_HOURS": "the recipients' night",
    "PACE": "the numbers' pace",
    "SPREAD": "the spread you asked for",
    "GLOBAL_LIMIT": "the ceiling for the whole fleet",
    "NOT_IN_SIGHT": "it would take more than a year",
    "NO_SESSIONS_AVAILABLE": "no number is connected",
    "QUARANTINED": "every number is quarantined",
    "FLEET_PAUSED": "all sending is paused",
    "STOPPED": "the dispatchers are stopped",
}
REFUSALS = {
    "INVALID_NUMBER": "not a phone number",
    "MISSING_VARIABLE": "a variable has no value",
    "EMPTY_TEXT": "nothing to read in the text",
    "TEXT_TOO_LONG": "the text gets too long",
    "TOO_MANY_COLUMNS": "more cells than columns",
    "FIELD_TOO_LONG": "a cell is too long",
    "INVALID_TIMEZONE": "no such timezone",
    "NO_COMMON_HOURS": "no hour at which both are awake",
}
LEFT_OUT_SHOWN = 100


def show_plan(plan: JobPlan) -> None:
    with ui.element("div").classes("plan"):
        _end(plan)
        _sums(plan)
        if plan.will_expire.count:
            why = LIMITS.get(plan.will_expire.why or "", "")
            words = f"{plan.will_expire.count:,} would expire before their turn" + (f": {why}." if why else ".")
            text("p", words, "why-line why-line--warn")
        if plan.days and len(plan.days) > 1:
            _days(plan)
        if plan.phones:
            _phones(plan)
        if plan.rejected:
            _left_out(plan)
        if plan.suggestions:
            text("h3", "What would help")
            with ui.element("ul").classes("plain-list"):
                for one in plan.suggestions:
                    text("li", one.text).props('dir="auto"')


def _end(plan: JobPlan) -> None:
    limit = LIMITS.get(plan.bottleneck, "")
    with ui.element("p").classes("plan-end"):
        if plan.finishes_at is None:
            text("strong", "No end in sight")
            text("span", f" {limit}" if limit else "", "quiet")
            return
        text("span", "Done ", "quiet")
        with ui.element("strong"):
            When(plan.finishes_at, "clock")
        with ui.element("span").classes("quiet"):
            text("span", " (")
            When(plan.finishes_at)
            text("span", f"), held back by {limit}" if limit else ")")


def _sums(plan: JobPlan) -> None:
    refused = sum(one.count for one in plan.refused)
    parts = [
        (plan.accepted, "will be written to"),
        (len(plan.rejected), "refused"),
        (refused, "never awake at the same hours"),
        (plan.duplicates, "named twice"),
        (plan.suppressed, "on the suppression list"),
    ]
    with ui.element("ul").classes("sums"):
        for count, words in parts:
            if count or words == "will be written to":
                with ui.element("li"):
                    text("strong", f"{count:,}")
                    text("span", f" {words}")


def _days(plan: JobPlan) -> None:
    text("h3", "Day by day")
    most = max(day.messages for day in plan.days)
    table = Table("Messages a day", [Column("day", "Day"), Column("load", "Messages", "bar")], none="")
    table.show([{"id": day.date, "day": day.date, "load": _bar(day.messages, most)} for day in plan.days])


def _phones(plan: JobPlan) -> None:
    text("h3", "Load on each number")
    most = max(phone.messages for phone in plan.phones)
    columns = [Column("phone", "Number"), Column("load", "Messages", "bar"), Column("end", "Done", "when")]
    table = Table("Load on each number", columns, none="")
    rows = [
        {
            "id": phone.phone,
            "phone": {"text": work.number(phone.phone), "title": phone.session_id, "note": _own_limit(plan, phone)},
            "load": _bar(phone.messages, most),
            "end": phone.finishes_at,
        }
        for phone in plan.phones
    ]
    others = plan.other_phones
    note = f"and {others.phones:,} more with {others.messages:,} messages together" if others.phones else ""
    table.show(rows, note=note)


def _own_limit(plan: JobPlan, phone: PlanPhone) -> str:
    return "" if phone.limited_by == plan.bottleneck else LIMITS.get(phone.limited_by, "")


def _left_out(plan: JobPlan) -> None:
    text("h3", "Refused")
    reasons = Counter(REFUSALS.get(one.code, one.code) for one in plan.rejected)
    text("p", ", ".join(f"{count:,} × {words}" for words, count in reasons.most_common()), "quiet")
    columns = [Column("row", "Row", "number"), Column("to", "Recipient"), Column("why", "Why")]
    table = Table("Refused recipients", columns, none="")
    rows = [
        {
            "id": str(one.index),
            "row": one.index + 1,
            "to": one.to or "(empty)",
            "why": REFUSALS.get(one.code, one.code) + (f": {one.variable}" if one.variable else ""),
        }
        for one in plan.rejected[:LEFT_OUT_SHOWN]
    ]
    more = len(plan.rejected) - len(rows)
    table.show(rows, note=f"and {more:,} more" if more else "")


def _bar(value: int, most: int) -> dict[str, Any]:
    return {"text": f"{value:,}", "value": value, "max": most}
