"""Answers of the orchestrator: sessions, linking, proxies, profiles, the audit trail, alerts."""

from typing import Any

from paceline.client.answers_jobs import Answer


class LastCommand(Answer, frozen=True, kw_only=True):
    id: str
    kind: str
    ok: bool
    at: int
    error: str | None


class Session(Answer, frozen=True, kw_only=True):
    session_id: str
    phone: str
    driver: str
    status: str
    """One word for connection, authorisation, restriction, pause and removal together."""
    connection: str
    authorisation: str
    desired: str
    epoch: int
    created_at: int
    last_seen: int
    timezone: str | None
    restriction: str
    restricted_until: int | None
    tags: list[str]
    paused: bool
    removing: bool
    generation: int
    restart_reason: str | None
    failed_reason: str | None
    last_exit: str | None
    starts: int
    wait_reason: str | None
    proxy: str | None
    proxy_id: str | None
    direct: bool
    profile: str | None
    display_name: str | None
    last_command: LastCommand | None
    heard_at: int | None
    memory_bytes: int | None
    cpu_ms: int | None


class SessionActed(Answer, frozen=True, kw_only=True):
    changed: bool
    """False: it was so already."""
    session: Session


class SessionRemoving(Answer, frozen=True, kw_only=True):
    removing: bool


class CommandGiven(Answer, frozen=True, kw_only=True):
    command_id: str
    kind: str
    expires_at: int


class QrCode(Answer, frozen=True, kw_only=True):
    qr: str
    expires_at: int

    def __repr__(self) -> str:
        # Whoever finds it in a log can link a device.
        return f"QrCode(qr=…, expires_at={self.expires_at!r})"


class PairingCode(Answer, frozen=True, kw_only=True):
    code: str
    expires_at: int

    def __repr__(self) -> str:
        return f"PairingCode(code=…, expires_at={self.expires_at!r})"


class SessionEvent(Answer, frozen=True, kw_only=True):
    event: str
    at: int
    received_at: int
    event_id: str
    data: dict[str, Any]


class SessionLogs(Answer, frozen=True, kw_only=True):
    session_id: str
    lines: list[str]
    """The oldest first."""


class AuditRow(Answer, frozen=True, kw_only=True):
    """One fact. Which fields it has depends on its kind: BINDING, OPERATOR or SENT."""

    id: int
    kind: str
    at: int
    session_id: str = ""
    phone: str = ""
    proxy_ip: str = ""
    profile_id: str = ""
    status: str = ""
    action: str = ""
    by: str = ""
    reason: str = ""
    details: dict[str, Any] = {}
    message_id: str = ""
    whatsapp_id: str = ""


class RejectedLine(Answer, frozen=True, kw_only=True):
    line: int
    reason: str


class Uploaded(Answer, frozen=True, kw_only=True):
    added: int
    duplicates: int
    rejected: list[RejectedLine]
    """The first 1,000 bad lines."""
    rejected_total: int


class Proxy(Answer, frozen=True, kw_only=True):
    proxy_id: str
    proxy: str
    """Without its credentials."""
    state: str
    reason: str | None
    by: str | None
    since: int | None
    added_at: int | None
    load: int
    limit: int
    sessions: list[str]
    checked_at: int | None
    latency_ms: int | None


class ProxyMarked(Answer, frozen=True, kw_only=True):
    proxy: Proxy
    changed: bool
    moved: list[str]
    kept: list[str]


class Profile(Answer, frozen=True, kw_only=True):
    profile_id: str
    kind: str
    size: int
    display_name: str | None
    timezone: str | None
    tags: list[str]
    created_at: int | None
    session_id: str | None
    """Who has it; None: it is free."""
    added_at: int | None


class ProfileCounts(Answer, frozen=True, kw_only=True):
    available: int
    used: int


class ProxyCounts(Answer, frozen=True, kw_only=True):
    available: int
    total: int
    bad: int


class Pools(Answer, frozen=True, kw_only=True):
    profiles: ProfileCounts
    proxies: ProxyCounts


class Rules(Answer, frozen=True, kw_only=True):
    max_sessions_per_proxy: int
    max_sessions_per_phone: int


class InventoryStatus(Answer, frozen=True, kw_only=True):
    inventory: Pools
    rules: Rules
    sessions: dict[str, int]
    """How many there are of each status."""


class AlertChannel(Answer, frozen=True, kw_only=True):
    channel: str
    ok: bool
    reason: str = ""


class AlertChannels(Answer, frozen=True, kw_only=True):
    channels: list[str]


class AlertsTested(Answer, frozen=True, kw_only=True):
    ok: bool
    channels: list[AlertChannel]
