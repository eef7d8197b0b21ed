"""What hostile and broken callers send, and which routes take a body: read off the services' own documents.

Neighbours: `raw.py` sends it, `test_hostile.py` judges the answers.
"""

import gzip
import json
import re
import urllib.request
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from paceline.kits.secrets import derive

from .platform import API_KEY, WEBHOOK_SECRET, Platform
from .raw import Answer, chunked, exchange, head, pieces_of

MEGABYTE = 1_048_576
SESSION = "sim-1"
JSON, CSV, FORM = "application/json", "text/csv", "multipart/form-data"
BOUNDARY = "b"
FORM_TYPE = f"{FORM}; boundary={BOUNDARY}"
BIG = 40 * MEGABYTE
"""Over every limit there is."""
LARGEST = 32 * MEGABYTE
MANY = 100_000
THERE_IS_NONE = ("INVALID_ID", "UNKNOWN_LETTER", "UNKNOWN_WEBHOOK", "UNKNOWN_PHONE", "UNKNOWN_PROXY", "UNKNOWN_SESSION")
"""Where a path names something, some routes look for that first; there is none."""


@dataclass(frozen=True)
class Route:
    url: str
    method: str
    path: str
    takes: frozenset[str]

    @property
    def stores_files(self) -> bool:
        """Any bytes are a good file of some type."""
        return "application/pdf" in self.takes

    @property
    def target(self) -> str:
        return re.sub(r"\{[^}]*\}", lambda part: SESSION if "session" in part[0] else "1", self.path)

    def send(self, body: Iterable[bytes], headers: dict[str, str], query: str = "") -> Answer:
        keys = {"X-API-KEY": API_KEY, "X-Webhook-Secret": derive(WEBHOOK_SECRET, SESSION)}
        return exchange(self.url, chain([head(self.method, self.target + query, {**keys, **headers})], body))

    def post(self, body: bytes, type_: str, headers: dict[str, str] | None = None, query: str = "") -> Answer:
        announced = {"Content-Type": type_, "Content-Length": str(len(body)), **(headers or {})}
        return self.send(pieces_of(body), announced, query)

    def pour(self, piece: bytes, count: int) -> Answer:
        """So many pieces with no length announced."""
        headers = {"Content-Type": self.own_type, "Transfer-Encoding": "chunked"}
        return self.send(chunked(piece for _ in range(count)), headers)

    @property
    def own_type(self) -> str:
        return JSON if JSON in self.takes else FORM_TYPE if FORM in self.takes else min(self.takes)


def routes(platform: Platform) -> list[Route]:
    """Every one that takes a body, of all three services."""
    found = []
    for url in (platform.gateway, platform.orchestrator, platform.dispatcher):
        with urllib.request.urlopen(f"{url}/openapi.json", timeout=30) as answer:
            document = json.load(answer)
        for path, item in document["paths"].items():
            for method, operation in item.items():
                if "requestBody" in operation:
                    found.append(Route(url, method.upper(), path, frozenset(operation["requestBody"]["content"])))
    return found


@dataclass(frozen=True)
class Attack:
    name: str
    body: bytes
    codes: tuple[str, ...]
    type: str = JSON
    encoding: str = ""

    def strike(self, route: Route, query: str = "") -> Answer:
        headers = {"Content-Encoding": self.encoding} if self.encoding else {}
        return route.post(self.body, self.type, headers, query)


BAD_JSON = ("INVALID_JSON",)
BAD = ("INVALID_JSON", "INVALID_REQUEST", "MISSING_FIELD", "INVALID_RPM")
NO_TYPE = ("UNSUPPORTED_MEDIA_TYPE",)
PACKED = ("UNSUPPORTED_ENCODING",)

