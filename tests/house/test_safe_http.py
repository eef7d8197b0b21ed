"""Hostile URLs reach nothing: whatever they are written like, resolve to, turn into or lead to."""

import asyncio
import contextlib
import gzip
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from needed import skip_if
from paceline.kits import safe_http
from paceline.kits.addresses import is_public
from paceline.kits.safe_http import BadAnswer, SafeHttp, Unreachable, UnsafeUrl

PUBLIC, OTHER = "93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"
NAMES = {
    "good.example": [PUBLIC],
    "six.example": [OTHER],
    "both.example": [PUBLIC, "10.0.0.7"],
    "loop.example": ["127.0.0.1"],
    "loop6.example": ["::1"],
    "mapped.example": ["::ffff:10.0.0.1"],
    "nat64.example": ["64:ff9b::a00:1"],
    "meta.example": ["169.254.169.254"],
    "ula.example": ["fd00:ec2::254"],
    "cgnat.example": ["100.100.100.200"],
    "zero.example": ["0.0.0.0"],
    "azure.example": ["168.63.129.16"],
    "multi.example": ["224.0.0.1"],
    "zone.example": ["fe80::1%eth0"],
    "garbage.example": ["not an address"],
    "6to4.example": ["2002:7f00:1::"],
    "teredo.example": ["2001:0:7f00:1::"],
}

HOSTILE = [
    # Addresses in every spelling
    "http://127.0.0.1/", "http://127.1/", "http://127.0.1/", "http://2130706433/", "http://0x7f000001/",
    "http://0x7f.0x0.0x0.0x1/", "http://0177.0.0.1/", "http://0177.0000.0000.0001/", "http://017700000001/",
    "http://127.0.0.1./", "http://0/", "http://0.0.0.0/", "http://0.1.2.3/", "http://10.0.0.1/", "http://172.16.0.1/",
    "http://192.168.1.1/", "http://169.254.169.254/latest/meta-data/", "http://100.64.0.1/", "http://100.100.100.200/",
    "http://192.0.0.192/", "http://198.18.0.1/", "http://224.0.0.1/", "http://240.0.0.1/", "http://255.255.255.255/",
    "http://168.63.129.16/", "http://1.2.3/", "http://256.256.256.256/", "http://127.0.0.1%2f/", "http://①②⑦.0.0.1/",
    "http://127。0。0。1/", "http://１２７.0.0.1/", "http://425.510.425.510/", "http://3232235777/", "http://0xA9FEA9FE/",
    # IPv6
    "http://[::1]/", "http://[::]/", "http://[0:0:0:0:0:0:0:1]/", "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/", "http://[::ffff:93.184.216.34]/", "http://[::127.0.0.1]/", "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b:1::a00:1]/", "http://[fe80::1]/", "http://[fe80::1%25eth0]/", "http://[fc00::1]/",
    "http://[fd00:ec2::254]/", "http://[fec0::1]/", "http://[ff02::1]/", "http://[2002:7f00:1::]/",
    "http://[2001:0:7f00:1::]/", "http://[2001:db8::1]/", "http://[100::1]/", "http://[::1", "http://[v1.x]/",
    # User names and what parsers disagree about
    "http://good.example@127.0.0.1/", "http://user:pass@good.example/", "http://@good.example/",
    "http://127.0.0.1\\@good.example/", "http://good.example\\@127.0.0.1/", "http://good.example#@127.0.0.1:22/#\n",
    "http://good.example%00.evil.example/", "http://good.example%2f@127.0.0.1/", "http://127.0.0.1:80@good.example:80/",
    "http://good.example /", "http:// good.example/", "http://good.example\t/", "http://go\rod.example/",
    "http://good.example/\r\nHost: 127.0.0.1", "http://good.example/%0d\n", "http://good.example\x00/",
    "http://a..example/", "http://.example/", "http://-a.example/", "http://exa mple.com/", "http://good.example:80:80/",
    # Names of our own network, and names that resolve to it
    "http://localhost/", "http://LOCALHOST/", "http://localhost./", "http://x.localhost/", "http://redis/",
    "http://router.local/", "http://metadata.google.internal/", "http://db.internal./", "http://printer.lan/",
    "http://both.example/", "http://loop.example/", "http://loop6.example/", "http://mapped.example/",
    "http://nat64.example/", "http://meta.example/", "http://ula.example/", "http://cgnat.example/",
    "http://zero.example/", "http://azure.example/", "http://multi.example/", "http://zone.example/",
    "http://garbage.example/", "http://6to4.example/", "http://teredo.example/", "https://LOOP.example:8443/x?y",
    # Ports
    "http://good.example:22/", "http://good.example:25/", "http://good.example:0/", "http://good.example:6379/",
    "http://good.example:11211/", "http://good.example:65536/", "http://good.example:99999/", "http://good.example:-1/",
    "http://good.example:9200/", "http://good.example:81/", "http://good.example:x/",
    # Other schemes, and what is no URL
    "file:///etc/passwd", "ftp://good.example/", "gopher://good.example/", "dict://good.example:11211/",
    "unix:///run/redis.sock", "data:text/plain,x", "javascript:alert(1)", "ldap://good.example/", "ws://good.example/",
    "http+unix://x/", "//good.example/", "good.example", "http:good.example", "http:/good.example", "http://", "http:///",
    "https://", "", " ", "?", "http://good.example/" + "a" * 3_000, "http://" + "a." * 200 + "example/",
    "http://" + "a" * 64 + ".example/", "http://xn--\x7f.example/", "http://éxample.com/", "http://[::1]@good.example/",
]  # fmt: skip


