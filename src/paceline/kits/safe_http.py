"""HTTP to addresses that strangers gave us, without becoming their way into our own network.

A URL somebody typed (a webhook, a picture to fetch) must not reach what only we can reach. So: http and https only, no
user names, plain host names or plain addresses (`safe_urls`, `addresses`); the host is resolved by us, every
address it has must be public, and the one that was looked at is the one connected to: a name that changes its mind in
between (DNS rebinding) gains nothing. Host header and TLS name stay those of the URL. Redirects are not followed by
`post`; `fetch` follows a few and looks at each anew. Everything has a limit of size and time. No connection is kept:
two names on one address must not share one that was verified for the other.

Neighbours: `gateway/deliveries` posts webhooks with it, `gateway/media` fetches `mediaUrl` with it.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial

import httpx

from paceline.kits.addresses import host_address, is_public
from paceline.kits.safe_urls import SafeHttpError, UnsafeUrl, check

REDIRECTS = 3
FETCH_TIMEOUT_S = 30.0
POST_TIMEOUT_S = 15.0
RESOLVE_TIMEOUT_S = 5.0
RESOLVED_AT_ONCE = 16
"""Names looked up at once, in threads of their own. A look-up whose name server is silent goes on long after nobody
waits for it; in the threads all share, a few of them would hold up every file and every large body."""
ADDRESSES_TRIED = 3
"""Of a host that has many; the others are as likely to be down."""
ANSWER_KEPT = 1_024
"""Bytes of a webhook's answer that are read: enough to tell in a log what it said."""

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""The addresses of a name, as text. Raises OSError when there are none."""


class Unreachable(SafeHttpError):
    """Nobody answered, or not in time. It may be tried again."""


class BadAnswer(SafeHttpError):
    """It answered with something we cannot take: a status that is no success, too large, of the wrong type."""


@dataclass(frozen=True)
class Target:
    """A URL that was looked at, and the addresses that were found good."""

    url: httpx.URL
    host: str
    addresses: tuple[str, ...]


@dataclass(frozen=True)
class Posted:
    status: int
    excerpt: str
    """The first characters of the answer."""
    retry_after_s: int | None = None


@dataclass(frozen=True)
class Fetched:
    content: bytes
    content_type: str
    """Without parameters, in small letters; one of the `types` that were asked for."""
    url: str
    """Where it was found in the end, after redirects."""


_RESOLVERS = ThreadPoolExecutor(RESOLVED_AT_ONCE, thread_name_prefix="resolve")


async def system_resolve(host: str, port: int) -> list[str]:
    look_up = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    found = await asyncio.get_running_loop().run_in_executor(_RESOLVERS, look_up)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    """Made once: reading the authorities takes longer than a request."""
    return httpx.create_ssl_context(trust_env=False)


class SafeHttp:
    """`allow_private` is for those whose receivers are on their own network; everything else still holds.

    `resolve` and `transport` are there for tests.
    """

    def __init__(
        self,
        *,
        allow_private: bool = False,
        resolve: Resolve = system_resolve,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._allow_private = allow_private
        self._resolve = resolve
        self._transport = transport

    async def vet(self, text: str) -> Target:
        """The URL with addresses that may be connected to. Raises UnsafeUrl, or Unreachable if the name has none."""
        url, host = check(text, allow_private=self._allow_private)
        literal = host_address(host)
        port = url.port or (443 if url.scheme == "https" else 80)
        try:
            async with asyncio.timeout(RESOLVE_TIMEOUT_S):
                found = [str(literal)] if literal else await self._resolve(host, port)
        except OSError as error:  # a timeout is one
            raise Unreachable("the host name has no address") from error
        if not found:
            raise Unreachable("the host name has no address")
        # All of them: one that is public must not be the cover for another that is not.
        if not self._allow_private and not all(is_public(address) for address in found):
            raise UnsafeUrl("the host is not on the public internet")
        return Target(url, host, tuple(found[:ADDRESSES_TRIED]))

    async def post(
        self, url: str, content: bytes, headers: Mapping[str, str], *, timeout_s: float = POST_TIMEOUT_S
    ) -> Posted:
        """Whatever the answer is, it is an answer; redirects are not followed. `timeout_s` is for all of it together.

        Raises UnsafeUrl or Unreachable.
        """
        with _in_our_words():
            async with asyncio.timeout(timeout_s), self._send("POST", url, timeout_s, headers, content) as answer:
                start = b""
                async for chunk in answer.aiter_raw():
                    start += chunk[: ANSWER_KEPT - len(start)]
                    if len(start) >= ANSWER_KEPT:
                        break
                wait = answer.headers.get("retry-after", "")
                seconds = int(wait[:9]) if wait.isascii() and wait.isdigit() else None
                return Posted(answer.status_code, start.decode("utf-8", "replace"), seconds)

    async def fetch(
        self,
        url: str,
        *,
        max_bytes: int,
        types: Collection[str],
        timeout_s: float = FETCH_TIMEOUT_S,
        redirects: int = REDIRECTS,
    ) -> Fetched:
        """Gets what lies there, whole, or raises.

        `types` are the media types that are taken (`image/png`), or `image/*`; what the server says is what counts, so
        look at the bytes as well. At most `max_bytes` are read, whatever length was announced; compressed answers are
        refused, so there is nothing that could unpack to more. `timeout_s` is for all of it together, redirects
        included, each of which is looked at like the first URL.

        Raises UnsafeUrl (never tell it to try again), Unreachable (it may be tried again) or BadAnswer.
        """
        headers = {"Accept": ", ".join(sorted(types)), "Accept-Encoding": "identity"}
        with _in_our_words():
            async with asyncio.timeout(timeout_s):
                for _ in range(redirects + 1):
                    async with self._send("GET", url, timeout_s, headers, None) as answer:
                        if not answer.has_redirect_location:
                            return await _read(answer, url, max_bytes, types)
                        url = _next_hop(url, answer.headers["location"])
        raise BadAnswer(f"it is redirected more than {redirects} times")

    @asynccontextmanager
    async def _send(
        self, method: str, text: str, timeout_s: float, headers: Mapping[str, str], content: bytes | None
    ) -> AsyncIterator[httpx.Response]:
        target = await self.vet(text)
        async with httpx.AsyncClient(
            transport=self._transport, verify=_tls(), trust_env=False, follow_redirects=False, timeout=timeout_s
        ) as client:
            answer = None
            for number, address in enumerate(target.addresses, 1):
                request = client.build_request(
                    method,
                    target.url.copy_with(host=address),
                    headers={**headers, "Host": _host_header(target), "Connection": "close"},
                    content=content,
                    # Who must be at the other end, whatever address we call.
                    extensions={"sni_hostname": target.host, "timeout": httpx.Timeout(timeout_s).as_dict()},
                )
                try:
                    answer = await client.send(request, stream=True)
                    break
                except httpx.ConnectError as error:
                    # Nothing was sent, so the next address may be tried.
                    if number == len(target.addresses):
                        raise Unreachable("it cannot be connected to") from error
            assert answer is not None
            try:
                yield answer
            finally:
                await answer.aclose()


@contextmanager
def _in_our_words() -> Iterator[None]:
    """What the library and the clock raise, as one of ours."""
    try:
        yield
    except (TimeoutError, httpx.TimeoutException) as error:
        raise Unreachable("no answer in time") from error
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError) as error:
        raise Unreachable(f"no answer that could be read ({type(error).__name__})") from error


async def _read(answer: httpx.Response, url: str, max_bytes: int, types: Collection[str]) -> Fetched:
    if answer.status_code != 200:
        raise BadAnswer(f"it answers {answer.status_code}")
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in types and f"{kind.partition('/')[0]}/*" not in types:
        raise BadAnswer("it is of a type that is not taken")
    if answer.headers.get("content-encoding", "identity").lower() != "identity":
        raise BadAnswer("it is sent compressed")
    length = answer.headers.get("content-length", "0")
    if length.isdigit() and int(length) > max_bytes:
        raise BadAnswer(f"it is larger than {max_bytes:,} bytes")
    content = bytearray()
    async for chunk in answer.aiter_raw():
        content += chunk
        if len(content) > max_bytes:
            raise BadAnswer(f"it is larger than {max_bytes:,} bytes")
    return Fetched(bytes(content), kind, url)


def _next_hop(url: str, location: str) -> str:
    try:
        return str(httpx.URL(url).join(location))
    except (httpx.InvalidURL, ValueError, TypeError) as error:
        raise UnsafeUrl("it is redirected to something that is no URL") from error


def _host_header(target: Target) -> str:
    host = f"[{target.host}]" if ":" in target.host else target.host
    return host if target.url.port is None else f"{host}:{target.url.port}"


__all__ = [
    "BadAnswer", "Fetched", "Posted", "SafeHttp", "SafeHttpError", "Unreachable", "UnsafeUrl",
]  # fmt: skip
