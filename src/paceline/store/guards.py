"""What stands between a caller and the queues: API keys, idempotency, the suppression list, memory."""

from collections.abc import Collection
from typing import Any

import msgspec

from paceline.domain.numbers import notations
from paceline.store import keys
from paceline.store.caller import Answer, Caller

IDEMPOTENCY_TTL_S = 86_400
IDEMPOTENCY_STALE_MS = 30_000
"""A request that has not ended after this long was cut off by a crash; a repeat takes it over."""
MEMORY_CEILING = 0.8
_AT_ONCE = 5_000
"""Numbers in one command: a few milliseconds of Redis' time."""


class Begun(Answer, frozen=True):
    job: str = ""
    answer: str = ""


class ApiKeyRecord(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What is known of an API key. The key itself is not: only who holds it can show it."""

    key_id: str
    digest: str
    scopes: list[str]
    name: str = ""
    created_at: int = 0
    created_by: str = ""
    expires_at: int | None = None
    rate_per_minute: int | None = None
    """Requests; 0 is no limit of its own, None is what the setting says."""
    revoked_at: int | None = None
    revoked_by: str = ""


class Revoked(Answer, frozen=True):
    record: str = ""


class Suppression(msgspec.Struct, frozen=True, rename="camel"):
    to: str
    at: int
    reason: str = ""
    source: str = ""
    confirmation: str | None = None
    """The one task that may still go to this person: the confirmation of their own stop."""


class Guards:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def save_key(self, record: ApiKeyRecord) -> None:
        await self._caller.call("save_key", Answer, id=record.key_id, record=msgspec.json.encode(record).decode())

    async def create_key(self, record: ApiKeyRecord, *, ended_before_ms: int, limit: int) -> str:
        """OK or KEYS_FULL."""
        text = msgspec.json.encode(record).decode()
        arguments = {"id": record.key_id, "record": text, "ended_before": ended_before_ms, "limit": limit}
        return (await self._caller.call("create_key", Answer, **arguments)).code

    async def revoke_key(self, key_id: str, *, by: str, now_ms: int) -> ApiKeyRecord | None:
        """The record as it is now, None for a key nobody knows. The first word counts: again changes nothing."""
        answer = await self._caller.call("revoke_key", Revoked, id=key_id, by=by, now=now_ms)
        return _record(answer.record) if answer.record else None

    async def api_keys(self) -> list[ApiKeyRecord]:
        """All, also those that have ended; bounded by `create_key`."""
        raw = await self._caller.read_one("HVALS", keys.api_keys())
        return [_record(text) for text in raw]

    async def begin(
        self, key_id: str, idempotency_key: str, body: str, job_id: str, *, now_ms: int, holder: str, is_free: bool
    ) -> Begun:
        """`is_free`: whoever is called `holder` has no request with this key at work."""
        return await self._caller.call(
            "begin_idempotent", Begun, key=keys.idempotency(key_id, idempotency_key), body=body, job=job_id, now=now_ms,
            stale=IDEMPOTENCY_STALE_MS, ttl=IDEMPOTENCY_TTL_S, holder=holder, isFree=is_free,
        )  # fmt: skip

    async def end(
        self, key_id: str, idempotency_key: str, job_id: str, *, answer: str | None, begun_ms: int | None = None
    ) -> None:
        """Without an answer it is forgotten, unless another took it over from the one that began then."""
        key = keys.idempotency(key_id, idempotency_key)
        await self._caller.call("end_idempotent", Answer, key=key, job=job_id, answer=answer, begun=begun_ms)

    async def suppressed(self, recipients: list[str]) -> set[str]:
        """Which of these are on the list."""
        batches = [recipients[start : start + 1_000] for start in range(0, len(recipients), 1_000)]
        found: set[str] = set()
        for batch in batches:
            scores = await self._caller.read_one("ZMSCORE", keys.suppressions(), *batch)
            found.update(to for to, score in zip(batch, scores, strict=True) if score is not None)
        return found

    async def suppressed_among(self, people: Collection[str]) -> set[str]:
        """The same for a whole list, in two round trips: of people and the suppression list the shorter is sent."""
        key, found = keys.suppressions(), set[str]()
        listed = await self._caller.read_one("ZCARD", key)
        if not listed or not people:
            return found
        if listed <= len(people):
            pages = [("ZRANGE", key, start, start + _AT_ONCE - 1) for start in range(0, listed, _AT_ONCE)]
            everybody = set(people)
            return found.union(*(everybody.intersection(page) for page in await self._caller.read(*pages)))
        asked = list(people)
        batches = [asked[start : start + _AT_ONCE] for start in range(0, len(asked), _AT_ONCE)]
        answers = await self._caller.read(*[("ZMSCORE", key, *batch) for batch in batches])
        for batch, scores in zip(batches, answers, strict=True):
            found.update(to for to, score in zip(batch, scores, strict=True) if score is not None)
        return found

    async def suppress(self, items: list[Suppression]) -> int:
        """Adds; returns how many are new. All of them in one go are of one caller."""
        rows = [suppression_row(item) for item in items]
        by, now_ms = items[0].source, items[0].at
        return (await self._caller.call("suppress", Changed, add=rows, by=by, now=now_ms)).changed

    async def unsuppress(self, to: str, *, by: str, now_ms: int) -> bool:
        return (await self._caller.call("suppress", Changed, remove=notations(to), by=by, now=now_ms)).changed > 0

    async def suppressions(self, after: str, limit: int) -> tuple[list[Suppression], str | None]:
        """A page by their digits, and where the next one begins. A person stands there once, as they were given."""
        found = await self._caller.read_one(
            "ZRANGEBYLEX", keys.suppressions(), f"({after}" if after else "-", "+", "LIMIT", 0, limit
        )
        infos = await self._caller.read_one("HMGET", keys.suppression_info(), *found) if found else []
        items = [msgspec.json.decode(info, type=Suppression) for info in infos if info]
        return items, found[-1] if len(found) == limit else None

    async def suppressions_of(self, to: str) -> list[Suppression]:
        """What the list says of a person, in whichever notation they were given."""
        infos = await self._caller.read_one("HMGET", keys.suppression_info(), *notations(to))
        return [msgspec.json.decode(info, type=Suppression) for info in infos if info]

    async def memory_is_short(self) -> bool:
        """Above 80 % of maxmemory nothing new is accepted, so that what was accepted can still be settled."""
        info = await self._caller.read_one("INFO", "memory")
        used, limit = (int(info[name]) for name in ("used_memory", "maxmemory"))
        return limit > 0 and used > MEMORY_CEILING * limit


def suppression_row(item: Suppression) -> dict[str, Any]:
    """A person for the scripts: every notation of their number is on the list, so that no gate has to know any."""
    to, *also = notations(item.to)
    return {"to": to, "also": also, "info": msgspec.json.encode(item).decode()}


class Changed(Answer, frozen=True):
    changed: int = 0


_record = msgspec.json.Decoder(ApiKeyRecord).decode
