"""What a command of the CLI asks a running gateway: one request at a time, and errors that its user can act on.

The gateway may be anywhere: its address and the key come from options or the environment. Neighbours:
`paceline.cli_keys` uses it; `client.py` is what `paceline up` itself uses, for services it has just started.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import httpx

from paceline.launcher.data import DataDirectory
from paceline.launcher.errors import LauncherError, UsageError

TIMEOUT_SECONDS = 30
PAGE_SIZE = 200
MAX_PAGES = 1_000
"""A list that never ends is a fault of the other side; a command must end all the same."""

# Asked again later, these may be answered: the gateway cannot reach its store, or a proxy not the gateway.
_AWAY = (502, 503, 504)


class Refused(LauncherError):
    """The gateway answered, and the answer is no."""

    exit_code = 1


class Unreachable(LauncherError):
    """No gateway answered, or one that cannot work now. The same command may succeed later."""

    exit_code = 3


class Gateway:
    """The public API over HTTP, with the key of whoever runs the command."""

    def __init__(self, url: str, key: str, *, transport: httpx.BaseTransport | None = None) -> None:
        if not url.startswith(("http://", "https://")):
            raise UsageError(f"--url must start with http:// or https://, not {url!r}")
        if not key.isascii() or not key.isprintable():
            raise UsageError("the API key must be printable ASCII characters; that is no key")
        self._url = url.rstrip("/")
        self._http = httpx.Client(
            headers={"X-API-KEY": key},
            timeout=TIMEOUT_SECONDS,
            transport=transport,
            # What is on this machine is not asked through a proxy, which would get to see the key.
            trust_env=_host(url) not in ("127.0.0.1", "localhost", "::1"),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def ask(self, method: str, path: str, *, having: Sequence[str] = (), **request: Any) -> dict[str, Any]:
        """The answer's JSON. `having` are the fields that make it an answer of a gateway."""
        try:
            # Redirects are not followed: the key is for this address alone.
            answer = self._http.request(method, f"{self._url}{path}", **request)
        except httpx.HTTPError as error:
            raise Unreachable(f"no answer from {self._url}: {error or type(error).__name__}") from error
        if answer.is_success:
            return self._checked(answer, having)
        kind = Unreachable if answer.status_code in _AWAY else Refused
        raise kind(f"{self._url} answered {answer.status_code}: {_reason(answer)}")

    def all_pages(self, path: str, *, having: Sequence[str] = ()) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        cursor: str | None = ""
        for _ in range(MAX_PAGES):
            page = self.ask("GET", path, having=["items"], params={"limit": PAGE_SIZE, "cursor": cursor})
            items += page["items"]
            cursor = page.get("nextCursor")
            if not cursor:
                return [self._having(item, having) for item in items]
        raise Refused(f"{self._url}{path} has more than {MAX_PAGES} pages")

    def _checked(self, answer: httpx.Response, having: Sequence[str]) -> dict[str, Any]:
        try:
            return self._having(answer.json(), having)
        except ValueError:
            return self._having(None, having)

    def _having(self, found: object, fields: Sequence[str]) -> dict[str, Any]:
        if not isinstance(found, dict) or not set(fields) <= set(found):
            raise Refused(f"{self._url} does not answer like a Paceline gateway")
        return found


def find_key(given: str | None) -> str:
    """The key that was given, or the one that `paceline up` made in the data directory."""
    if given:
        return given.strip()
    path = DataDirectory(Path(os.environ.get("PACELINE_DATA") or "./data")).api_key
    try:
        kept = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        kept = ""
    if not kept:
        raise UsageError(f"no API key: set API_KEY or give --key (there is none in {path} either)")
    return kept


def _host(url: str) -> str:
    try:
        host = httpx.URL(url).host
    except httpx.InvalidURL as error:
        raise UsageError(f"--url is no address: {error}") from error
    if not host:
        raise UsageError(f"--url is no address: {url!r}")
    return host


def _reason(answer: httpx.Response) -> str:
    """The gateway's own words; of anybody else's answer nothing, it may be a whole page."""
    try:
        error = answer.json()["error"]
        words = f"{error['code']}: {error['message']}"
        field = error.get("details", {}).get("field")
        return f"{words} ({field})" if field else words
    except (ValueError, KeyError, TypeError, AttributeError):
        return "not in the words of a Paceline gateway"
