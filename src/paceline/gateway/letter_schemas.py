"""What is asked and answered about dead letters, field by field."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from paceline.domain.failures import FailureClass
from paceline.gateway.schemas import Moment, Number, Out, Short

REPLAYS_AT_ONCE = 1_000

ErrorClass = Literal["transient", "recipient", "platform"]


def _named(field: str) -> str:
    """camelCase, and without the line that keeps a field from being a word of Python."""
    first, *rest = field.rstrip("_").split("_")
    return first + "".join(word.capitalize() for word in rest)


class _In(msgspec.Struct, frozen=True, rename=_named, forbid_unknown_fields=True, kw_only=True):
    """A body that comes in."""


class ReplayRequest(_In, frozen=True):
    again: bool = False
    """Also if it was sent again before."""


class ReplayFilter(_In, frozen=True):
    code: Short | None = None
    class_: ErrorClass | None = None
    phone: Number | None = None
    job_id: Short | None = None
    from_: Moment | None = None
    until: Moment | None = None
    limit: Annotated[int, Meta(ge=1, le=REPLAYS_AT_ONCE)] = 100
    again: bool = False


class DeadLetter(Out, frozen=True, kw_only=True, rename=_named):
    id: str
    """Its message; a message is given up once."""
    task_id: str
    job_id: str
    at: int
    code: str
    class_: FailureClass
    message: str
    to: str | None
    phone: str | None
    session_id: str | None
    attempts: int
    history: list[dict[str, Any]]
    state: str | None
    """What its message is now: `failed`, or `sent` and beyond if a proof came later; null if it is forgotten."""
    replayable: bool
    replayed_as: str | None
    """The job that sends it again."""


class DeadLetterPage(Out, frozen=True, kw_only=True):
    items: list[DeadLetter]
    next_cursor: str | None


class Replayed(Out, frozen=True, kw_only=True):
    status: Literal["accepted"] = "accepted"
    job_id: str
    message_id: str
    replay_of: str
    status_url: str


class ReplayJob(Out, frozen=True, kw_only=True):
    job_id: str
    replay_of: str
    """The job whose letters it sends again."""
    accepted: int


class Skipped(Out, frozen=True, kw_only=True):
    not_replayable: int = 0
    """Refused by the platform, proven sent since, erased, or too old to know."""
    already_replayed: int = 0
    suppressed: int = 0


class ReplayedMany(Out, frozen=True, kw_only=True):
    status: Literal["accepted"] = "accepted"
    replayed: int
    jobs: list[ReplayJob]
    """One for each job that the letters come from."""
    skipped: Skipped
    more: bool
    """There may be further letters that match."""
