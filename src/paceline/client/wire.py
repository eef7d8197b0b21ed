"""Where httpx begins: the address and the key, checked; options both kinds of client share; what an error of httpx
means. Neighbours: `sync`, `aio`."""

import ipaddress
from typing import Any

import httpx

from paceline import __version__
from paceline.client.errors import BadAnswer, Misused
from paceline.client.reading import Ask, Lost, Reply
from paceline.client.streaming import SILENCE_SECONDS

ANSWER_LIMIT = 256 * 1_048_576
"""Millions of suppressions as CSV; everything else is far smaller."""

# None of these has sent anything.
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol, httpx.ProxyError)


class Wire:
    """One address and one key."""

    def __init__(self, url: str, key: str, timeout_seconds: float) -> None:
        self._url = _checked(url)
        if not key or not key.isascii() or not key.isprintable():
            raise Misused("the API key must be printable ASCII characters; that is no key")
        self._key = key
        self._timeout = httpx.Timeout(timeout_seconds)
        base = str(self._url.copy_with(username=None, password=None)).rstrip("/")
        self.where = base
        """Without a password, should the address have one."""
        self._base = str(self._url).rstrip("/")
        # What is on this machine is not asked through a proxy, which would get to see the key.
        self.trusts_env = not _is_loopback(self._url.host)

    def options(self) -> dict[str, Any]:
        return {
            "headers": {"X-API-KEY": self._key, "User-Agent": f"paceline-python/{__version__}"},
            "timeout": self._timeout,
            # The key is for this address alone.
            "follow_redirects": False,
            "trust_env": self.trusts_env,
        }

    def request(self, ask: Ask, *, is_stream: bool = False) -> dict[str, Any]:
        """As httpx takes it."""
        request: dict[str, Any] = {
            "method": ask.method,
            "url": f"{self._base}{ask.path}",
            "params": dict(ask.query) or None,
            "headers": dict(ask.headers),
            "content": ask.content,
        }
        if ask.waits_seconds:
            seconds = self._timeout.read or 0
            request["timeout"] = httpx.Timeout(self._timeout.connect, read=seconds + ask.waits_seconds)
        if is_stream:
            request["timeout"] = httpx.Timeout(self._timeout.connect, read=SILENCE_SECONDS)
        return request


class Body:
    """The bytes of an answer, up to a limit."""

    def __init__(self, response: httpx.Response, where: str) -> None:
        self._response = response
        self._where = where
        self._bytes = bytearray()

    def add(self, chunk: bytes) -> None:
        self._bytes += chunk
        if len(self._bytes) > ANSWER_LIMIT:
            raise BadAnswer(f"{self._where} answers without end", status=self._response.status_code)

    def reply(self) -> Reply:
        headers = {name.lower(): value for name, value in self._response.headers.items()}
        return Reply(self._response.status_code, headers, bytes(self._bytes))


def lost(error: httpx.HTTPError) -> Lost:
    return Lost(str(error) or type(error).__name__, maybe_done=not isinstance(error, _NOT_SENT))


def _checked(url: str) -> httpx.URL:
    # Before the @ there may be a password.
    shown = url.rpartition("@")[2]
    if not url.startswith(("http://", "https://")):
        raise Misused(f"the address must start with http:// or https://, not {shown!r}")
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise Misused(f"{shown!r} is no address: {error}") from error
    if not parsed.host or parsed.query or parsed.fragment:
        raise Misused(f"{shown!r} is no address of a service")
    return parsed


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
