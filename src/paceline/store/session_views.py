"""A session as operators see it: the row of `session:<id>`, what its phone says, and one word for all of it."""

from collections.abc import Iterable, Mapping

import msgspec

from paceline.domain.proxies import masked
from paceline.domain.sessions import status
from paceline.policy.restriction import standing

PHONE_FIELDS = ("timezone", "quarantined", "cooldownUntil", "restriction", "restrictedUntil")
"""What a view reads of the phone, in this order."""


class LastCommand(msgspec.Struct, frozen=True, rename="camel"):
    """How the last thing its worker was told to do (pair, scan, logout) ended."""

    id: str
    kind: str
    ok: bool
    at: int
    error: str | None = None


class SessionView(msgspec.Struct, frozen=True, rename="camel"):
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
    timezone: str | None = None
    restriction: str = "NONE"
    """NONE, COOLDOWN, TIME_LOCKED, CAPPED or QUARANTINED: what keeps its number from sending freely."""
    restricted_until: int | None = None
    tags: list[str] = []
    paused: bool = False
    removing: bool = False
    generation: int = 1
    """How many worker processes were wished for it so far."""
    restart_reason: str | None = None
    failed_reason: str | None = None
    last_exit: str | None = None
    """How its last worker ended: EXITED with a code, VANISHED, START_REFUSED with the reason …"""
    starts: int = 0
    """Starts in a row whose worker did not get healthy."""
    wait_reason: str | None = None
    """Why its worker has not been started: NO_PROXY, or PHONE_FULL (as many run for its number as may)."""
    proxy: str | None = None
    """The proxy it holds now, without its credentials."""
    proxy_id: str | None = None
    direct: bool = False
    """It goes out without a proxy, as was asked for."""
    profile: str | None = None
    display_name: str | None = None
    last_command: LastCommand | None = None
    heard_at: int | None = None
    """When its worker last heard WhatsApp."""
    memory_bytes: int | None = None
    """What its worker takes of the host, as last measured."""
    cpu_ms: int | None = None
    """Processor time of its worker since it started."""


class SessionFilter(msgspec.Struct, frozen=True):
    """Which sessions a list shows; an empty word asks for nothing."""

    connection: str = ""
    restriction: str = ""
    status: str = ""
    tag: str = ""
    phone: str = ""

    def takes(self, view: SessionView) -> bool:
        asked: Iterable[tuple[str, str]] = (
            (self.connection, view.connection),
            (self.restriction, view.restriction),
            (self.status, view.status),
            (self.phone, view.phone),
        )
        return all(not word or word == value for word, value in asked) and (not self.tag or self.tag in view.tags)


def view_of(
    session: str, row: Mapping[str, str], about: list[str | None], proxy_number: str | None, now_ms: int
) -> SessionView:
    known = standing(
        quarantined=about[1] == "1",
        cooldown_until=int(about[2] or 0),
        restriction=about[3] or "",
        restricted_until=int(about[4] or 0),
        now_ms=now_ms,
    )
    last = row.get("lastCommand")
    paused, removing = row.get("paused") == "1", row.get("removing") == "1"
    return SessionView(
        session_id=session,
        phone=row["phone"],
        driver=row["driver"],
        status=status(
            connection=row["connection"],
            authorisation=row["authorisation"],
            restriction=known.kind,
            paused=paused,
            removing=removing,
        ),
        connection=row["connection"],
        authorisation=row["authorisation"],
        desired=row["desired"],
        epoch=int(row["epoch"]),
        created_at=int(row["createdAt"]),
        last_seen=int(row.get("lastSeen", 0)),
        timezone=about[0],
        restriction=known.kind,
        restricted_until=known.until,
        tags=msgspec.json.decode(row["tags"], type=list[str]),
        paused=paused,
        removing=removing,
        generation=int(row.get("generation", 1)),
        restart_reason=row.get("restartReason"),
        failed_reason=row.get("failedReason"),
        last_exit=row.get("lastExit"),
        starts=int(row.get("starts", 0)),
        wait_reason=row.get("waitReason"),
        proxy=masked(row["proxy"]) if row.get("proxy") else None,
        proxy_id=f"p{float(proxy_number):.0f}" if proxy_number else None,
        direct=row.get("direct") == "1",
        profile=row.get("profile") or None,
        display_name=row.get("displayName"),
        last_command=msgspec.json.decode(last, type=LastCommand) if last else None,
        heard_at=_number(row.get("heardAt")),
        memory_bytes=_number(row.get("memoryBytes")),
        cpu_ms=_number(row.get("cpuMs")),
    )


def _number(value: str | None) -> int | None:
    return None if value is None else int(value)
