"""Which URLs that strangers gave us may be called at all, as far as their text tells.

Strict rather than clever: what two parsers may read in two ways is refused. Neighbours: `addresses` says which
addresses are public, `safe_http` resolves names and makes the connection.
"""

import re

import httpx

from paceline.kits.addresses import host_address

URL_LIMIT = 2_048

FORBIDDEN_PORTS = frozenset(
    {1433, 1719, 1720, 1723, 2049, 2375, 2376, 2379, 2380, 3306, 3659, 4045, 4190, 5060, 5061, 5432, 5672, 5984, 6000}
    | {6379, 6380, 6443, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 9042, 9092, 9200, 9300, 10080, 10250, 11211}
    | {26379, 27017}
)
"""Above 1023, ports of protocols that are not HTTP but may be fooled by it, and of stores that are often left open."""

_NAME = re.compile(r"(?!.{254})(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")
"""The last label begins with a letter: `0x7f.1`, `2130706433` and `1.2.3` are ways to write an address, not names."""
_AUTHORITY_END = re.compile(r"[/?#]")
_NOT_IN_A_URL = re.compile(r"[\x00-\x20\x7f\\]")

_OWN_NAMES = (".localhost", ".local", ".internal", ".localdomain", ".lan", ".home.arpa", ".onion")
"""Ends of names that mean something on our own network only."""


class SafeHttpError(Exception):
    """The words are fit to be shown to whoever gave us the URL: they hold nothing about our network."""


class UnsafeUrl(SafeHttpError):
    """Not a URL that we will ever call as it stands. Nothing was sent."""


def check(text: str, *, allow_private: bool = False) -> tuple[httpx.URL, str]:
    """What can be said of a URL without asking anybody: it without its fragment, and its host. Raises UnsafeUrl."""
    if len(text) > URL_LIMIT:
        raise UnsafeUrl(f"a URL has at most {URL_LIMIT:,} characters")
    if _NOT_IN_A_URL.search(text):
        raise UnsafeUrl("a URL has no spaces, line breaks or backslashes")
    try:
        url = httpx.URL(text)
        host, port = url.raw_host.decode("ascii").lower(), url.port
    except (httpx.InvalidURL, ValueError, TypeError) as error:
        raise UnsafeUrl("this is no URL") from error
    if url.scheme not in ("http", "https"):
        raise UnsafeUrl("only http:// and https:// are called")
    authority = _AUTHORITY_END.split(text.partition("://")[2], maxsplit=1)[0]
    if url.userinfo or "@" in authority:
        raise UnsafeUrl("a URL must not hold a user name or password")
    if port is not None and not _may_call(port):
        raise UnsafeUrl("this port is not called: use 80, 443 or one above 1023 that is meant for HTTP")
    # Other scripts have several spellings of one name; the one that DNS knows is asked for.
    if not authority.isascii():
        raise UnsafeUrl("write the host name in its ASCII form (punycode)")
    return url.copy_with(fragment=None), _host(host, allow_private)


def _host(host: str, allow_private: bool) -> str:
    if host_address(host) is not None:
        return host
    name = host.removesuffix(".")
    if not _NAME.fullmatch(name):
        raise UnsafeUrl("the host is neither a name nor an address in its usual form")
    # A name without a dot is one of our own network.
    if not allow_private and ("." not in name or name.endswith(_OWN_NAMES)):
        raise UnsafeUrl("the host is not on the public internet")
    return name


def _may_call(port: int) -> bool:
    return port in (80, 443) or (1_024 <= port <= 65_535 and port not in FORBIDDEN_PORTS)