class Wire:
    """Stands where the network would be; remembers which addresses were called, and under which names."""

    def __init__(self, answers: list[httpx.Response] | None = None) -> None:
        self.calls: list[tuple[str, str, str]] = []
        self._answers: Iterator[httpx.Response] = iter(answers or [])

    def transport(self) -> httpx.MockTransport:
        def handle(request: httpx.Request) -> httpx.Response:
            name = request.extensions["sni_hostname"]
            self.calls.append((request.url.host, request.headers["host"], name))
            found = next(self._answers, None)
            png = {"content-type": "image/png"}
            return found or httpx.Response(200, headers=png, stream=httpx.ByteStream(b"png"))

        return httpx.MockTransport(handle)


async def resolve(host: str, _port: int) -> list[str]:
    if host not in NAMES:
        raise OSError("no such name")
    return NAMES[host]


def safe(wire: Wire, **options: object) -> SafeHttp:
    return SafeHttp(**{"resolve": resolve, "transport": wire.transport(), **options})  # type: ignore[arg-type]


async def fetch(http: SafeHttp, url: str, **options: object) -> bytes:
    given = {"max_bytes": 1_000, "types": ("image/png",), **options}
    return (await http.fetch(url, **given)).content  # type: ignore[arg-type]


def test_there_are_enough_of_them() -> None:
    assert len(set(HOSTILE)) == len(HOSTILE) >= 120


@pytest.mark.parametrize("url", HOSTILE, ids=lambda url: ascii(url)[:60])
async def test_a_hostile_url_is_blocked_before_anything_is_sent(url: str) -> None:
    wire = Wire()
    with pytest.raises(UnsafeUrl):
        await safe(wire).post(url, b"{}", {})
    with pytest.raises(UnsafeUrl):
        await fetch(safe(wire), url)
    assert wire.calls == []


@pytest.mark.parametrize("url", HOSTILE, ids=lambda url: ascii(url)[:60])
async def test_a_redirect_to_a_hostile_url_is_blocked(url: str) -> None:
    """Only the first host was called, except where the location, read as a path of that host, is harmless."""
    wire = Wire([httpx.Response(302, headers={"location": url.encode("utf-8", "replace")})])
    with contextlib.suppress(UnsafeUrl, BadAnswer, Unreachable):
        await fetch(safe(wire), "http://good.example/x")
    assert {address for address, _, _ in wire.calls} == {PUBLIC}


