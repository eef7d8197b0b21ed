"""Is a worker still alive, and does it still hear? By what it did, not by the word CONNECTED.

A worker that says nothing has died or hangs. One that only pings has a timer that lives: if it asks for no work its
main loop hangs, and if nothing comes from WhatsApp any more its connection is dead without having ended. All three are
healed by a new worker; `policy.reconcile` counts such restarts and gives up on a session that does not get better.
Neighbour: `orchestrator.watchdog` gathers and applies.
"""

from typing import Literal

import msgspec

Ailment = Literal["SILENT", "STUCK", "DEAF"]


class WatchRules(msgspec.Struct, frozen=True):
    silent_ms: int = 60_000
    """Without any word. A worker pings every 15 s."""
    stuck_ms: int = 120_000
    """Connected, pinging, and asking for no work. It asks every 20 s, except while it sends; a send with its typing
    and the wait for an answer takes less than this."""
    deaf_ms: int = 180_000
    """Connected, and not a sign from WhatsApp, which answers a keep-alive every 30 s."""
    start_ms: int = 120_000
    """From its start to its first word: a host that starts a hundred of them at once takes its time."""
    down_ms: int = 120_000
    """Not connected for this long, and somebody is told. Reconnecting is everyday; this is not."""


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one session and its worker. Times are ours, 0 is never."""

    session_id: str
    is_ours: bool = True
    """Its worker is started by us, has been begun, and should run."""
    connection: str = "CONNECTED"
    is_over: bool = False
    """Failed, logged out, banned or stopped: its state says so already, and nobody waits for it."""
    started_at: int = 0
    seen_at: int = 0
    claimed_at: int = 0
    connected_at: int = 0
    heard_at: int | None = None
    """When WhatsApp was last heard; None: its driver cannot say."""
    down_since: int = 0


def ailment(one: Watched, rules: WatchRules, *, since_ms: int, now_ms: int) -> Ailment | None:
    """What a new worker would heal. `since_ms` is since when we could have heard it: after an outage of our own every
    worker has been silent, for us."""
    if not one.is_ours or one.is_over:
        return None

    def for_long(at_ms: int, limit_ms: int) -> bool:
        return now_ms - max(at_ms, one.started_at, since_ms) > limit_ms

    if for_long(one.seen_at, rules.silent_ms if one.seen_at >= one.started_at else rules.start_ms):
        return "SILENT"
    if one.connection != "CONNECTED":
        return None
    if for_long(max(one.claimed_at, one.connected_at), rules.stuck_ms):
        return "STUCK"
    if one.heard_at is not None and for_long(max(one.heard_at, one.connected_at), rules.deaf_ms):
        return "DEAF"
    return None


def is_down(one: Watched, rules: WatchRules, *, since_ms: int, now_ms: int) -> bool:
    """Whether a number that should be there has been away for so long that a person should know. One that was never
    there is not away."""
    if one.is_over:
        return False
    if one.connection == "CONNECTED":
        return now_ms - max(one.seen_at, since_ms) >= rules.down_ms
    return one.down_since > 0 and now_ms - max(one.down_since, since_ms) >= rules.down_ms
