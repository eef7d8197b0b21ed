"""The worker protocol on the wire: bodies, answers, and which claim a worker speaks of.

`raw` is a string that a claim gives and a worker gives back; only this module looks into it.
"""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from paceline.domain.errors import BadRequest
from paceline.domain.ids import parse_task_id
from paceline.kits.web import decode
from paceline.orchestrator.desk import Pending, TaskForWorker
from paceline.store.outbox import Command

Id = Annotated[str, Meta(min_length=1, max_length=128)]
Epoch = Annotated[int, Meta(ge=0, le=2**53)]


class _Body(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    pass


class HelloBody(_Body, frozen=True, kw_only=True):
    instance_id: Id
    journal_id: Id
    driver: Annotated[str, Meta(max_length=64)] = ""
    life_id: Id | None = None
    """Made anew each time the worker's process starts. An instance that was started again is known by it."""


class ClaimBody(_Body, frozen=True, kw_only=True):
    epoch: Epoch
    commands_only: bool = False
    """The worker is not connected: it can take no task, only be told something (to pair, to go). What it asks for is
    its word on that: a claim without this says that it is connected."""


class WorkerError(_Body, frozen=True, kw_only=True):
    code: Annotated[str, Meta(min_length=1, max_length=64)]
    message: Annotated[str, Meta(max_length=1_024)] = ""


class _AboutClaim(_Body, frozen=True, kw_only=True):
    raw: str | None = None
    task_id: str | None = None
    token: int | str | None = None


class AckBody(_AboutClaim, frozen=True, kw_only=True):
    epoch: Epoch | None = None
    whatsapp_id: Annotated[str, Meta(max_length=128)] | None = None


class NackBody(_AboutClaim, frozen=True, kw_only=True):
    epoch: Epoch
    not_sent: bool | None = None
    error: WorkerError | None = None


class ExtendBody(_AboutClaim, frozen=True, kw_only=True):
    epoch: Epoch


class EventBody(_Body, frozen=True, kw_only=True):
    session_id: Id
    event: Annotated[str, Meta(min_length=1, max_length=64)]
    timestamp: int
    event_id: Annotated[str, Meta(min_length=1, max_length=256)]
    data: dict[str, Any] = {}


class PendingAnswer(msgspec.Struct, frozen=True, rename="camel"):
    task_id: str
    token: str
    whatsapp_id: str
    to: str


class TypingWindow(msgspec.Struct, frozen=True, rename="camel"):
    min_ms: int
    max_ms: int


class HelloAnswer(msgspec.Struct, frozen=True, rename="camel"):
    epoch: int
    now_ms: int
    lease_ms: int
    typing: TypingWindow
    unknown_grace_ms: int
    pending: list[PendingAnswer]
    commands: list[Command] = []


class ClaimAnswer(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    status: str = "ok"
    task: TaskForWorker | None = None
    raw: str | None = None
    pending: list[PendingAnswer] = []
    commands: list[Command] = []
    now_ms: int
    waited_ms: int
    """How long the poll had lasted by then: without it the worker could only tell that `now_ms` was some moment since
    it asked, and would not notice that the clock was set back by less than that."""


class StateAnswer(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    status: str = "ok"
    state: str


class ExtendAnswer(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    status: str = "ok"
    lease_until_ms: int


class Spoken(msgspec.Struct, frozen=True):
    """The claim a worker speaks of."""

    task: str
    token: int


class _Raw(msgspec.Struct, frozen=True, rename="camel"):
    task_id: str
    token: int


def raw_of(task: TaskForWorker) -> str:
    return msgspec.json.encode(task).decode()


def pending_of(pending: list[Pending]) -> list[PendingAnswer]:
    return [PendingAnswer(one.task_id, str(one.token), one.whatsapp_id, one.to) for one in pending]


def spoken_of(body: _AboutClaim) -> Spoken:
    """By `raw`, or by `taskId` and `token` as in `pending`."""
    if body.raw is not None:
        raw = decode(body.raw.encode(), _Raw, inside="raw")
        task, token, field = raw.task_id, raw.token, "raw"
    elif body.task_id is not None and body.token is not None:
        task, token, field = body.task_id, _token(body.token), "taskId"
    else:
        raise BadRequest("INVALID_REQUEST", "send raw, or taskId and token", field="raw")
    if parse_task_id(task) is None or not 0 <= token <= 2**53:
        raise BadRequest("INVALID_ID", "this names no claim", field=field)
    return Spoken(task, token)


def _token(value: int | str) -> int:
    if isinstance(value, int):
        return value
    if not (value.isascii() and value.isdigit() and len(value) <= 16):
        raise BadRequest("INVALID_ID", "this is no token", field="token")
    return int(value)
