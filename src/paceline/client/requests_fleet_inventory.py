"""Calls to the orchestrator beside sessions: proxies, profiles, the audit trail, alerts, health."""

from types import NoneType
from typing import Literal

from paceline.client.answers_fleet_sessions import (
    AlertChannels,
    AlertsTested,
    AuditRow,
    InventoryStatus,
    Profile,
    Proxy,
    ProxyMarked,
    Uploaded,
)
from paceline.client.answers_jobs import Page
from paceline.client.answers_lists import Health
from paceline.client.calls import Call, Repeat, Service, body, form, path, query

_O = Service.ORCHESTRATOR
CHANNEL_SECONDS = 10.0
"""As long as the orchestrator waits for an alert's channels, all at once."""


def health() -> Call[Health]:
    """Is the orchestrator working? `Unavailable` if its store does not answer."""
    return Call("GET", "/health", Health, service=_O)


def status() -> Call[InventoryStatus]:
    """How many proxies and profiles are left, and how many sessions there are of each status."""
    return Call("GET", "/status", InventoryStatus, service=_O)


def upload_proxies(file: bytes, *, name: str = "proxies.txt") -> Call[Uploaded]:
    """One per line; bad ones are listed with their line, the rest is stored."""
    return Call("POST", "/upload/proxies", Uploaded, service=_O, **form(file, name=name, type="text/plain"))


def upload_profiles(file: bytes, *, name: str = "profiles.txt") -> Call[Uploaded]:
    """One per line; bad ones are listed with their line, the rest is stored."""
    return Call("POST", "/upload/profiles", Uploaded, service=_O, **form(file, name=name, type="text/plain"))


def list_proxies(*, cursor: str = "", limit: int = 100) -> Call[Page[Proxy]]:
    """A page of proxies with load, health and who holds them; credentials are masked."""
    return Call("GET", "/api/proxies", Page[Proxy], query=query(cursor=cursor, limit=limit), service=_O)


def list_profiles(*, cursor: str = "", limit: int = 100) -> Call[Page[Profile]]:
    """A page of profiles and who has them; the lines themselves are not shown."""
    return Call("GET", "/api/profiles", Page[Profile], query=query(cursor=cursor, limit=limit), service=_O)


def mark_bad(proxy_id: str, *, reason: str | None = None) -> Call[ProxyMarked]:
    """Nobody gets it any more, and sessions that hold it are restarted with another."""
    return Call("POST", path("/api/proxies/{}/bad", proxy_id), ProxyMarked, content=body(reason=reason), service=_O)


def mark_ok(proxy_id: str, *, reason: str | None = None) -> Call[ProxyMarked]:
    """It is given out again."""
    return Call("POST", path("/api/proxies/{}/ok", proxy_id), ProxyMarked, content=body(reason=reason), service=_O)


def drop_proxy(proxy_id: str) -> Call[None]:
    """Out of the pool. `Conflict` while sessions hold it."""
    return Call("DELETE", path("/api/proxies/{}", proxy_id), NoneType, service=_O)


def drop_profile(profile_id: str) -> Call[None]:
    """Out of the pool. `Conflict` while a session has it."""
    return Call("DELETE", path("/api/profiles/{}", profile_id), NoneType, service=_O)


def audit(
    *,
    kind: Literal["BINDING", "OPERATOR", "SENT"] | None = None,
    session: str = "",
    cursor: str = "",
    limit: int = 100,
) -> Call[Page[AuditRow]]:
    """A page of who did what and what went out, newest first."""
    given = query(kind=kind, session=session, cursor=cursor, limit=limit)
    return Call("GET", "/api/audit", Page[AuditRow], query=given, service=_O)


def alert_channels() -> Call[AlertChannels]:
    """Where alerts go, by name; none: nobody is alerted."""
    return Call("GET", "/api/alerts", AlertChannels, service=_O)


def test_alerts() -> Call[AlertsTested]:
    """Send a test alert to every channel. Not repeated if its answer is lost."""
    return Call(
        "POST", "/api/alerts/test", AlertsTested, repeat=Repeat.ANOTHER, service=_O, waits_seconds=CHANNEL_SECONDS
    )