@pytest.mark.parametrize("url", ["http://good.example/a?b=c", "https://good.example:8443/", "http://GOOD.example./"])
async def test_the_vetted_address_is_the_one_called_under_the_name_it_was_asked_for(url: str) -> None:
    wire = Wire()
    assert (await safe(wire).post(url, b"{}", {})).status == 200
    port = ":8443" if "8443" in url else ""
    assert wire.calls == [(PUBLIC, f"good.example{port}", "good.example")]


async def test_public_addresses_themselves_may_be_called() -> None:
    wire = Wire()
    await safe(wire).post(f"https://{PUBLIC}/", b"", {})
    await safe(wire).post(f"http://[{OTHER}]:8080/", b"", {})
    await safe(wire).post("http://six.example/", b"", {})
    assert wire.calls == [
        (PUBLIC, PUBLIC, PUBLIC),
        (OTHER, f"[{OTHER}]:8080", OTHER),
        (OTHER, "six.example", "six.example"),
    ]


async def test_a_name_that_changes_its_mind_gains_nothing() -> None:
    """DNS rebinding: the look and the connection use one answer; the next look sees the new one and refuses."""
    answers = iter([[PUBLIC], ["127.0.0.1"]])

    async def rebinding(_host: str, _port: int) -> list[str]:
        return next(answers)

    wire = Wire()
    http = safe(wire, resolve=rebinding)
    await http.post("http://rebind.example/", b"", {})
    with pytest.raises(UnsafeUrl):
        await http.post("http://rebind.example/", b"", {})
    assert [address for address, _, _ in wire.calls] == [PUBLIC]


async def test_a_post_follows_no_redirect() -> None:
    wire = Wire([httpx.Response(307, headers={"location": "http://six.example/"}, stream=httpx.ByteStream(b""))])
    assert (await safe(wire).post("http://good.example/", b"", {})).status == 307
    assert len(wire.calls) == 1


async def test_a_fetch_follows_three_redirects_each_looked_at_anew() -> None:
    hops = [httpx.Response(302, headers={"location": to}) for to in ("/b", "https://six.example/c", "//good.example/d")]
    wire = Wire(hops)
    found = await safe(wire).fetch("http://good.example/a", max_bytes=10, types={"image/*"})
    assert (found.content, found.content_type, found.url) == (b"png", "image/png", "https://good.example/d")
    assert [address for address, _, _ in wire.calls] == [PUBLIC, PUBLIC, OTHER, PUBLIC]
    endless = Wire([httpx.Response(302, headers={"location": "/again"}) for _ in range(9)])
    with pytest.raises(BadAnswer, match="3 times"):
        await fetch(safe(endless), "http://good.example/")
    assert len(endless.calls) == 4


async def test_a_name_without_an_address_may_be_tried_again() -> None:
    with pytest.raises(Unreachable):
        await safe(Wire()).post("http://nowhere.example/", b"", {})


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param(httpx.Response(404), "404", id="no success"),
        pytest.param(httpx.Response(200, headers={"content-type": "text/html"}), "type", id="another type"),
        pytest.param(httpx.Response(200), "type", id="no type"),
        pytest.param(
            httpx.Response(200, headers={"content-type": "image/png", "content-length": "1001"}),
            "1,000",
            id="announced",
        ),
        pytest.param(
            httpx.Response(200, headers={"content-type": "image/png"}, stream=httpx.ByteStream(b"x" * 1_001)),
            "1,000",
            id="larger than announced",
        ),
        pytest.param(
            httpx.Response(
                200,
                headers={"content-type": "image/png", "content-encoding": "gzip"},
                stream=httpx.ByteStream(gzip.compress(b"0" * 10_000_000)[:900]),
            ),
            "compressed",
            id="a bomb",
        ),
    ],
)
async def test_what_is_not_taken_is_refused(answer: httpx.Response, words: str) -> None:
    with pytest.raises(BadAnswer, match=words):
        await fetch(safe(Wire([answer])), "http://good.example/")


