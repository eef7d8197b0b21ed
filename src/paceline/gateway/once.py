"""One answer for a request however often it is sent: Idempotency-Key and room in the store, as every sending route
needs them."""

import hashlib
from collections.abc import Awaitable, Callable

import msgspec

from paceline.edge import holder
from paceline.gateway.idempotency import HEADER, Idempotency, checked
from paceline.gateway.intake import Intake
from paceline.kits.clock import Clock
from paceline.kits.headers import header
from paceline.kits.web import AnyRequest
from paceline.store.store import Store

_encode = msgspec.json.Encoder().encode
_HEADER = HEADER.lower().encode()

Work = Callable[[str, str | None, int], Awaitable[msgspec.Struct]]
"""(job id, Idempotency-Key, now_ms)"""


class Once:
    def __init__(self, store: Store, intake: Intake, clock: Clock) -> None:
        self._idempotency = Idempotency(store)
        self._intake = intake
        self._clock = clock

    async def answer(self, request: AnyRequest, work: Work, *, body: bytes | None = None) -> bytes:
        """Under the caller's Idempotency-Key, if there is one. `body` is what makes two requests the same if their
        bytes do not: a form is written anew each time, with another boundary."""
        now_ms, key = self._clock.now_ms(), checked(header(request.scope, _HEADER))
        await self._intake.pressure.check(now_ms)
        if key is None:
            return _encode(await work(self._intake.new_job_id(now_ms), None, now_ms))

        async def encoded(job_id: str) -> bytes:
            return _encode(await work(job_id, key, now_ms))

        # A large body is hashed only if the hash is needed.
        digest = await _fingerprint(request, body)
        job_id = self._intake.new_job_id(now_ms)
        return await self._idempotency.answer(
            by=holder(request), key=key, body=digest, job_id=job_id, now_ms=now_ms, work=encoded
        )


async def _fingerprint(request: AnyRequest, body: bytes | None) -> str:
    """The path, the query (where a job's options stand beside a CSV) and the body."""
    hashed = hashlib.sha256(request.scope["path"].encode())
    if query := request.scope["query_string"]:
        hashed.update(b"?" + query)
    hashed.update(b"\n")
    hashed.update(await request.body() if body is None else body)
    return hashed.hexdigest()
