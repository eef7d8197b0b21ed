"""How states, numbers and spans are said to an operator. Pure."""

from functools import lru_cache
from typing import NamedTuple

import phonenumbers


class Word(NamedTuple):
    text: str
    tone: str
    """good, busy, warn, bad or plain."""
    title: str = ""


STATUSES = {
    "WORKING": Word("Connected", "good", "Linked, connected and allowed to send"),
    "RESTRICTED": Word("Restricted", "warn", "It writes to people it knows and starts no new chat"),
    "PAUSED": Word("Paused", "plain", "Connected, and gets no task until somebody resumes it"),
    "SCAN_QR": Word("Needs a scan", "warn", "Its phone has to scan a QR code or type a pairing code"),
    "STARTING": Word("Starting", "busy", "Its worker is being started or is not connected yet"),
    "RECONNECTING": Word("Reconnecting", "busy", "Its worker tries to reach WhatsApp again"),
    "STOPPED": Word("Stopped", "plain", "Nobody wants a worker for it"),
    "REMOVING": Word("Removing", "plain", "Its worker ends, then it is gone"),
    "FAILED": Word("Failed", "bad", "It is not started again by itself"),
    "LOGGED_OUT": Word("Logged out", "bad", "The link to its phone has ended; a start links anew"),
    "LINK_BLOCKED": Word("Link blocked", "bad", "WhatsApp refuses to link this number now"),
    "QUARANTINED": Word("Quarantined", "bad", "WhatsApp banned it or logged it out; its queue waits for a person"),
}
NEED_A_PERSON = ("SCAN_QR", "FAILED", "LOGGED_OUT", "LINK_BLOCKED", "QUARANTINED")

CONNECTIONS = {"SCAN_QR": "Shows a code to scan"}
EVENTS = {
    "QR": "Shows a new QR code",
    "PING": "Is alive",
    "ERROR": "Reports an error",
    "RESTRICTION": "WhatsApp set a limit",
}

RESTRICTIONS = {
    "COOLDOWN": Word("Cool-down", "warn", "It rests because WhatsApp said that it sends too fast"),
    "TIME_LOCKED": Word("Time-locked", "warn", "WhatsApp lets it start no new chat until then"),
    "CAPPED": Word("Capped", "warn", "WhatsApp's quota of new chats is used up"),
    "QUARANTINED": Word("Quarantined", "bad", "WhatsApp banned it or logged it out"),
}

RESUMING = "All numbers go on. If the breaker paused the fleet, look at its incidents first."


def status(word: str) -> Word:
    """Also of a status that is newer than this page."""
    return STATUSES.get(word) or Word(spelled(word), "plain")


def needs(statuses: dict[str, int]) -> str:
    """What waits for a person, in one line: "2 numbers need a scan, 1 failed". Empty if nothing does."""
    said = {
        "SCAN_QR": ("needs a scan", "need a scan"),
        "FAILED": ("has failed", "have failed"),
        "LOGGED_OUT": ("is logged out", "are logged out"),
        "LINK_BLOCKED": ("cannot be linked", "cannot be linked"),
        "QUARANTINED": ("is quarantined", "are quarantined"),
    }
    parts = [
        f"{count} {'number' if count == 1 else 'numbers'} {said[word][count != 1]}"
        for word in NEED_A_PERSON
        if (count := statuses.get(word, 0))
    ]
    return ", ".join(parts)


def spelled(code: str) -> str:
    """A code as words: `TIME_LOCKED` is "Time locked"."""
    return code.replace("_", " ").capitalize()


@lru_cache(maxsize=20_000)
def phone(digits: str) -> str:
    """As people write it."""
    try:
        parsed = phonenumbers.parse(f"+{digits}")
    except phonenumbers.NumberParseException:
        return f"+{digits}"
    return str(phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.INTERNATIONAL))


def count(number: int, one: str, many: str = "") -> str:
    """ "1 number", "3 numbers"; `many` where an s does not do."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def share(part: int, whole: int) -> str:
    """As a percentage; nothing of nothing is said as nothing."""
    return f"{100 * part / whole:.0f} %" if whole else ""


def rate(rpm: float) -> str:
    return f"{rpm:.1f}".removesuffix(".0")


def span(ms: int) -> str:
    """ "4 s", "1.5 s", "2 min"."""
    seconds = ms / 1000
    return f"{rate(seconds)} s" if seconds < 120 else f"{rate(seconds / 60)} min"
