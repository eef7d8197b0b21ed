"""How accepted work is said: the states of jobs and messages, and how far a job is. Values only, no elements."""

from typing import Any

from paceline.client import Progress
from paceline.client.answers_jobs import MessageItem
from paceline.dashboard.parts.words import phone

_JOB = {
    "QUEUED": ("queued", "plain"),
    "ROUTING": ("running", "busy"),
    "ROUTED": ("running", "busy"),
    "PAUSED": ("paused", "warn"),
    "DONE": ("done", "good"),
    "DONE_WITH_ERRORS": ("done with errors", "warn"),
    "CANCELED": ("canceled", "plain"),
    "FAILED": ("failed", "bad"),
}
_MESSAGE = {
    "queued": ("queued", "plain"),
    "scheduled": ("scheduled", "plain"),
    "parked": ("parked", "plain"),
    "handed_off": ("handed over", "busy"),
    "claimed": ("sending", "busy"),
    "unknown": ("outcome unknown", "warn"),
    "sent": ("sent", "good"),
    "delivered": ("delivered", "good"),
    "read": ("read", "good"),
    "failed": ("failed", "bad"),
    "expired": ("expired", "warn"),
    "canceled": ("canceled", "plain"),
    "suppressed": ("suppressed", "plain"),
}
OPEN_JOBS = ("QUEUED", "ROUTING", "ROUTED", "PAUSED")
CANCELABLE = frozenset({"queued", "scheduled", "parked", "handed_off"})
"""What no worker holds."""

FILTERS = {
    "": "all",
    "queued,scheduled,parked,handed_off,claimed,unknown": "waiting",
    "sent,delivered,read": "sent",
    "failed": "failed",
    "expired": "expired",
    "canceled": "canceled",
    "suppressed": "suppressed",
}
"""States of messages that belong together for whoever looks, as the gateway's filter and in a word."""


def job_state(state: str) -> dict[str, str]:
    """As a cell of kind `state`. A state we do not know yet is shown as it is."""
    words, tone = _JOB.get(state, (state.lower(), "plain"))
    return {"text": words, "tone": tone, "title": state}


def message_state(state: str) -> dict[str, str]:
    words, tone = _MESSAGE.get(state, (state, "plain"))
    return {"text": words, "tone": tone}


def ended(progress: Progress) -> int:
    return progress.sent + progress.failed + progress.expired + progress.canceled + progress.suppressed


def waiting(progress: Progress) -> int:
    return progress.total - ended(progress)


def progress_parts(progress: Progress) -> list[dict[str, Any]]:
    """Of a bar, from what is surest to what did not go out; what is missing still waits."""
    found = {
        "read": progress.read,
        "delivered": progress.delivered - progress.read,
        "sent": progress.sent - progress.delivered,
        "failed": progress.failed,
        "expired": progress.expired,
        "canceled": progress.canceled,
        "suppressed": progress.suppressed,
    }
    return [{"label": name, "value": value, "tone": name} for name, value in found.items() if value]


def progress_bar(progress: Progress) -> dict[str, Any]:
    """As a cell of kind `bar`."""
    parts = progress_parts(progress)
    words = [f"{part['value']:,} {part['label']}" for part in parts]
    if left := waiting(progress):
        words.append(f"{left:,} waiting")
    text = f"{progress.sent:,} of {progress.total:,} sent"
    if progress.failed:
        text += f", {progress.failed:,} failed"
    return {"text": text, "max": progress.total, "parts": parts, "title": ", ".join(words)}


def number(digits: str) -> str:
    """A phone number as people write it; anything else, like an erased one, as it is."""
    return phone(digits) if digits.isdigit() else digits


def why(message: MessageItem) -> str:
    """Why it waits, or how it ended if not well; the service's own words."""
    if message.waiting is not None:
        return message.waiting.text
    if message.last_error is not None and message.state in ("failed", "expired"):
        return f"{message.last_error.code}: {message.last_error.message}".rstrip(": ")
    return ""
