"""Jobs in the store: staging and accepting them, taking their turns, what is known about a message."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from paceline.domain import states
from paceline.domain.ids import parse_task_id
from paceline.domain.jobs import Contact, Job, decode_contact, decode_job, encode_contact, encode_job
from paceline.policy.routing import Sticky
from paceline.store import keys
from paceline.store.caller import Answer, Caller
from paceline.store.client import Command
from paceline.store.gather import Answered
from paceline.store.rows import Pace, message_of
from paceline.store.scripts import CHUNK

SINGLE_SENDS_LIMIT = 1_000
"""Single sends that may wait for one phone (SPEC §3)."""
QUEUE_FULL_RETRY_S = 60
"""What a caller is told to wait then; the slowest number has sent a few by that time."""


class Idem(msgspec.Struct, frozen=True):
    """Where the answer to an idempotent request is written, in the same step that accepts it."""

    key: str
    answer: str


class Replay(msgspec.Struct, frozen=True):
    """The dead letters of a job that a new job sends again; refused if one was before, unless `again`."""

    job: str
    indexes: list[int]
    again: bool = False


class Accepted(Answer, frozen=True):
    position: int = 0
    phone: str = ""
    """Of somebody who was not looked up: the number that writes to them, since when, and when they last wrote to it."""
    at: str = "0"
    warm: str = "0"

    @property
    def sticky(self) -> Sticky | None:
        return Sticky(self.phone, int(self.at), int(self.warm)) if self.phone else None


class Turn(Answer, frozen=True):
    job: str = ""
    json: str = ""
    state: str = ""
    cursor: int = 0
    next_at: int | None = None


class Routed(Answer, frozen=True):
    cursor: int = 0


class Canceled(Answer, frozen=True):
    canceled: int = 0
    open: int = 0
    state: str = ""


class TaskRoute(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Where one task goes (`phone`), or how it ends without going anywhere (`ends`, a state byte)."""

    index: int
    to: str | None = None
    tz: str | None = None
    expires_at: int | None = None
    phone: str | None = None
    seen: str | None = None
    """Which phone the contact was bound to when this was decided, and since when they had written to it."""
    seen_warm: int = 0
    ends: str | None = None


class JobView(msgspec.Struct, frozen=True):
    job: Job
    run: dict[str, str]
    progress: dict[str, int]


class MessageView(msgspec.Struct, frozen=True):
    """Everything known about one message."""

    task_id: str
    job: Job
    contact: Contact
    byte: str
    known: dict[str, str]
    run: dict[str, str]
    phone: str | None
    phone_known: dict[str, str]


