"""The orchestrator's outbox over HTTP, with httpx: the port of `handing` in production."""

import asyncio
from collections.abc import Sequence
from urllib.parse import quote

import httpx
import msgspec

from paceline.dispatcher.handing import BATCH, Post

TIMEOUT_S = 5.0
"""For the whole post. Half a lease: who gets no answer by then posts again, under the next lease."""


class HttpOutbox:
    def __init__(self, base_url: str, api_key: str, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._client = httpx.AsyncClient(
            base_url=base_url,
            headers={"X-API-KEY": api_key, "Content-Type": "application/json"},
            timeout=TIMEOUT_S,
            limits=httpx.Limits(max_connections=BATCH, max_keepalive_connections=BATCH),
            # HTTP_PROXY and the like are for the way to WhatsApp, never for the way to the orchestrator.
            trust_env=False,
            transport=transport,
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def enqueue_many(self, posts: Sequence[Post]) -> list[str | None]:
        return await asyncio.gather(*(self._enqueue(post) for post in posts))

    async def _enqueue(self, post: Post) -> str | None:
        path = f"/api/sessions/{quote(post.session, safe='')}/outbox/enqueue"
        headers = {"X-Request-Id": post.request_id} if post.request_id else {}
        try:
            async with asyncio.timeout(TIMEOUT_S):
                answer = await self._client.post(path, content=msgspec.json.encode(post.body), headers=headers)
        except (httpx.HTTPError, TimeoutError) as error:
            return type(error).__name__
        return None if answer.is_success else f"{answer.status_code} {_code(answer.content)}"


def _code(content: bytes) -> str:
    # Whatever stands between us and the orchestrator may answer in a shape of its own.
    try:
        return str(msgspec.json.decode(content)["error"]["code"])[:64]
    except (msgspec.DecodeError, LookupError, TypeError):
        return "UNREADABLE"
