"""What stands between a caller and the queues: API keys, idempotency, the suppression list, memory."""

import msgspec

from paceline.store import keys
from paceline.store.caller import Answer, Caller

IDEMPOTENCY_TTL_S = 86_400
IDEMPOTENCY_STALE_MS = 30_000
"""A request that has not ended after this long was cut off by a crash; a repeat takes it over."""
MEMORY_CEILING = 0.8


class Begun(Answer, frozen=True):
    job: str = ""
    answer: str = ""


class ApiKeyRecord(msgspec.Struct, frozen=True, rename="camel"):
    key_id: str
    digest: str
    scopes: list[str]


class Suppression(msgspec.Struct, frozen=True, rename="camel"):
    to: str
    at: int
    reason: str = ""
    source: str = ""


class Guards:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def save_key(self, record: ApiKeyRecord) -> None:
        await self._caller.call("save_key", Answer, id=record.key_id, record=msgspec.json.encode(record).decode())

    async def api_keys(self) -> list[ApiKeyRecord]:
        raw = await self._caller.read_one("HVALS", keys.api_keys())
        return [msgspec.json.decode(text, type=ApiKeyRecord) for text in raw]

    async def begin(self, key_id: str, idempotency_key: str, body: str, job_id: str, *, now_ms: int) -> Begun:
        return await self._caller.call(
            "begin_idempotent", Begun, key=keys.idempotency(key_id, idempotency_key), body=body, job=job_id, now=now_ms,
            stale=IDEMPOTENCY_STALE_MS, ttl=IDEMPOTENCY_TTL_S,
        )  # fmt: skip

    async def end(self, key_id: str, idempotency_key: str, job_id: str, *, answer: str | None) -> None:
        key = keys.idempotency(key_id, idempotency_key)
        await self._caller.call("end_idempotent", Answer, key=key, job=job_id, answer=answer)

    async def suppressed(self, recipients: list[str]) -> set[str]:
        """Which of these are on the list."""
        batches = [recipients[start : start + 1_000] for start in range(0, len(recipients), 1_000)]
        found: set[str] = set()
        for batch in batches:
            scores = await self._caller.read_one("ZMSCORE", keys.suppressions(), *batch)
            found.update(to for to, score in zip(batch, scores, strict=True) if score is not None)
        return found

    async def suppress(self, items: list[Suppression]) -> int:
        """Adds; returns how many are new."""
        rows = [{"to": item.to, "info": msgspec.json.encode(item).decode()} for item in items]
        return (await self._caller.call("suppress", Changed, add=rows)).changed

    async def unsuppress(self, to: str) -> bool:
        return (await self._caller.call("suppress", Changed, remove=to)).changed > 0

    async def suppressions(self, after: str, limit: int) -> list[Suppression]:
        found = await self._caller.read_one(
            "ZRANGEBYLEX", keys.suppressions(), f"({after}" if after else "-", "+", "LIMIT", 0, limit
        )
        infos = await self._caller.read_one("HMGET", keys.suppression_info(), *found) if found else []
        return [msgspec.json.decode(info, type=Suppression) for info in infos if info]

    async def memory_is_short(self) -> bool:
        """Above 80 % of maxmemory nothing new is accepted, so that what was accepted can still be settled."""
        info = await self._caller.read_one("INFO", "memory")
        used, limit = (int(info[name]) for name in ("used_memory", "maxmemory"))
        return limit > 0 and used > MEMORY_CEILING * limit


class Changed(Answer, frozen=True):
    changed: int = 0