class _Send(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """An order to accept_send.lua."""

    job: str
    json: str
    phone: str
    to: str
    expires_at: int
    priority: int
    now: int
    limit: int
    is_bound: bool = False
    is_unseen: bool = False
    contact: str | None = None
    tz: str | None = None
    send_at: int | None = None
    media: str | None = None
    idem: Idem | None = None


class _Asked(msgspec.Struct, frozen=True, rename="camel"):
    """The one field of a job that a log line needs."""

    request_id: str = ""


_asked = msgspec.json.Decoder(_Asked)


class Jobs:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._persons = caller.together(self._people)
        self._sends = caller.joined("accept_send", Accepted)

    async def stage(self, job_id: str, contacts: Sequence[Contact]) -> int:
        """Writes the contacts before the job exists; returns how many chunks there are."""
        chunks = range(0, len(contacts), CHUNK)
        for number, start in enumerate(chunks):
            texts = [encode_contact(contact) for contact in contacts[start : start + CHUNK]]
            await self._caller.call("stage_chunk", Answer, job=job_id, chunk=number, contacts=texts)
        return len(chunks)

    async def accept(
        self, job: Job, chunks: int, *, now_ms: int, idem: Idem | None = None, replay: Replay | None = None
    ) -> str:
        answer = await self._caller.call(
            "accept_job", Answer, job=job.job_id, json=encode_job(job), total=job.total, chunks=chunks,
            priority=job.priority, now=now_ms, media=job.media and job.media.ref, idem=idem, replay=replay,
        )  # fmt: skip
        return answer.code

    async def accept_send(
        self,
        job: Job,
        contact: Contact,
        phone: str,
        *,
        now_ms: int,
        is_bound: bool = False,
        idem: Idem | None = None,
    ) -> Accepted:
        """`is_bound`: a number that writes to them is known; only a hint where to look."""
        written = encode_contact(contact)
        order = _Send(
            job.job_id, encode_job(job), phone, contact.to, job.expires_at(0), job.priority, now_ms, SINGLE_SENDS_LIMIT,
            is_bound, False, None if written == contact.to else written, contact.timezone, job.send_at,
            job.media.ref if job.media else None, idem,
        )  # fmt: skip
        accepted: Accepted = await self._sends.ask(order)
        return accepted

    def tell_send(self, job: Job, to: str, phone: str, answered: Answered, *, is_unseen: bool) -> None:
        """The same for who waits with something else than a task, of a job of nothing but a text, for now. `is_unseen`:
        nobody has asked for this person; what is known of them may be the answer (SUPPRESSED, BOUND)."""
        order = _Send(
            job.job_id, encode_job(job), phone, to, job.accepted_at + job.validity_seconds * 1000, job.priority,
            job.accepted_at, SINGLE_SENDS_LIMIT, not is_unseen, is_unseen,
        )  # fmt: skip
        self._sends.tell(order, answered)

    async def next_turn(self, *, now_ms: int, lease_ms: int) -> Turn:
        return await self._caller.call("next_job", Turn, now=now_ms, lease=lease_ms)

    async def fail(self, job_id: str, reason: str, *, now_ms: int) -> None:
        await self._caller.call("fail_job", Answer, job=job_id, reason=reason, now=now_ms)

    async def route(self, job: Job, cursor: int, tasks: Sequence[TaskRoute], *, now_ms: int) -> Routed:
        return await self._caller.call(
            "route_chunk", Routed, job=job.job_id, cursor=cursor, tasks=tasks, priority=job.priority, total=job.total,
            named=job.phone is not None, now=now_ms,
        )  # fmt: skip

    async def yield_turn(self, job_id: str, cursor: int, *, reason: str, next_at_ms: int, now_ms: int) -> str:
        answer = await self._caller.call(
            "yield_job", Answer, job=job_id, cursor=cursor, reason=reason, nextAt=next_at_ms, now=now_ms
        )
        return answer.code

    async def cancel(self, job_id: str, *, now_ms: int) -> Canceled:
        return await self._caller.call("cancel_job", Canceled, job=job_id, now=now_ms)

    async def contacts(self, job_id: str, start: int, count: int) -> list[Contact]:
        """A stretch of contacts, within one chunk (it may be shorter than asked)."""
        chunk, offset = divmod(start, CHUNK)
        last = min(offset + count, CHUNK) - 1
        raw = await self._caller.read_one("LRANGE", keys.job_contacts(job_id, chunk), offset, last)
        return [decode_contact(text) for text in raw]

    async def stickies(self, recipients: Sequence[str]) -> list[Sticky | None]:
        if not recipients:
            return []
        return list(map(_sticky, await self._caller.read_one("MGET", *map(keys.sticky, recipients))))

    async def person(self, to: str) -> tuple[bool, Sticky | None]:
        """Whether they are on the suppression list, and which number writes to them."""
        found: tuple[bool, Sticky | None] = await self._persons.ask(to)
        return found

    async def _people(self, recipients: list[str]) -> list[Any]:
        listed, bound = await self._caller.read(
            ("ZMSCORE", keys.suppressions(), *recipients), ("MGET", *map(keys.sticky, recipients))
        )
        return [(score is not None, _sticky(text)) for score, text in zip(listed, bound, strict=True)]

    async def known_by(self, phones: Sequence[str], recipients: Sequence[str]) -> list[frozenset[str]]:
        """Which of these phones have talked with each recipient."""
        if not phones or not recipients:
            return [frozenset() for _ in recipients]
        return [frozenset(known) for known in await self._caller.rows("known_by", phones=phones, people=recipients)]

    async def get(self, job_id: str) -> Job | None:
        raw = await self._caller.read_one("GET", keys.job(job_id))
        return decode_job(raw) if raw else None

    async def request_ids(self, job_ids: Sequence[str]) -> list[str]:
        """Of each job that of the request it came with; empty if it is gone, or had none."""
        rows = await self._caller.read(*[("GET", keys.job(job_id)) for job_id in job_ids]) if job_ids else []
        return [_asked.decode(row).request_id if row else "" for row in rows]

    async def view(self, job_id: str) -> JobView | None:
        raw, run, bytes_ = await self._caller.read(
            ("GET", keys.job(job_id)), ("HGETALL", keys.job_run(job_id)), ("GET", keys.job_states(job_id))
        )
        if raw is None or bytes_ is None:
            return None
        return JobView(decode_job(raw), _pairs(run), states.progress(bytes_.encode()))

    async def message(self, task_id: str) -> MessageView | None:
        parsed = parse_task_id(task_id)
        job = await self.get(parsed[0]) if parsed else None
        if parsed is None or job is None or parsed[1] >= job.total:
            return None
        job_id, index = parsed
        chunk, offset = divmod(index, CHUNK)
        contact, byte, known, run, route = await self._caller.read(
            ("LINDEX", keys.job_contacts(job_id, chunk), offset),
            ("GETRANGE", keys.job_states(job_id), index, index),
            ("HGETALL", keys.message(task_id)),
            ("HGETALL", keys.job_run(job_id)),
            ("HGET", keys.job_routes(job_id), index),
        )
        known = message_of(_pairs(known))
        phone = route or known.get("phone")
        about = await phones_about(self._caller, [phone]) if phone else {}
        return MessageView(
            task_id, job, decode_contact(contact), byte, known, _pairs(run), phone, about.get(phone or "", {})
        )

    async def events(self, limit: int) -> list[dict[str, Any]]:
        raw = await self._caller.read_one("LRANGE", keys.job_events(), 0, limit - 1)
        return [msgspec.json.decode(line) for line in raw]


_STICKY = re.compile(r"(\S+) (\d+)(?: (\d+))?")


def _sticky(text: str | None) -> Sticky | None:
    """What stands there and is not as we write it binds nobody; the next binding replaces it."""
    found = _STICKY.fullmatch(text or "")
    return Sticky(found[1], int(found[2]), int(found[3] or 0)) if found else None


async def phones_about(caller: Caller, phones: Sequence[str]) -> dict[str, dict[str, str]]:
    """Of each number its timezone and what it waits for, as far as there is any."""
    commands: list[Command] = []
    for phone in phones:
        commands += [
            ("HGET", keys.phone(phone), "timezone"),
            ("HGET", keys.pace(), phone),
        ]
    rows = await caller.read(*commands) if commands else []
    about = {}
    for phone, zone, text in zip(phones, rows[::2], rows[1::2], strict=True):
        pace = Pace.of(text) if text else Pace()
        known = {"timezone": zone, "waitReason": pace.wait_reason, "waitUntil": pace.wait_reason and pace.wait_until}
        about[phone] = {name: value for name, value in known.items() if value}
    return about


def _pairs(raw: Any) -> dict[str, str]:
    """HGETALL through a raw pipeline comes as a flat list, through a client as a dictionary."""
    if isinstance(raw, dict):
        return raw
    return dict(zip(raw[::2], raw[1::2], strict=True))
