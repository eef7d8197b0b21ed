"""Egress proxies as operators write them: one URL in one spelling, and the form that may be shown.

`read_proxy` answers with a `Proxy` or with `Refused` and a reason; neither a reason nor a masked URL ever holds a part
of the credentials. The user name is masked like the password: providers put the customer, the country and the exit into
it, and it is half of the key. Two proxies behind one address are told apart by their ids, which are numbers in the
order of upload and so say nothing about the URL. Neighbours: `profiles` for the other pool, `orchestrator.inventory`.
"""

import ipaddress
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

MAX_PROXY_LENGTH: Final = 1_024
"""Longer than any provider's; the URL is part of keys and of a worker's environment."""
MAX_CREDENTIAL_BYTES: Final = 255
"""What a SOCKS5 user name or password may have (RFC 1929)."""

_SCHEMES = ("http", "https", "socks5h")
_RESOLVED_HERE = "names would be resolved here; use socks5h://"
_HOW = "write it as http://user:password@host:port"
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_CREDENTIALS = re.compile(r"(?<=://).*@", re.DOTALL)
_ID = re.compile(r"p[1-9][0-9]{0,15}")
_SAFE = "-._~!$&'()*+,;="
"""What may stand in the user and password of a URL as it is (RFC 3986), but `:`."""


@dataclass(frozen=True)
class Proxy:
    url: str
    """With its credentials; for the worker and the store alone."""

    @property
    def key(self) -> str:
        return self.url


@dataclass(frozen=True)
class Refused:
    reason: str


def masked(url: str) -> str:
    """The proxy as it may be shown."""
    return _CREDENTIALS.sub("***@", url)


def is_proxy_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def read_proxy(text: str) -> Proxy | Refused:
    """The proxy in its one spelling, so that the same one is not stored twice."""
    text = text.strip(" \t")
    if len(text) > MAX_PROXY_LENGTH:
        return Refused(f"longer than {MAX_PROXY_LENGTH:,} characters")
    if not text.isprintable():
        return Refused("has control characters")
    if " " in text:
        return Refused("has spaces")
    scheme, separator, rest = text.partition("://")
    scheme = scheme.lower()
    if not separator:
        return Refused(f"is no URL; {_HOW}")
    if scheme in ("socks5", "socks4", "socks4a"):
        return Refused(_RESOLVED_HERE)
    if scheme not in _SCHEMES:
        return Refused("starts with none of http://, https://, socks5h://")
    return _read_authority(scheme, rest)


def _read_authority(scheme: str, rest: str) -> Proxy | Refused:
    rest = rest.removesuffix("/")
    if any(mark in rest for mark in "/?#\\"):
        return Refused(
            "has something behind the port, or a / ? # \\ in the password that must be written as %2F %3F %23 %5C"
        )
    given, at, address = rest.rpartition("@")
    credentials = _read_credentials(given) if at else ""
    if isinstance(credentials, Refused):
        return credentials
    place = _read_address(address)
    return place if isinstance(place, Refused) else Proxy(f"{scheme}://{credentials}{place}")


def _read_credentials(given: str) -> str | Refused:
    user, colon, password = given.partition(":")
    parts = [unquote(part, errors="replace") for part in (user, password)]
    if not parts[0]:
        return Refused(f"has no user name before the @; {_HOW}")
    if not all(part.isprintable() or not part for part in parts) or "\ufffd" in "".join(parts):
        return Refused("has control characters, or %-codes that are no text, in the user name or password")
    if any(len(part.encode()) > MAX_CREDENTIAL_BYTES for part in parts):
        return Refused(f"has a user name or password over {MAX_CREDENTIAL_BYTES} bytes")
    if ":" in parts[0]:
        return Refused("has a : in the user name, which no proxy can be told")
    user, password = (quote(part, safe=_SAFE) for part in parts)
    return f"{user}{colon}{password}@"


def _read_address(address: str) -> str | Refused:
    host, colon, port = address.rpartition(":")
    if address.endswith("]") or not colon:
        return Refused(f"has no port; {_HOW}")
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and 1 <= int(port) <= 65_535):
        return Refused("has no port from 1 to 65535")
    name = _read_host(host)
    return name if isinstance(name, Refused) else f"{name}:{int(port)}"


def _read_host(host: str) -> str | Refused:
    if not host:
        return Refused("has no host")
    if host.startswith("[") and host.endswith("]"):
        return _read_ip(host[1:-1], version=6)
    if ":" in host:
        return Refused("has more than one : in the address; an IPv6 address is written in [ ]")
    name = host.lower().removesuffix(".")
    labels = name.split(".")
    # Nothing that ends in a number is a name (WHATWG URL): 1.2.3 or 0x7f.1 would be read as an address by some.
    if re.fullmatch(r"[0-9]+|0x[0-9a-f]*", labels[-1]):
        return _read_ip(name, version=4)
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        return Refused("has a host that is no name; one with other letters is written as xn--…")
    return name


def _read_ip(text: str, *, version: int) -> str | Refused:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return Refused("has a host that is no IP address")
    if address.version != version or "%" in text or address.is_unspecified or address.is_multicast:
        return Refused("has a host that is no IP address to connect to")
    return f"[{address}]" if version == 6 else str(address)
