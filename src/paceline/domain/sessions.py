"""The life of a session: three fields, and one table of what changes them.

*Connection* is how the worker stands towards WhatsApp, *authorisation* whether the number has linked it, *restriction*
what keeps the number from sending freely (that one belongs to the phone; `policy.restriction` derives it). `TABLE` says
for every event of a worker and every wish of an operator or watchdog what it changes. `orchestrator.inbound` walks it
for events, `store/lua/wish.lua` for wishes (`store.scripts` generates it into the script), docs/sessions.md draws it.
"""

from dataclasses import dataclass
from enum import StrEnum


class Connection(StrEnum):
    STOPPED = "STOPPED"
    """No worker is wanted."""
    STARTING = "STARTING"
    """A worker is wanted and has not connected yet."""
    SCAN_QR = "SCAN_QR"
    """The worker shows a code and waits for somebody to link it."""
    CONNECTED = "CONNECTED"
    RECONNECTING = "RECONNECTING"
    """The connection was lost; the worker tries again by itself."""
    FAILED = "FAILED"
    """Nothing is tried until an operator starts or restarts it; `failedReason` says why."""


class Authorisation(StrEnum):
    UNLINKED = "UNLINKED"
    LINKED = "LINKED"
    LOGGED_OUT = "LOGGED_OUT"
    """The link was ended, by the platform, on the phone, or by an operator here."""
    LINK_BLOCKED = "LINK_BLOCKED"
    """The platform lets this number link no device for now."""


@dataclass(frozen=True)
class Change:
    """What one event or wish changes; None leaves a field as it is."""

    why: str
    connection: Connection | None = None
    authorisation: Authorisation | None = None
    desired: str | None = None
    """Whether a worker should be there: running or stopped."""
    quarantine: str | None = None
    """The number's queue waits for an operator, with an incident under this reason."""
    failed: str | None = None
    """Why it is FAILED; nobody but an operator starts it again."""
    alarm: bool = False
    """An operator should hear of it although the number itself is not at fault (SESSION_FAILED)."""
    new_worker: bool = False
    """The generation goes up: the present worker process is replaced by another."""


_C, _A = Connection, Authorisation
DISCONNECTED = "DISCONNECTED"
OTHER = f"{DISCONNECTED} other"
LOGOUT_DONE = "LOGOUT_DONE"
"""Not an event of its own: the end of an operator's logout, told as COMMAND_DONE."""

TABLE: dict[str, Change] = {
    # What a worker says.
    "CONNECTED": Change("It is linked and online", _C.CONNECTED, _A.LINKED),
    "QR": Change("It shows a code to be scanned", _C.SCAN_QR, _A.UNLINKED),
    "LINK_BLOCKED": Change(
        "The platform refuses to link a device now; trying on makes it worse",
        _C.FAILED, _A.LINK_BLOCKED, failed="LINK_BLOCKED", alarm=True,
    ),
    LOGOUT_DONE: Change(
        "An operator's logout was carried out: no alarm, and its worker ends",
        _C.STOPPED, _A.LOGGED_OUT, desired="stopped",
    ),
    f"{DISCONNECTED} 401": Change(
        "Logged out by the phone or the platform: quarantine, a new link is an operator's decision",
        _C.FAILED, _A.LOGGED_OUT, quarantine="LOGGED_OUT", failed="LOGGED_OUT",
    ),
    f"{DISCONNECTED} 402": Change(
        "Banned for a time: quarantine; whoever starts it again decides that the ban is over",
        _C.FAILED, _A.LOGGED_OUT, quarantine="BANNED_402", failed="BANNED_402",
    ),
    f"{DISCONNECTED} 403": Change(
        "Banned: quarantine, no other proxy, no restart",
        _C.FAILED, _A.LOGGED_OUT, quarantine="BANNED_403", failed="BANNED_403",
    ),
    f"{DISCONNECTED} 405": Change(
        "The client is outdated: nothing helps but a newer worker image",
        _C.FAILED, failed="CLIENT_OUTDATED", alarm=True,
    ),
    f"{DISCONNECTED} 406": Change(
        "Locked by the platform: as a ban", _C.FAILED, _A.LOGGED_OUT, quarantine="BANNED_406", failed="BANNED_406"
    ),
    f"{DISCONNECTED} 408": Change("Timed out: the worker reconnects with a growing pause", _C.RECONNECTING),
    f"{DISCONNECTED} 408 QR_ENDED": Change(
        "Nobody scanned the code while it was shown: an operator asks for a new one by a start",
        _C.FAILED, failed="QR_ENDED",
    ),
    f"{DISCONNECTED} 409": Change("The client was rejected: as 405", _C.FAILED, failed="CLIENT_OUTDATED", alarm=True),
    f"{DISCONNECTED} 411": Change(
        "The account does not take linked devices: somebody has to look at the phone",
        _C.FAILED, failed="MULTIDEVICE_MISMATCH", alarm=True,
    ),
    f"{DISCONNECTED} 411 WRONG_NUMBER": Change(
        "Another number was linked than the session is for; it was logged out again: a start links the right phone",
        _C.FAILED, _A.UNLINKED, failed="WRONG_NUMBER", alarm=True,
    ),
    f"{DISCONNECTED} 428": Change("The connection was closed: the worker reconnects", _C.RECONNECTING),
    f"{DISCONNECTED} 429": Change("Too many tries: the worker reconnects after a long pause", _C.RECONNECTING),
    f"{DISCONNECTED} 440": Change(
        "Another client took the link over: do not fight, two would throw each other out for ever",
        _C.FAILED, failed="REPLACED", alarm=True,
    ),
    f"{DISCONNECTED} 500": Change(
        "The server or the proxy failed: the worker reconnects and keeps its link", _C.RECONNECTING
    ),
    f"{DISCONNECTED} 503": Change("The service is not available: the worker reconnects", _C.RECONNECTING),
    f"{DISCONNECTED} 515": Change(
        "Restart required, normal right after pairing: the worker reconnects at once", _C.RECONNECTING
    ),
    OTHER: Change("Any other code: the worker reconnects with a growing pause", _C.RECONNECTING),
    # What operators wish, and watchdog and proxy checks in the case of restart.
    "start": Change("A worker is wanted; nothing if one is", _C.STARTING, desired="running", new_worker=True),
    "stop": Change("No worker is wanted; what waits for the number stays", _C.STOPPED, desired="stopped"),
    "restart": Change("Another worker instead of the present one", _C.STARTING, desired="running", new_worker=True),
    "remove": Change("As stop; the row goes once its worker is gone", _C.STOPPED, desired="stopped"),
    "pause": Change("It stays connected and gets no task"),
    "resume": Change("It gets tasks again, at once"),
}  # fmt: skip

