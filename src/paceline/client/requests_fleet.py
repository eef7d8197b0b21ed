"""Calls to the dispatcher: the fleet as a whole, SmartGuard, what happened, and decisions about single numbers."""

from msgspec import UNSET, UnsetType

from paceline.client.answers_fleet import (
    DispatcherHealth,
    FleetPaused,
    FleetState,
    Line,
    Overview,
    Pacer,
    Policy,
    QueueLengths,
    RosterPage,
    Running,
    SessionMetrics,
    SmartGuard,
)
from paceline.client.answers_fleet_numbers import CooldownCleared, Explained, Pacing, QueueCanceled, Requeued, RpmSet
from paceline.client.answers_jobs import Page
from paceline.client.calls import Call, Moment, Service, body, body_with_null, moment, path, query

_D = Service.DISPATCHER
Maybe = int | UnsetType | None


def health() -> Call[DispatcherHealth]:
    """Is the dispatcher working? `Unavailable` if its store does not answer."""
    return Call("GET", "/health", DispatcherHealth, service=_D)


def queue_lengths() -> Call[QueueLengths]:
    """How much lies in each queue of the whole platform."""
    return Call("GET", "/queue/status", QueueLengths, service=_D)


def fleet() -> Call[FleetState]:
    """Do the dispatchers work, and is sending allowed? If not: by whom, since when."""
    return Call("GET", "/fleet", FleetState, service=_D)


def policy() -> Call[Policy]:
    """The trust table in force, and what holds for all numbers."""
    return Call("GET", "/policy", Policy, service=_D)


def start() -> Call[Running]:
    """All dispatchers work again."""
    return Call("POST", "/start", Running, service=_D)


def stop() -> Call[Running]:
    """Routing, pacing, retries and SmartGuard rest, also after a restart."""
    return Call("POST", "/stop", Running, service=_D)


def pause() -> Call[FleetPaused]:
    """Nothing is handed over or claimed any more."""
    return Call("POST", "/fleet/pause", FleetPaused, service=_D)


def resume() -> Call[FleetPaused]:
    """Sending goes on, also after the breaker tripped."""
    return Call("POST", "/fleet/resume", FleetPaused, service=_D)


def smartguard() -> Call[SmartGuard]:
    """Does it slow numbers down by itself, and when did it last look?"""
    return Call("GET", "/smartguard/status", SmartGuard, service=_D)


def set_smartguard(enabled: bool) -> Call[SmartGuard]:
    """On or off, until it is switched again. Overrides it has set stay."""
    return Call("POST", "/smartguard/enable", SmartGuard, content=body(enabled=enabled), service=_D)


def incidents(*, kind: str = "", cursor: str = "", limit: int = 50) -> Call[Page[Line]]:
    """A page of what an operator should know, newest first; the last 200 are kept."""
    return Call("GET", "/incidents", Page[Line], query=query(kind=kind, cursor=cursor, limit=limit), service=_D)


def job_events(*, job_id: str = "", cursor: str = "", limit: int = 100) -> Call[Page[Line]]:
    """A page of jobs as they came and ended, newest first; the last 2,000 are kept."""
    return Call("GET", "/jobs/events", Page[Line], query=query(job_id=job_id, cursor=cursor, limit=limit), service=_D)


def pacers(*, cursor: str = "", limit: int = 100) -> Call[Page[Pacer]]:
    """A page of numbers with their pace, their queue and why they wait."""
    return Call("GET", "/pacers", Page[Pacer], query=query(cursor=cursor, limit=limit), service=_D)


def metrics(*, cursor: str = "", limit: int = 100) -> Call[Page[SessionMetrics]]:
    """A page of connected sessions with their last minute, rate and limits. It may hold fewer than `limit`."""
    return Call("GET", "/sessions/metrics", Page[SessionMetrics], query=query(cursor=cursor, limit=limit), service=_D)


def overview(*, since: Moment | None = None) -> Call[Overview]:
    """The fleet at a glance: how many numbers are there, what they did since then, the last hour by the minute."""
    return Call("GET", "/overview", Overview, query=query(since=moment(since)), service=_D)


def roster(
    *,
    search: str = "",
    status: str = "",
    trust: str = "",
    sort: str = "session",
    order: str = "asc",
    cursor: str = "",
    limit: int = 50,
) -> Call[RosterPage]:
    """A page of all sessions, sorted and searched by the dispatcher."""
    given = query(search=search, status=status, trust=trust, sort=sort, order=order, cursor=cursor, limit=limit)
    return Call("GET", "/sessions", RosterPage, query=given, service=_D)


def pacing(session_id: str) -> Call[Pacing]:
    """When its number sent, and when it may and should send next."""
    return Call("GET", path("/sessions/{}/pacing", session_id), Pacing, service=_D)


def explain(session_id: str) -> Call[Explained]:
    """What its number would do at this moment, and which rule says so."""
    return Call("GET", path("/sessions/{}/explain", session_id), Explained, service=_D)


def set_rpm(session_id: str, rpm: int | None) -> Call[RpmSet]:
    """Override its number's rate: 2, 3, 5, 10, 15 or 20; None removes the override, SmartGuard's too."""
    return Call("POST", path("/sessions/{}/rpm", session_id), RpmSet, content=body_with_null(rpm=rpm), service=_D)


def set_pacer(
    session_id: str,
    *,
    min_delay_ms: Maybe = UNSET,
    max_delay_ms: Maybe = UNSET,
    burst_limit: Maybe = UNSET,
    burst_cooldown_ms: Maybe = UNSET,
    rpm: Maybe = UNSET,
) -> Call[Pacer]:
    """Set its number's pacing. What is left out stays; None forgets what was set."""
    content = body_with_null(
        min_delay_ms=min_delay_ms,
        max_delay_ms=max_delay_ms,
        burst_limit=burst_limit,
        burst_cooldown_ms=burst_cooldown_ms,
        rpm=rpm,
    )
    return Call("POST", path("/pacers/{}", session_id), Pacer, content=content, service=_D)


def clear_cooldown(session_id: str) -> Call[CooldownCleared]:
    """End its number's cool-down early."""
    return Call("POST", path("/sessions/{}/cooldown/clear", session_id), CooldownCleared, service=_D)


def requeue(session_id: str) -> Call[Requeued]:
    """Its quarantined number is restored: the queue goes on. `Conflict` while no session of it is connected."""
    return Call("POST", path("/sessions/{}/queue/requeue", session_id), Requeued, service=_D)


def cancel_queue(session_id: str) -> Call[QueueCanceled]:
    """Cancel all that waits for its number."""
    return Call("POST", path("/sessions/{}/queue/cancel", session_id), QueueCanceled, service=_D)
