"""Proxies as people write them: which spellings are one proxy, what is refused and why, and that nothing leaks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.domain.proxies import Proxy, Refused, is_proxy_id, masked, read_proxy


def url_of(text: str) -> str:
    proxy = read_proxy(text)
    assert isinstance(proxy, Proxy), proxy
    return proxy.url


def reason_of(text: str) -> str:
    refused = read_proxy(text)
    assert isinstance(refused, Refused), refused
    return refused.reason


@pytest.mark.parametrize(
    ("raw", "url"),
    [
        pytest.param("http://u:p@host.example:8080", "http://u:p@host.example:8080", id="http"),
        pytest.param("https://u:p@host.example:443", "https://u:p@host.example:443", id="https"),
        pytest.param("socks5h://u:p@host.example:1080", "socks5h://u:p@host.example:1080", id="socks5h"),
        pytest.param("  HTTP://u:p@HOST.Example.:8080/ ", "http://u:p@host.example:8080", id="case, dot, slash, blank"),
        pytest.param("http://host.example:8080", "http://host.example:8080", id="no credentials"),
        pytest.param("http://token@host:1", "http://token@host:1", id="user alone"),
        pytest.param("http://u:@host:1", "http://u:@host:1", id="empty password"),
        pytest.param("http://u:p@10.0.0.7:3128", "http://u:p@10.0.0.7:3128", id="IPv4"),
        pytest.param("http://u:p@[2001:DB8::0:1]:3128", "http://u:p@[2001:db8::1]:3128", id="IPv6"),
        pytest.param("http://u:p@ss:w@rd@host:1", "http://u:p%40ss%3Aw%40rd@host:1", id="@ and : in the password"),
        pytest.param("http://u:p%40ss@host:1", "http://u:p%40ss@host:1", id="the same, escaped"),
        pytest.param("http://u:100%@host:1", "http://u:100%25@host:1", id="a bare per cent sign"),
        pytest.param("http://u:סוד@host:1", "http://u:%D7%A1%D7%95%D7%93@host:1", id="other letters in the password"),
        pytest.param(
            "http://cust-a-cc-il-sess-1:p@gate_1.example:7777", "http://cust-a-cc-il-sess-1:p@gate_1.example:7777",
            id="as providers write it",
        ),
        pytest.param("http://u:p@host:65535", "http://u:p@host:65535", id="highest port"),
    ],
)  # fmt: skip
def test_spellings(raw: str, url: str) -> None:
    """Each has one spelling, which is its own spelling."""
    assert url_of(raw) == url
    assert url_of(url) == url


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        pytest.param("socks5://u:p@h:1", "names would be resolved here; use socks5h://", id="socks5"),
        pytest.param("SOCKS5://u:p@h:1", "names would be resolved here; use socks5h://", id="SOCKS5"),
        pytest.param("socks4://h:1", "names would be resolved here; use socks5h://", id="socks4"),
        pytest.param("socks4a://h:1", "names would be resolved here; use socks5h://", id="socks4a"),
        pytest.param("ftp://h:1", "starts with none of", id="ftp"),
        pytest.param("socks5h:/h:1", "is no URL", id="one slash"),
        pytest.param("h.example:8080:user:secret", "is no URL; write it as http://", id="as a vendor's list"),
        pytest.param("", "is no URL", id="empty"),
        pytest.param("http://", "no port", id="nothing"),
        pytest.param("http://host", "no port", id="no port"),
        pytest.param("http://[::1]", "no port", id="no port behind IPv6"),
        pytest.param("http://host:", "no port from", id="empty port"),
        pytest.param("http://host:0", "no port from", id="port 0"),
        pytest.param("http://host:65536", "no port from", id="port too high"),
        pytest.param("http://host:-1", "no port from", id="negative port"),
        pytest.param("http://host:+80", "no port from", id="signed port"),
        pytest.param("http://host:80a", "no port from", id="port with letters"),
        pytest.param("http://host:٨٠", "no port from", id="port in other digits"),
        pytest.param("http://host:" + "9" * 900, "no port from", id="port of 900 digits"),
        pytest.param("http://:80", "no host", id="no host"),
        pytest.param("http://u:p@:80", "no host", id="no host behind credentials"),
        pytest.param("http://:p@h:80", "no user name", id="password alone"),
        pytest.param("http://@h:80", "no user name", id="empty credentials"),
        pytest.param("http://u%3Ax:p@h:80", ": in the user name", id="colon in the user name"),
        pytest.param("http://u:p@2001:db8::1:80", "written in [ ]", id="bare IPv6"),
        pytest.param("http://u:p@[2001:db8::1%25eth0]:80", "no IP address", id="IPv6 with a zone"),
        pytest.param("http://u:p@[1.2.3.4]:80", "no IP address", id="IPv4 in brackets"),
        pytest.param("http://u:p@[]:80", "no IP address", id="empty brackets"),
        pytest.param("http://u:p@999.1.1.1:80", "no IP address", id="IPv4 too high"),
        pytest.param("http://u:p@1.2.3:80", "no IP address", id="three parts"),
        pytest.param("http://u:p@127.1:80", "no IP address", id="short form"),
        pytest.param("http://u:p@0x7f.0.0.0x1:80", "no IP address", id="hex form"),
        pytest.param("http://u:p@2130706433:80", "no IP address", id="one number"),
        pytest.param("http://u:p@0.0.0.0:80", "to connect to", id="any address"),
        pytest.param("http://u:p@224.0.0.1:80", "to connect to", id="multicast"),
        pytest.param("http://u:p@-host:80", "no name", id="leading dash"),
        pytest.param("http://u:p@ho..st:80", "no name", id="empty label"),
        pytest.param("http://u:p@" + "a" * 64 + ":80", "no name", id="label too long"),
        pytest.param("http://u:p@" + "a." * 127 + "com:80", "no name", id="name too long"),
        pytest.param("http://u:p@מארח.example:80", "xn--", id="name in other letters"),
        pytest.param("http://u:p@host:80/path", "behind the port", id="path"),
        pytest.param("http://u:p@host:80?x=1", "behind the port", id="query"),
        pytest.param("http://u:p#x@host:80", "%23", id="hash in the password"),
        pytest.param("http://u:p/x@host:80", "%2F", id="slash in the password"),
        pytest.param("http://u:p\\x@host:80", "%5C", id="backslash in the password"),
        pytest.param("http://u: p@host:80", "spaces", id="space"),
        pytest.param("http://u:p@host:80 http://u:p@host:81", "spaces", id="two in a line"),
        pytest.param("http://u:p\x07@host:80", "control characters", id="bell"),
        pytest.param("http://u:p\t@host:80", "control characters", id="tab"),
        pytest.param("http://u:p\u202e@host:80", "control characters", id="direction mark"),
        pytest.param("http://u:p%0d%0aX@host:80", "control characters", id="escaped line end"),
        pytest.param("http://u%00:p@host:80", "control characters", id="escaped NUL"),
        pytest.param("http://u:%ff@host:80", "no text", id="escape that is no text"),
        pytest.param("http://" + "u" * 256 + ":p@host:80", "over 255 bytes", id="user too long"),
        pytest.param("http://u:" + "p" * 256 + "@host:80", "over 255 bytes", id="password too long"),
        pytest.param("http://u:p@" + "h" * 1_024 + ":80", "longer than 1,024", id="too long"),
    ],
)
def test_refusals_say_why(raw: str, reason: str) -> None:
    assert reason in reason_of(raw)


SECRETS = st.text(st.characters(codec="utf-8", exclude_characters=" "), min_size=6, max_size=30)


@given(st.text(max_size=60))
def test_no_line_raises(line: str) -> None:
    """Whatever it is: a proxy in its one spelling, or a reason."""
    found = read_proxy(line)
    if isinstance(found, Proxy):
        assert read_proxy(found.url) == found


@given(
    SECRETS, SECRETS, st.sampled_from(["http", "socks5", "socks5h", "gopher"]), st.sampled_from(["h:1", "h", "x..:1"])
)
def test_neither_a_reason_nor_the_masked_form_tells_a_credential(
    user: str, password: str, scheme: str, rest: str
) -> None:
    line = f"{scheme}://QQ{user}QQ:ZZ{password}ZZ@{rest}"
    found = read_proxy(line)
    shown = masked(found.url) if isinstance(found, Proxy) else found.reason
    assert "QQ" not in shown
    assert "ZZ" not in shown


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://u:p@h:1", "http://***@h:1"),
        ("socks5h://user@h:1", "socks5h://***@h:1"),
        ("http://h:1", "http://h:1"),
        ("https://u:p@[2001:db8::1]:3128", "https://***@[2001:db8::1]:3128"),
    ],
)
def test_masked(url: str, shown: str) -> None:
    assert masked(url) == shown


@pytest.mark.parametrize(
    ("text", "is_id"),
    [
        ("p1", True),
        ("p1234567890", True),
        ("p0", False),
        ("p", False),
        ("1", False),
        ("p1\n", False),
        ("p" + "9" * 40, False),
    ],
)
def test_ids(text: str, is_id: bool) -> None:
    assert is_proxy_id(text) == is_id