DRAWN: tuple[tuple[str, str, str], ...] = (
    ("STARTING", "QR", "SCAN_QR"),
    ("STARTING", "CONNECTED", "CONNECTED"),
    ("STARTING", "LINK_BLOCKED", "FAILED"),
    ("SCAN_QR", f"{DISCONNECTED} 515", "RECONNECTING"),
    ("SCAN_QR", f"{DISCONNECTED} 408 QR_ENDED", "FAILED"),
    ("CONNECTED", f"{DISCONNECTED} 428", "RECONNECTING"),
    ("CONNECTED", f"{DISCONNECTED} 403", "FAILED"),
    ("CONNECTED", "restart", "STARTING"),
    ("CONNECTED", LOGOUT_DONE, "STOPPED"),
    ("CONNECTED", "stop", "STOPPED"),
    ("RECONNECTING", "CONNECTED", "CONNECTED"),
    ("FAILED", "start", "STARTING"),
    ("STOPPED", "start", "STARTING"),
)
"""The moves of an ordinary life, for a drawing; the table has them all."""

WISHES = ("start", "stop", "restart", "remove", "pause", "resume")
OPERATOR = "OPERATOR"
"""The reason of a wish that a person pressed. Anything else is the fleet healing itself, and may do less."""


def told(event: str, code: int | None, reason: str) -> Change | None:
    """What a worker's event means for its session; None if nothing. A disconnect has a code and a reason."""
    if event == DISCONNECTED:
        return disconnected(code, reason)
    return TABLE[event] if event in ("CONNECTED", "QR", "LINK_BLOCKED") else None


def disconnected(code: int | None, reason: str = "") -> Change:
    """The rule of one disconnect code; `reason` tells apart what shares a code."""
    return TABLE.get(f"{DISCONNECTED} {code} {reason}") or TABLE.get(f"{DISCONNECTED} {code}") or TABLE[OTHER]


def reconnects(code: int, reason: str = "") -> bool:
    """Whether a worker tries again by itself after this code."""
    return disconnected(code, reason).connection is Connection.RECONNECTING


def leads_to(name: str, connection: str) -> bool:
    return TABLE[name].connection == connection


class Status(StrEnum):
    """One word for all three fields, the first that applies in this order."""

    REMOVING = "REMOVING"
    QUARANTINED = "QUARANTINED"
    LOGGED_OUT = "LOGGED_OUT"
    LINK_BLOCKED = "LINK_BLOCKED"
    STOPPED = "STOPPED"
    FAILED = "FAILED"
    SCAN_QR = "SCAN_QR"
    STARTING = "STARTING"
    RECONNECTING = "RECONNECTING"
    PAUSED = "PAUSED"
    RESTRICTED = "RESTRICTED"
    WORKING = "WORKING"


WAHA: dict[Status, str] = {
    Status.REMOVING: "STOPPED",
    Status.QUARANTINED: "FAILED",
    Status.LOGGED_OUT: "FAILED",
    Status.LINK_BLOCKED: "FAILED",
    Status.STOPPED: "STOPPED",
    Status.FAILED: "FAILED",
    Status.SCAN_QR: "SCAN_QR_CODE",
    Status.STARTING: "STARTING",
    Status.RECONNECTING: "STARTING",
    Status.PAUSED: "WORKING",
    Status.RESTRICTED: "WORKING",
    Status.WORKING: "WORKING",
}
"""What WAHA calls a session that stands so; its five words cover less."""


def status(*, connection: str, authorisation: str, restriction: str, paused: bool, removing: bool) -> Status:
    if removing:
        return Status.REMOVING
    if restriction == "QUARANTINED":
        return Status.QUARANTINED
    if authorisation in (Authorisation.LOGGED_OUT, Authorisation.LINK_BLOCKED):
        return Status(authorisation)
    if connection != Connection.CONNECTED:
        return Status(connection)
    if paused:
        return Status.PAUSED
    return Status.WORKING if restriction == "NONE" else Status.RESTRICTED
