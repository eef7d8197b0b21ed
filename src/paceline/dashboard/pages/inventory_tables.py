"""The pools: every proxy with its load and health, every profile with who has it."""

from typing import Any

from paceline.client.answers_fleet_sessions import Profile, Proxy
from paceline.dashboard.parts.acting import act, confirm, notify
from paceline.dashboard.parts.page import Visit
from paceline.dashboard.parts.panel import Panel
from paceline.dashboard.parts.table import Column, Table
from paceline.dashboard.parts.words import count

ROWS = 50
_PROXIES = [
    Column("proxy", "Proxy"),
    Column("state", "State", "state"),
    Column("load", "Sessions", "bar"),
    Column("who", "Held by", classes="words"),
    Column("latency", "Latency"),
    Column("checked", "Checked", "when"),
    Column("actions", "Actions", "actions", quiet=True),
]
_PROFILES = [
    Column("profile", "Profile"),
    Column("name", "Display name"),
    Column("timezone", "Timezone"),
    Column("tags", "Tags"),
    Column("who", "Held by"),
    Column("added", "Added", "when"),
    Column("actions", "Actions", "actions", quiet=True),
]


class ProxiesTable:
    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._shown: dict[str, Proxy] = {}
        with Panel("Proxies", classes="panel--flush") as self._panel:
            self._table = Table("Proxies", _PROXIES, none="None.", on_change=visit.live.now, on_act=self._act)
            self._table.classes("cards")
        visit.live.add(self._refresh, self._panel, every_seconds=5)

    async def _refresh(self) -> None:
        page = await self._visit.api.proxies.list(cursor=self._table.cursor, limit=ROWS)
        self._shown = {proxy.proxy_id: proxy for proxy in page.items}
        self._panel.empty("No proxies yet." if not page.items and not self._table.cursor else "")
        rows = [proxy_row(proxy, may_act=self._visit.may("admin")) for proxy in page.items]
        self._table.show(rows, next_cursor=page.next_cursor)

    async def _act(self, name: str, proxy_id: str) -> None:
        proxy = self._shown.get(proxy_id)
        if proxy is None:
            return
        if name == "ok":
            await act(self._visit, self._visit.api.proxies.mark_ok(proxy_id), "It is given out again.")
        elif name == "bad":
            await self._mark_bad(proxy)
        elif await confirm("Remove this proxy?", proxy.proxy, "Remove", danger=True):
            await act(self._visit, self._visit.api.proxies.drop(proxy_id), "Removed.")

    async def _mark_bad(self, proxy: Proxy) -> None:
        words = f"Restarted with another: {count(proxy.load, 'session')}." if proxy.load else "No session holds it."
        if await confirm(f"Mark {proxy.proxy} as bad?", words, "Mark as bad", danger=True):
            done = await act(self._visit, self._visit.api.proxies.mark_bad(proxy.proxy_id))
            if done is not None:
                kept = f" {len(done.kept):,} of banned numbers stay on it." if done.kept else ""
                notify(f"{count(len(done.moved), 'session')} moved to another.{kept}")


class ProfilesTable:
    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        with Panel("Profiles", classes="panel--flush") as self._panel:
            self._table = Table("Profiles", _PROFILES, none="None.", on_change=visit.live.now, on_act=self._act)
            self._table.classes("cards")
        visit.live.add(self._refresh, self._panel, every_seconds=5)

    async def _refresh(self) -> None:
        page = await self._visit.api.profiles.list(cursor=self._table.cursor, limit=ROWS)
        self._panel.empty("No profiles yet." if not page.items and not self._table.cursor else "")
        rows = [profile_row(profile, may_act=self._visit.may("admin")) for profile in page.items]
        self._table.show(rows, next_cursor=page.next_cursor)

    async def _act(self, _: str, profile_id: str) -> None:
        if await confirm("Remove this profile?", f"{profile_id} leaves the pool.", "Remove", danger=True):
            await act(self._visit, self._visit.api.profiles.drop(profile_id), "Removed.")


def proxy_row(proxy: Proxy, *, may_act: bool) -> dict[str, Any]:
    is_bad = proxy.state == "BAD"
    mark = {"name": "ok", "label": "Mark good"} if is_bad else {"name": "bad", "label": "Mark bad"}
    remove = {"name": "drop", "label": "Remove", "why": "Sessions hold it." if proxy.load else ""}
    return {
        "id": proxy.proxy_id,
        "proxy": {"text": proxy.proxy, "note": proxy.proxy_id},
        "state": {"text": "bad" if is_bad else "good", "tone": "bad" if is_bad else "good", "title": proxy.reason},
        "load": {
            "text": f"{proxy.load} of {proxy.limit}",
            "value": proxy.load,
            "max": proxy.limit,
            "tone": "warn" if proxy.load >= proxy.limit else "",
        },
        "who": ", ".join(proxy.sessions),
        "latency": f"{proxy.latency_ms:,} ms" if proxy.latency_ms is not None else None,
        "checked": proxy.checked_at,
        "actions": [mark, remove] if may_act else [],
    }


def profile_row(profile: Profile, *, may_act: bool) -> dict[str, Any]:
    remove = {"name": "drop", "label": "Remove", "why": "A session has it." if profile.session_id else ""}
    who = {"text": profile.session_id, "href": f"/sessions/{profile.session_id}"} if profile.session_id else "free"
    kind = "settings" if profile.kind == "settings" else f"text of {profile.size:,} characters"
    return {
        "id": profile.profile_id,
        "profile": {"text": profile.profile_id, "note": kind},
        "name": profile.display_name,
        "timezone": profile.timezone,
        "tags": ", ".join(profile.tags),
        "who": who,
        "added": profile.added_at,
        "actions": [remove] if may_act else [],
    }
