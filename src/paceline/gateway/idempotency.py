"""Requests under an Idempotency-Key: the same key and body get the first answer again, byte for byte.

The script that accepts the work writes the answer too, so no crash can part them. Neighbour: `intake` makes the answer.
"""

import re
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from paceline.domain.errors import BadRequest, Busy, Conflict, Unavailable, Unprocessable
from paceline.store.store import Store

HEADER = "Idempotency-Key"
_KEY = re.compile(r"[\x21-\x7e]{1,255}")
RETRY_AFTER_S = 1


def checked(key: str | None) -> str | None:
    if key is not None and not _KEY.fullmatch(key):
        raise BadRequest("INVALID_REQUEST", "1 to 255 printable characters without spaces", field=HEADER)
    return key


class Idempotency:
    def __init__(self, store: Store, holder: str | None = None) -> None:
        """`holder` names this process and this life of it."""
        self._store = store
        self._holder = holder or secrets.token_hex(8)
        self._at_work: Counter[tuple[str, str]] = Counter()
        """What stands in the store of a request of ours that is not among these was cut off, when the store went away:
        its caller, who asks again, need not wait until it counts as dead."""

    async def answer(
        self,
        *,
        by: str,
        key: str,
        body: str,
        job_id: str,
        now_ms: int,
        work: Callable[[str], Awaitable[bytes]],
    ) -> bytes:
        """The answer of `work(job_id)`, or that of the request that came first. `body` is the hash of the request."""
        with self._working(by, key) as is_free:
            begun = await self._store.guards.begin(
                by, key, body, job_id, now_ms=now_ms, holder=self._holder, is_free=is_free
            )
            if begun.code == "DONE":
                return begun.answer.encode()
            if begun.code == "OTHER_BODY":
                raise Unprocessable("IDEMPOTENCY_KEY_REUSED", "this key was used with another body", field=HEADER)
            if begun.code == "IN_FLIGHT":
                message = "the first request with this key is still running"
                raise Conflict("IDEMPOTENCY_IN_FLIGHT", message, field=HEADER, retry_after_seconds=RETRY_AFTER_S)
            try:
                answer = await work(begun.job)
            except Exception as error:
                # A store that does not answer may have accepted it. A repeat takes over the same job id and finds out.
                if isinstance(error, Busy) or not isinstance(error, Unavailable):
                    await self._store.guards.end(by, key, begun.job, answer=None, begun_ms=now_ms)
                raise
            if begun.job != job_id:
                # Taken over from a request that was cut off: it may have accepted this without an answer kept.
                await self._store.guards.end(by, key, begun.job, answer=answer.decode())
            return answer

    @contextmanager
    def _working(self, by: str, key: str) -> Iterator[bool]:
        """Whether nobody else here is at it."""
        self._at_work[by, key] += 1
        try:
            yield self._at_work[by, key] == 1
        finally:
            self._at_work[by, key] -= 1
            if not self._at_work[by, key]:
                del self._at_work[by, key]
