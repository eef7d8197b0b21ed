"""What is shown of proxies and profiles. No answer holds a credential, nor the line of a profile."""

from typing import Annotated

import msgspec
from msgspec import Meta

from paceline.domain.proxies import masked
from paceline.store.inventory import PoolSizes, ProfileRow, ProxyRow


class Rejected(msgspec.Struct, frozen=True):
    line: int
    reason: str


class Uploaded(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    status: str = "ok"
    added: int
    duplicates: Annotated[int, Meta(description="lines that were in the pool, or in the file, before")]
    rejected: Annotated[list[Rejected], Meta(description="the first 1,000 bad lines; nothing of them was stored")]
    rejected_total: int


class ProfileCounts(msgspec.Struct, frozen=True):
    available: int
    used: int


class ProxyCounts(msgspec.Struct, frozen=True):
    available: Annotated[int, Meta(description="good ones with room for another session")]
    total: int
    bad: int


class Pools(msgspec.Struct, frozen=True):
    profiles: ProfileCounts
    proxies: ProxyCounts


class Rules(msgspec.Struct, frozen=True, rename="camel"):
    max_sessions_per_proxy: int
    max_sessions_per_phone: int


class InventoryStatus(msgspec.Struct, frozen=True, kw_only=True):
    status: str = "ok"
    inventory: Pools
    rules: Rules
    sessions: Annotated[dict[str, int], Meta(description="how many sessions there are of each status")]


class ProxyView(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    proxy_id: str
    proxy: Annotated[str, Meta(description="user name and password masked", examples=["http://***@proxy.example:8080"])]
    state: Annotated[str, Meta(description="OK or BAD")]
    reason: Annotated[str | None, Meta(description="why it was marked so last")] = None
    by: str | None = None
    since: int | None = None
    added_at: int | None = None
    load: Annotated[int, Meta(description="sessions that hold it")]
    limit: int
    sessions: list[str]
    checked_at: Annotated[
        int | None, Meta(description="when a request last went through it, to see whether it works")
    ] = None
    latency_ms: int | None = None


class ProxyPage(msgspec.Struct, frozen=True, rename="camel"):
    items: list[ProxyView]
    next_cursor: str | None


class Marked(msgspec.Struct, frozen=True):
    proxy: ProxyView
    changed: bool
    moved: Annotated[list[str], Meta(description="sessions that are restarted with another proxy because of it")]
    kept: Annotated[list[str], Meta(description="sessions of banned numbers, which keep it: a ban moves nothing")]


class ProfileView(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    profile_id: str
    kind: Annotated[str, Meta(description="settings: a JSON object; payload: anything else")]
    size: Annotated[int, Meta(description="characters of the line, which is not shown")]
    display_name: str | None = None
    timezone: str | None = None
    tags: list[str] = []
    created_at: int | None = None
    session_id: Annotated[str | None, Meta(description="who has it; null: it is free")] = None
    added_at: int | None = None


class ProfilePage(msgspec.Struct, frozen=True, rename="camel"):
    items: list[ProfileView]
    next_cursor: str | None


class MarkBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    reason: Annotated[str, Meta(min_length=1, max_length=200, description="for the audit trail and the alert")] = (
        "OPERATOR"
    )


def inventory_of(sizes: PoolSizes) -> Pools:
    return Pools(
        ProfileCounts(sizes.profiles_available, sizes.profiles_used),
        ProxyCounts(sizes.proxies_available, sizes.proxies_total, sizes.proxies_bad),
    )


def proxy_view(row: ProxyRow, limit: int) -> ProxyView:
    about = row.about
    return ProxyView(
        proxy_id=row.proxy_id,
        proxy=masked(row.url),
        state=row.state,
        reason=about.get("reason"),
        by=about.get("by"),
        since=_number(about, "since"),
        added_at=_number(about, "addedAt"),
        load=len(row.sessions),
        limit=limit,
        sessions=row.sessions,
        checked_at=_number(about, "checkedAt"),
        latency_ms=_number(about, "latencyMs"),
    )


def profile_view(row: ProfileRow) -> ProfileView:
    known = row.known
    return ProfileView(
        profile_id=row.profile_id,
        kind="settings" if known.get("isObject") == "1" else "payload",
        size=len(known.get("line", "")),
        display_name=known.get("displayName"),
        timezone=known.get("timezone"),
        tags=msgspec.json.decode(known.get("tags", "[]"), type=list[str]),
        created_at=_number(known, "createdAt"),
        session_id=known.get("session"),
        added_at=_number(known, "addedAt"),
    )


def _number(known: dict[str, str], field: str) -> int | None:
    return int(known[field]) if field in known else None
