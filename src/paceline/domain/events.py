"""What customers are told: the closed list of event types, and an event as it lies in the stream.

Scripts write events where states change, in the same step; what they write is small (ids and states). Whoever delivers
one adds the rest (`gateway/telling`). A step that ends many tasks of a job at once writes one entry that names them
all; `Entry.events` expands it.
"""

from collections.abc import Iterator

import msgspec

BYTE_EVENT: dict[str, str] = {
    "S": "message.sent",
    "D": "message.delivered",
    "R": "message.read",
    "F": "message.failed",
    "E": "message.expired",
    "X": "message.canceled",
    "O": "message.suppressed",
}
"""The event of each state byte that is told; the scripts get this table generated."""

EVENT_TYPES: dict[str, str] = {
    "message.sent": "WhatsApp's server took it. Once for every message that went out",
    "message.delivered": "It reached the person's device",
    "message.read": "The person read it",
    "message.failed": "It was given up; `error` says why. A later proof may still correct it",
    "message.expired": "It was not sent within its validity",
    "message.canceled": "It was canceled before a worker took it",
    "message.suppressed": "The person is on the suppression list",
    "message.received": "Somebody wrote to one of the numbers. Without the text, unless `EVENT_INBOUND_TEXT` is set",
    "job.done": "All its messages have ended; `state` and the sums",
    "job.paused": "It was paused",
    "job.corrected": "A message that had ended otherwise did go out, after all",
    "session.status": "A session's connection or authorisation changed",
    "session.restriction": "What keeps a number from sending freely changed; NONE is nothing any more",
}
"""Every type there is, and what it says. A closed list: a test holds it against the scripts."""

ALL_EVENTS = "*"
"""In a subscription: every type, also those that come later."""

START = "0-0"
"""The place before the first event."""


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """One event. `fields` is what the script wrote, all of it text."""

    id: str
    """Its place in the stream; of one that stands for many, with the index of the task behind it. Never used twice."""
    type: str
    at: int
    fields: dict[str, str] = {}

    @property
    def message_id(self) -> str | None:
        return self.fields.get("m")

    @property
    def job_id(self) -> str | None:
        task = self.message_id
        return task.partition(":")[0] if task else self.fields.get("job")


class Entry(msgspec.Struct, frozen=True):
    """One entry of the stream."""

    id: str
    fields: dict[str, str]

    @property
    def type(self) -> str:
        return self.fields.get("t", "")

    def events(self, after_index: int = -1) -> Iterator[Event]:
        """The events it tells of, those of tasks beyond `after_index` if it stands for many."""
        kind, at = self.type, int(float(self.fields.get("at", "0")))
        rest = {name: value for name, value in self.fields.items() if name not in ("t", "at", "ix")}
        if "ix" not in self.fields:
            yield Event(self.id, kind, at, rest)
            return
        job = rest.pop("job", "")
        for first, last in spans(self.fields["ix"]):
            for index in range(max(first, after_index + 1), last + 1):
                yield Event(f"{self.id}_{index}", kind, at, {**rest, "m": f"{job}:{index}"})


def spans(text: str) -> Iterator[tuple[int, int]]:
    """`0-4,7` as (0, 4), (7, 7)."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield int(first), int(last or first)


def is_place(text: str) -> bool:
    """Whether this can be a place in the stream: `<ms>-<n>`, or `<ms>-<n>_<index>`."""
    entry, mark, index = text.partition("_")
    left, dash, right = entry.partition("-")
    numbers = [left, right, *([index] if mark else [])]
    return bool(dash) and all(part.isascii() and part.isdigit() and len(part) <= 16 for part in numbers)


def split_place(place: str) -> tuple[str, int | None]:
    """The entry, and the last index of it that was told; None when all of it was."""
    entry, mark, index = place.partition("_")
    return entry, int(index) if mark else None


def order(place: str) -> tuple[int, int, float]:
    """For comparing places: an entry that was told to its end comes after any part of it."""
    entry, index = split_place(place)
    left, _, right = entry.partition("-")
    return int(left), int(right), float("inf") if index is None else index
