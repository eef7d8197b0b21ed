"""Every number in one table, sorted, searched and paged by the dispatcher."""

from urllib.parse import quote

from nicegui import ui

from paceline.client.answers_fleet import RosterRow
from paceline.dashboard.parts import words
from paceline.dashboard.parts.inputs import Field
from paceline.dashboard.parts.live import Silent
from paceline.dashboard.parts.page import Visit
from paceline.dashboard.parts.panel import Panel
from paceline.dashboard.parts.table import Column, Row, Table

PAGE_SIZE = 50
LEVELS_SECONDS = 3_600
"""The policy changes with a restart of the dispatcher."""
ANY_TRUST = {"": "Every trust"}

COLUMNS = [
    Column("session", "Number", sort=True, classes="nowrap"),
    Column("status", "Status", "state", sort=True),
    Column("trust", "Trust", sort=True, first="down"),
    Column("rpm", "Rate", sort=True, first="down", classes="nowrap"),
    Column("effectiveRpm", "Effective", "number", sort=True, first="down"),
    Column("nextSlot", "Next slot", "next", sort=True),
    Column("queue", "Queue", sort=True, first="down", classes="right"),
    Column("budget", "Today", "bar", sort=True, first="down"),
    Column("proxy", "Proxy", classes="wide-only"),
]


def numbers_table(visit: Visit) -> None:
    with Panel("Numbers", classes="panel--flush") as panel:
        table = Table(
            "Numbers",
            COLUMNS,
            none="No number fits this.",
            on_change=visit.live.now,
            sort="status",
            wide=True,
        )
    filters = _filters(visit, panel, table)

    async def name_levels() -> None:
        policy = await visit.api.fleet.policy()
        filters["trust"].set_options(ANY_TRUST | {level.name: level.name.capitalize() for level in policy.levels})

    async def refresh() -> None:
        page = await visit.api.fleet.roster(
            search=filters["search"].value,
            status=filters["status"].value,
            trust=filters["trust"].value,
            sort=table.sort,
            order="desc" if table.descending else "asc",
            cursor=table.cursor,
            limit=PAGE_SIZE,
        )
        asked = any(field.value for field in filters.values())
        panel.empty("" if page.total or asked else "There is no number yet. Add one, and link it with its phone.")
        note = words.count(page.total, "number")
        table.show([row_of(one) for one in page.items], next_cursor=page.next_cursor, note=note)

    visit.live.add(refresh, panel)
    visit.live.add(name_levels, Silent(), every_seconds=LEVELS_SECONDS)


def _filters(visit: Visit, panel: Panel, table: Table) -> dict[str, Field]:
    async def changed(_value: str) -> None:
        table.rewind()
        await visit.live.now()

    statuses = {"": "Every status", **{name: word.text for name, word in words.STATUSES.items()}}
    status = visit.query.get("status", "")
    assert panel.head is not None
    with panel.head, ui.element("div").classes("filters"):
        return {
            "search": Field("Search", kind="search", on_change=changed, placeholder="Search").hidden_label(),
            "status": Field(
                "Status",
                kind="select",
                options=statuses,
                value=status if status in statuses else "",
                on_change=changed,
            ).hidden_label(),
            "trust": Field("Trust", kind="select", options=ANY_TRUST, on_change=changed).hidden_label(),
        }


def row_of(one: RosterRow) -> Row:
    return {
        "id": one.session_id,
        "session": {
            "text": words.phone(one.phone),
            "href": f"/sessions/{quote(one.session_id, safe='')}",
            "note": " · ".join(part for part in (one.display_name, one.session_id, *one.tags) if part),
        },
        "status": _status(one),
        "trust": one.trust_level.capitalize(),
        "rpm": _rate(one),
        "effectiveRpm": one.effective_rpm,
        "nextSlot": one.next_slot_at if one.queue_len else None,
        "queue": _queue(one),
        "budget": _budget(one),
        "proxy": one.proxy or ("direct" if one.direct else None),
    }


def _status(one: RosterRow) -> dict[str, str]:
    word = words.status(one.status)
    if one.status == "RESTRICTED":
        word = words.RESTRICTIONS.get(one.restriction.kind, word)
    elif one.status == "WORKING" and (one.unsettled or one.sent_last60s):
        word = words.Word("Sending", "busy", f"{one.sent_last60s} in the last minute")
    return {"text": word.text, "tone": word.tone, "title": word.title}


def _rate(one: RosterRow) -> dict[str, str]:
    if one.rpm_override is None:
        return {"text": f"{one.rpm} /min"}
    by = "SmartGuard" if one.rpm_source == "smartguard" else "override"
    return {"text": f"{one.rpm} /min", "note": by, "title": f"{one.rpm_default} a minute by trust"}


def _queue(one: RosterRow) -> dict[str, str]:
    cell = {"text": f"{one.queue_len:,}"}
    if one.parked:
        cell["note"] = f"{one.parked:,} parked"
    if one.waiting:
        cell["title"] = one.waiting.text
    return cell


def _budget(one: RosterRow) -> dict[str, object]:
    if one.daily_cap is None:
        return {"text": f"{one.sent_today:,}", "title": "No daily cap"}
    tone = "bad" if one.sent_today >= one.daily_cap else "warn" if one.sent_today >= 0.8 * one.daily_cap else "plain"
    text = f"{one.sent_today:,} / {one.daily_cap:,}"
    return {"text": text, "value": one.sent_today, "max": one.daily_cap, "tone": tone}
