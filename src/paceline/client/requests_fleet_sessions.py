"""Calls to the orchestrator about sessions: the registry, their life cycle, linking, and their past."""

from collections.abc import Sequence

from paceline.client.answers_fleet_sessions import (
    AuditRow,
    CommandGiven,
    PairingCode,
    QrCode,
    Session,
    SessionActed,
    SessionEvent,
    SessionLogs,
    SessionRemoving,
)
from paceline.client.answers_jobs import Page
from paceline.client.calls import Call, Moment, Repeat, Service, body, moment, path, query

_O = Service.ORCHESTRATOR
PAIRING_SECONDS = 25.0
"""As long as the orchestrator waits for a worker's code."""


def list_sessions(
    *,
    status: str = "",
    connection: str = "",
    restriction: str = "",
    tag: str = "",
    phone: str = "",
    cursor: str = "",
    limit: int = 100,
) -> Call[Page[Session]]:
    """A page of sessions, in the order of their ids."""
    given = query(
        status=status,
        connection=connection,
        restriction=restriction,
        tag=tag,
        phone=phone,
        cursor=cursor,
        limit=limit,
    )
    return Call("GET", "/api/sessions", Page[Session], query=given, service=_O)


def create_session(
    phone: str,
    *,
    session_id: str | None = None,
    driver: str | None = None,
    proxy: str | None = None,
    profile: str | None = None,
    created_at: Moment | None = None,
    timezone: str | None = None,
    tags: Sequence[str] | None = None,
) -> Call[Session]:
    """Register a session of a number. With a `session_id` of your own it is repeated safely."""
    content = body(
        phone=phone,
        session_id=session_id,
        driver=driver,
        proxy=proxy,
        profile=profile,
        created_at=moment(created_at),
        timezone=timezone,
        tags=tags,
    )
    repeat = Repeat.ANOTHER if session_id is None else Repeat.HARMLESS
    return Call("POST", "/api/sessions", Session, content=content, repeat=repeat, service=_O)


def get_session(session_id: str) -> Call[Session]:
    """What is wished for it, what its worker said last, and what it holds."""
    return Call("GET", path("/api/sessions/{}", session_id), Session, service=_O)


def change_session(
    session_id: str,
    *,
    created_at: Moment | None = None,
    timezone: str | None = None,
    tags: Sequence[str] | None = None,
) -> Call[Session]:
    """Its number's age and timezone, its tags; what is left out stays."""
    content = body(created_at=moment(created_at), timezone=timezone, tags=tags)
    return Call("PATCH", path("/api/sessions/{}", session_id), Session, content=content, service=_O)


def remove_session(session_id: str, *, force: bool = False) -> Call[SessionRemoving]:
    """Its worker ends, then it is gone. `Conflict` while messages wait, unless `force`."""
    given = query(force="true" if force else None)
    return Call("DELETE", path("/api/sessions/{}", session_id), SessionRemoving, query=given, service=_O)


def start_session(session_id: str) -> Call[SessionActed]:
    """A worker is wanted; of one that failed or was logged out it is a new beginning."""
    return _wish(session_id, "start")


def stop_session(session_id: str) -> Call[SessionActed]:
    """Its worker finishes the message it holds and ends. The link and what waits stay."""
    return _wish(session_id, "stop")


def restart_session(session_id: str) -> Call[SessionActed]:
    """Another worker instead of the present one. Not repeated if its answer is lost: that would be a second restart."""
    return _wish(session_id, "restart", Repeat.ANOTHER)


def pause_session(session_id: str) -> Call[SessionActed]:
    """It stays connected and gets no task."""
    return _wish(session_id, "pause")


def resume_session(session_id: str) -> Call[SessionActed]:
    """It gets tasks again."""
    return _wish(session_id, "resume")


def _wish(session_id: str, wish: str, repeat: Repeat = Repeat.HARMLESS) -> Call[SessionActed]:
    return Call("POST", path(f"/api/sessions/{{}}/{wish}", session_id), SessionActed, repeat=repeat, service=_O)


def logout(session_id: str) -> Call[CommandGiven]:
    """Its worker ends the link to the number and stops."""
    return Call("POST", path("/api/sessions/{}/logout", session_id), CommandGiven, service=_O)


def qr(session_id: str) -> Call[QrCode]:
    """The code to scan. `NotFound` (NO_QR) while none is shown, `Conflict` when none will be."""
    return Call("GET", path("/api/sessions/{}/qr", session_id), QrCode, service=_O)


def pairing_code(session_id: str) -> Call[PairingCode]:
    """A code to type into the phone instead of scanning; waits up to half a minute for the worker."""
    where = path("/api/sessions/{}/pairing-code", session_id)
    return Call("POST", where, PairingCode, service=_O, waits_seconds=PAIRING_SECONDS)


def scan_simulated(session_id: str) -> Call[CommandGiven]:
    """As a person with the phone would; only of simulated sessions."""
    return Call("POST", path("/api/sessions/{}/simulated/scan", session_id), CommandGiven, service=_O)


def session_events(session_id: str, *, cursor: str = "", limit: int = 100) -> Call[Page[SessionEvent]]:
    """A page of what its worker said, newest first; the last 200 are kept."""
    given = query(cursor=cursor, limit=limit)
    return Call("GET", path("/api/sessions/{}/events", session_id), Page[SessionEvent], query=given, service=_O)


def session_history(session_id: str, *, cursor: str = "", limit: int = 100) -> Call[Page[AuditRow]]:
    """A page of what was decided about it and what it sent, newest first; also of one that was removed."""
    given = query(cursor=cursor, limit=limit)
    return Call("GET", path("/api/sessions/{}/history", session_id), Page[AuditRow], query=given, service=_O)


def session_logs(session_id: str, *, lines: int = 100) -> Call[SessionLogs]:
    """The end of what its worker printed; at most 1,000 lines."""
    return Call("GET", path("/api/sessions/{}/logs", session_id), SessionLogs, query=query(lines=lines), service=_O)