JSON_ATTACKS = [
    Attack("cut off", b'{"to":"9725412', BAD),
    Attack("cut off in an escape", b'{"to":"\\u12', BAD),
    Attack("UTF-16", '{"to":"a"}'.encode("utf-16"), BAD_JSON),
    Attack("UTF-16 without a mark", '{"to":"a"}'.encode("utf-16-le"), BAD_JSON),
    Attack("UTF-32", '{"to":"a"}'.encode("utf-32"), BAD_JSON),
    Attack("Latin-1", '{"to":"é"}'.encode("latin-1"), BAD),
    Attack("invalid UTF-8", b'{"\xc0\x80":"\xf5\xff"}', BAD),
    Attack("another charset", b"{}", NO_TYPE, type=f"{JSON}; charset=utf-16"),
    Attack("a charset nobody knows", b"{}", NO_TYPE, type=f'{JSON}; charset="klingon"'),
    Attack("arrays without end", b"[" * MANY, BAD),
    Attack("arrays in arrays", b'{"a":' + b"[" * MANY + b"]" * MANY + b"}", BAD),
    Attack("objects in objects", b'{"a":' * MANY + b"1" + b"}" * MANY, BAD),
    Attack("a number beyond floats", b'{"to":1e400,"epoch":1e400}', BAD),
    Attack("a number of 100,000 digits", b'{"to":' + b"9" * MANY + b"}", BAD),
    Attack("NaN", b'{"to":NaN,"epoch":Infinity}', BAD),
    Attack("a NUL byte", b'{"to":"972\x00541"}', BAD),
    Attack("nothing but NUL", b"\x00" * 1_000, BAD_JSON),
    Attack("half a surrogate", b'{"to":"\\ud800","\\udfff":1}', BAD),
    Attack("80,000 keys", b"{" + b",".join(b'"k%d":1' % i for i in range(80_000)) + b"}", BAD),
    Attack("a long text", b'{"to":"' + b"9" * 900_000 + b'"}', BAD),
    Attack("a long key", b'{"' + b"k" * 900_000 + b'":1}', BAD),
    Attack("an array", b"[]", BAD),
    Attack("a string", b'"hello"', BAD),
    Attack("two values", b"{}{}", BAD),
    Attack("a form as JSON", b"to=972541234567&text=hello", BAD_JSON),
    Attack("gzip", gzip.compress(b"{}"), PACKED, encoding="gzip"),
    Attack("a gzip bomb", gzip.compress(bytes(50 * MEGABYTE), 9), PACKED, encoding="gzip"),
    Attack("gzip twice", gzip.compress(gzip.compress(b"{}")), PACKED, encoding="gzip, gzip"),
    Attack("deflate", zlib.compress(b"{}"), PACKED, encoding="deflate"),
    Attack("br", b"\x0b\x00\x80{}\x03", PACKED, encoding="br"),
    Attack("gzip that is not named", gzip.compress(b"{}"), BAD_JSON),
    Attack("no type", b"{}", NO_TYPE, type=""),
    Attack("a type that is none", b"{}", NO_TYPE, type=";;;=,\xff"),
    Attack("HTML", b"<html>", NO_TYPE, type="text/html"),
    Attack("XML", b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", NO_TYPE, type="application/xml"),
]


def part(name: str, content: bytes, file: str = "", more: str = "") -> bytes:
    named = f'name="{name}"' + (f'; filename="{file}"' if file else "")
    head_ = f"--{BOUNDARY}\r\nContent-Disposition: form-data; {named}\r\n{more}\r\n".encode()
    return head_ + content + b"\r\n"


KLINGON = "Content-Type: text/plain; charset=klingon"
END = f"--{BOUNDARY}--\r\n".encode()
BAD_FORM = ("INVALID_REQUEST", "INVALID_JSON", "MEDIA_TYPE")
FORM_ATTACKS = [
    Attack("a form without an end", part("contacts", b"972541234567"), BAD_FORM, FORM_TYPE),
    Attack("a form cut off in a header", b"--b\r\nContent-Disposition: form-da", BAD_FORM, FORM_TYPE),
    Attack("a form without a boundary", part("a", b"b") + END, BAD_FORM, FORM),
    Attack("another boundary", part("a", b"b") + END, BAD_FORM, f"{FORM}; boundary=other"),
    Attack("an endless boundary", b"", BAD_FORM, f"{FORM}; boundary={'b' * 5_000}"),
    Attack("no part at all", b"", BAD_FORM, FORM_TYPE),
    Attack("10,000 parts", part("contacts", b"972541234567") * 10_000 + END, BAD_FORM, FORM_TYPE),
    Attack("10,000 files", part("file", b"x", file="a.png") * 10_000 + END, BAD_FORM, FORM_TYPE),
    Attack("a huge field name", part("n" * 500_000, b"x") + END, BAD_FORM, FORM_TYPE),
    Attack("a huge file name", part("file", b"x", file="f" * 500_000) + END, BAD_FORM, FORM_TYPE),
    Attack("a part with 1,000 headers", part("a", b"b", more="X-A: b\r\n" * 1_000) + END, BAD_FORM, FORM_TYPE),
    Attack("a part in no charset", part("a", b"b", more=f"{KLINGON}\r\n") + END, BAD_FORM, FORM_TYPE),
    Attack("a text with NUL", part("contacts", b"97254\x00") + part("message", b"hi\x00") + END, BAD_FORM, FORM_TYPE),
    Attack("a text of 10 MB", part("contacts", b"9" * 10 * MEGABYTE) + END, (*BAD_FORM, "BODY_TOO_LARGE"), FORM_TYPE),
    Attack("a form packed with gzip", gzip.compress(part("a", b"b") + END), PACKED, FORM_TYPE, "gzip"),
]  # fmt: skip


def file_of(content: bytes) -> bytes:
    return part("file", content, file="list.txt") + END


BAD_FILE = ("INVALID_FILE",)
FILE_ATTACKS = [
    Attack("a file of nothing", file_of(b""), BAD_FILE, FORM_TYPE),
    Attack("a file of line ends", file_of(b"\n" * 5 * MEGABYTE), BAD_FILE, FORM_TYPE),
    Attack("a file of carriage returns", file_of(b"\r" * 5 * MEGABYTE), BAD_FILE, FORM_TYPE),
    Attack("a file of comments", file_of(b"#\n" * 2 * MEGABYTE), BAD_FILE, FORM_TYPE),
    Attack("a file of NUL", file_of(bytes(5 * MEGABYTE)), BAD_FILE, FORM_TYPE),
    Attack("a file in UTF-16", file_of("http://a:b@c.example:1\n".encode("utf-16")), BAD_FILE, FORM_TYPE),
    Attack("a file in no UTF-8 at its end", file_of(b"#\n" * MEGABYTE + b"\xff"), BAD_FILE, FORM_TYPE),
    Attack("a picture as a list", file_of(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9), BAD_FILE, FORM_TYPE),
    Attack("gzip as a list", file_of(gzip.compress(b"http://a:b@c.example:1\n")), BAD_FILE, FORM_TYPE),
    Attack("two million lines", file_of(b"a\n" * 2_000_000), ("TOO_MANY_LINES",), FORM_TYPE),
    Attack("a file over the limit", file_of(b"a" * (5 * MEGABYTE + 1)), ("BODY_TOO_LARGE",), FORM_TYPE),
    Attack("two files", part("file", b"a", file="a") + file_of(b"b"), ("INVALID_REQUEST",), FORM_TYPE),
    Attack("a text instead of a file", part("file", b"http://a:b@c.example:1") + END, ("INVALID_REQUEST",), FORM_TYPE),
]  # fmt: skip
NONSENSE = {
    "100,000 lines": b"{\n" * 100_000,
    "one line": b"{" + b"x" * (5 * MEGABYTE - 1),
    "nested without end": (b'{"a":' + b"[" * 4_000 + b"\n") * 1_200,
    "nested deeply": (b'{"a":' + b"[" * 2_000 + b"]" * 2_000 + b',"tags":5}\n') * 1_200,
    "credentials without end": (b"http://" + b"%41" * 1_500 + b":@\x7f:1\n") * 1_100,
}
"""Files of text in which no line is a proxy or a profile. They are read to the end, and nothing of them is stored."""

BAD_CSV = ("INVALID_CSV", "INVALID_REQUEST")
CSV_ATTACKS = [
    Attack("a line of 10 MB", b"to\n" + b"9" * 10 * MEGABYTE, BAD_CSV, CSV),
    Attack("a header of 10 MB", b"to" + b"x" * 10 * MEGABYTE, BAD_CSV, CSV),
    Attack("a row of ten million cells", b"to\n" + b"," * 10 * MEGABYTE, BAD_CSV, CSV),
    Attack("a header of ten million cells", b"to" + b",ab" * 3_000_000, BAD_CSV, CSV),
    Attack("a row over a million lines", b"to\n" + b'"\n",' * 2_000_000, BAD_CSV, CSV),
    Attack("a quote without an end", b'to,reason\n972541234567,"and so on\n' + b"x\n" * 100_000, BAD_CSV, CSV),
    Attack("NUL in a cell", b"to\n97254\x001234567\n", BAD_CSV, CSV),
    Attack("UTF-16 as CSV", "to\n972541234567\n".encode("utf-16"), BAD_CSV, CSV),
    Attack("UTF-16 as CSV without a mark", "to\n972541234567\n".encode("utf-16-le"), BAD_CSV, CSV),
    Attack("Latin-1 as CSV", "to,reason\n972541234567,é\n".encode("latin-1"), BAD_CSV, CSV),
    Attack("a charset of CSV", b"to\n972541234567\n", BAD_CSV, f"{CSV}; charset=utf-16"),
    Attack("nothing", b"", BAD_CSV, CSV),
    Attack("lines and nothing else", b"to\n" + b"\n" * MEGABYTE, BAD_CSV, CSV),
    Attack("CSV packed with gzip", gzip.compress(b"to\n972541234567\n"), PACKED, CSV, "gzip"),
]

# Made once: what is measured is what the services do with them.
MILLION_KEYS = b",".join(b'"%d":""' % number for number in range(1_000_000))
TO = b'"contacts":["972541234567"]'
TOO_MUCH = ("METADATA_TOO_LARGE",)
JOB_ATTACKS = [
    Attack("a text twice", b"{" + TO + b',"text":"hello","text":"buy"}', BAD_JSON),
    Attack("a key twice inside", b'{"contacts":[{"to":"972541234567","to":"972541234568"}],"text":"x"}', BAD_JSON),
    Attack("a key twice, written in two ways", b"{" + TO + b',"text":"a","t\\u0065xt":"b"}', BAD_JSON),
    Attack("an escaped NUL", b"{" + TO + b',"text":"a\\u0000b"}', BAD_JSON),
    Attack("a NUL in metadata", b"{" + TO + b',"text":"x","metadata":{"a":["\\u0000"]}}', BAD_JSON),
    Attack("metadata beyond floats", b"{" + TO + b',"text":"x","metadata":{"a":1e400}}', BAD),
    Attack("metadata of 100,000 digits", b"{" + TO + b',"text":"x","metadata":{"a":' + b"9" * MANY + b"}}", BAD),
    Attack("deep metadata", b"{" + TO + b',"text":"x","metadata":{"a":' + b"[" * MANY + b"]" * MANY + b"}}", BAD),
]  # fmt: skip
HEAVY_JOB_ATTACKS = [
    Attack("a million keys of metadata", b"{" + TO + b',"text":"x","metadata":{' + MILLION_KEYS + b"}}", TOO_MUCH),
    Attack("metadata twice", b"{" + TO + b',"metadata":{' + MILLION_KEYS + b'},"metadata":{},"text":"x"}', BAD_JSON),
    Attack("a million contacts", b'{"text":"x","contacts":[' + b'"1",' * 999_999 + b'"1"]}', BAD),
    Attack("a million variables", b'{"text":"x","contacts":[{"to":"1","vars":{' + MILLION_KEYS + b"}}]}", BAD),
    Attack("32 MB cut off", b'{"text":"x","contacts":["' + b"9" * (LARGEST - 100), BAD_JSON),
]  # fmt: skip