async def test_a_receiver_that_drips_is_cut_by_the_clock() -> None:
    async def never(_request: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError

    http = SafeHttp(resolve=resolve, transport=httpx.MockTransport(never))
    with pytest.raises(Unreachable, match="in time"):
        await http.post("http://good.example/", b"", {}, timeout_s=0.01)


async def test_the_next_address_is_tried_only_if_nothing_was_sent() -> None:
    tried: list[str] = []

    def handle(request: httpx.Request) -> httpx.Response:
        tried.append(request.url.host)
        if len(tried) == 1:
            raise httpx.ConnectError("refused")
        raise httpx.ReadError("gone")

    async def three(_host: str, _port: int) -> list[str]:
        return [PUBLIC, "93.184.216.35", "93.184.216.36"]

    with pytest.raises(Unreachable):
        await SafeHttp(resolve=three, transport=httpx.MockTransport(handle)).post("http://x.example/", b"", {})
    assert tried == [PUBLIC, "93.184.216.35"]


async def test_those_who_allow_their_own_network_still_get_no_other_schemes_ports_or_user_names() -> None:
    wire = Wire()
    http = safe(wire, allow_private=True)
    await http.post("http://127.0.0.1:8080/", b"", {})
    await http.post("http://loop.example/", b"", {})
    assert [address for address, _, _ in wire.calls] == ["127.0.0.1", "127.0.0.1"]
    for url in ("file:///etc/passwd", "http://127.0.0.1:6379/", "http://a@127.0.0.1/", "http://2130706433/"):
        with pytest.raises(UnsafeUrl):
            await http.post(url, b"", {})


def certified(folder: Path, name: str) -> tuple[Path, Path]:
    """A key and a certificate of that name, which signed itself."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = f"openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN={name} -addext subjectAltName=DNS:{name}"
    subprocess.run([*command.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return key, certificate


async def test_over_tls_the_certificate_must_be_of_the_name_that_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address is ours to choose, the name is not: pinning must not loosen who is at the other end."""
    skip_if("no openssl to make a certificate with" if shutil.which("openssl") is None else "")
    key, certificate = certified(tmp_path, "good.example")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    asked: list[str | None] = []
    context.sni_callback = lambda _socket, name, _context: asked.append(name)  # type: ignore[assignment]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 204 OK\r\nConnection: close\r\n\r\n")
        writer.close()

    async def here(_host: str, _port: int) -> list[str]:
        return ["127.0.0.1"]

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    monkeypatch.setattr(safe_http, "_tls", lambda: ssl.create_default_context(cafile=certificate))
    http = SafeHttp(allow_private=True, resolve=here)
    try:
        assert (await http.post(f"https://good.example:{port}/", b"", {})).status == 204
        with pytest.raises(Unreachable):
            await http.post(f"https://other.example:{port}/", b"", {})
        assert asked == ["good.example", "other.example"]
    finally:
        server.close()


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "100.63.255.255", "172.15.0.1", "2a00:1450::1", "2606::1"])
def test_public_is_public(address: str) -> None:
    assert is_public(address)


async def test_name_servers_that_are_silent_hold_up_nothing_but_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look-up cannot be stopped. In the threads that all share, those of one webhook whose domain had lapsed held up
    uploads and large bodies for as long as there were events for it."""
    answered = threading.Event()

    def silent(*_: object, **__: object) -> list[object]:
        answered.wait()
        raise OSError

    monkeypatch.setattr(socket, "getaddrinfo", silent)
    asked = [asyncio.create_task(SafeHttp().vet(f"https://lapsed{i}.example/")) for i in range(64)]
    try:
        await asyncio.sleep(0)
        async with asyncio.timeout(5):
            assert await asyncio.to_thread(int, "1") == 1
    finally:
        answered.set()
        await asyncio.gather(*asked, return_exceptions=True)
