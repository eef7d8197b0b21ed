"""The states of a job and of a message, each as one table that Python, Lua and the docs share.

A task's state is one byte in `job:states:<jobId>`; `Byte` names them. `NEXT` is the only list of allowed moves: the
Lua library gets it generated (`store.scripts`), so no script can make a move that is not in this table.
"""

from enum import StrEnum


class JobState(StrEnum):
    QUEUED = "QUEUED"
    ROUTING = "ROUTING"
    ROUTED = "ROUTED"
    PAUSED = "PAUSED"
    DONE = "DONE"
    DONE_WITH_ERRORS = "DONE_WITH_ERRORS"
    CANCELED = "CANCELED"
    FAILED = "FAILED"


CLOSED_JOB_STATES = frozenset({JobState.DONE, JobState.DONE_WITH_ERRORS, JobState.CANCELED, JobState.FAILED})


class Byte(StrEnum):
    QUEUED = "q"
    """Waits at the job's cursor; no phone chosen yet."""
    ROUTED = "r"
    """Lies in a phone's queue."""
    SCHEDULED = "s"
    PARKED = "p"
    RETRYING = "t"
    HANDED_OFF = "h"
    CLAIMED = "c"
    UNKNOWN = "u"
    SENT = "S"
    DELIVERED = "D"
    READ = "R"
    FAILED = "F"
    EXPIRED = "E"
    CANCELED = "X"
    SUPPRESSED = "O"


WENT_OUT = "SDR"
TERMINAL = WENT_OUT + "FEXO"
WAITING = "qrspt"
"""What no worker may have touched: cancel stops all of these, and `h` (handed over, not claimed)."""

NEXT: dict[str, str] = {
    "q": "rsFEXO" + WENT_OUT,
    "s": "rFEXO" + WENT_OUT,
    "r": "phFEXO" + WENT_OUT,
    "p": "rtFEXO" + WENT_OUT,
    "t": "phFEXO" + WENT_OUT,
    "h": "crtpFEXO" + WENT_OUT,
    "c": "rtuF" + WENT_OUT,
    "u": "rtF" + WENT_OUT,
    "S": "DR",
    "D": "R",
    "R": "",
    "F": WENT_OUT,
    "E": WENT_OUT,
    "X": WENT_OUT,
    "O": WENT_OUT,
}
"""Every state but those beyond it may become sent: a proof that a message went out is a fact, whoever brings it and
whatever we believed (an old worker's word, a receipt, a Redis restored from yesterday). Nothing else leaves a terminal
state. A claimed or unknown message cannot be canceled or expire: it may be on the wire."""

MESSAGE_STATE: dict[str, str] = {
    "q": "queued",
    "r": "queued",
    "t": "queued",
    "s": "scheduled",
    "p": "parked",
    "h": "handed_off",
    "c": "claimed",
    "u": "unknown",
    "S": "sent",
    "D": "delivered",
    "R": "read",
    "F": "failed",
    "E": "expired",
    "X": "canceled",
    "O": "suppressed",
}

PROGRESS_KEY: dict[str, str] = {
    **{byte: MESSAGE_STATE[byte] for byte in "qrspuSDRFEXO"},
    "t": "retrying",
    "h": "handedOff",
    "c": "handedOff",
}


def progress(states: bytes) -> dict[str, int]:
    """Counts by state, exact by construction: every task is one byte of the same string."""
    keys = ["queued", "scheduled", "parked", "handedOff", "unknown", "retrying", "sent", "delivered", "read"]
    counts = dict.fromkeys([*keys, "failed", "expired", "canceled", "suppressed"], 0)
    for byte, key in PROGRESS_KEY.items():
        counts[key] += states.count(byte.encode())
    return {"total": len(states), **counts}
