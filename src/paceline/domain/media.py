"""Media as the platform knows it: what may be sent in which mode, what its bytes must begin with, and its name.

A `mediaRef` is `<sha256 of the bytes>-<kind>`: the same file is the same ref, whoever uploads it how often, and who
holds a ref can check what they were given. It is all that ever becomes part of a path. Pure; the files are in
`kits.media_store`.
"""

import re
import unicodedata
from typing import Literal, NamedTuple, get_args

import msgspec

Mode = Literal["message", "image", "document"]
MODES: tuple[Mode, ...] = get_args(Mode)

NAME_LIMIT = 128
"""Characters of a file name as a recipient sees it; longer ones are cut before their ending."""
_ENDING_LIMIT = 16


class Kind(NamedTuple):
    """One kind of file: the end of a ref, the type it is sent as, the mode it goes in, how its bytes are known."""

    name: str
    type: str
    mode: Mode
    looks: Literal["jpeg", "png", "webp", "pdf", "zip", "ole", "text"]


_OPEN_XML = "application/vnd.openxmlformats-officedocument"
_OPEN_DOCUMENT = "application/vnd.oasis.opendocument"

KINDS: tuple[Kind, ...] = (
    Kind("jpg", "image/jpeg", "image", "jpeg"),
    Kind("png", "image/png", "image", "png"),
    Kind("webp", "image/webp", "image", "webp"),
    Kind("pdf", "application/pdf", "document", "pdf"),
    Kind("docx", f"{_OPEN_XML}.wordprocessingml.document", "document", "zip"),
    Kind("xlsx", f"{_OPEN_XML}.spreadsheetml.sheet", "document", "zip"),
    Kind("pptx", f"{_OPEN_XML}.presentationml.presentation", "document", "zip"),
    Kind("odt", f"{_OPEN_DOCUMENT}.text", "document", "zip"),
    Kind("ods", f"{_OPEN_DOCUMENT}.spreadsheet", "document", "zip"),
    Kind("odp", f"{_OPEN_DOCUMENT}.presentation", "document", "zip"),
    Kind("doc", "application/msword", "document", "ole"),
    Kind("xls", "application/vnd.ms-excel", "document", "ole"),
    Kind("ppt", "application/vnd.ms-powerpoint", "document", "ole"),
    Kind("zip", "application/zip", "document", "zip"),
    Kind("csv", "text/csv", "document", "text"),
    Kind("txt", "text/plain", "document", "text"),
)
_BY_NAME = {kind.name: kind for kind in KINDS} | {"jpeg": KINDS[0]}
_BY_TYPE = {kind.type: kind for kind in KINDS} | {
    # What browsers and servers say for the same.
    "image/jpg": _BY_NAME["jpg"],
    "application/x-pdf": _BY_NAME["pdf"],
    "application/x-zip-compressed": _BY_NAME["zip"],
    "application/csv": _BY_NAME["csv"],
}
_SAYS_NOTHING = frozenset({"application/octet-stream", "binary/octet-stream"})
TYPES = tuple(kind.type for kind in KINDS)

_REF = re.compile(rf"([0-9a-f]{{64}})-({'|'.join(kind.name for kind in KINDS)})", re.ASCII)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# All but tab, line feed, form feed and carriage return: no text in any 8-bit code page has the others.
_CONTROLS = bytes(set(range(32)) - {9, 10, 12, 13})
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
LOOKED_AT = 16
"""Bytes from the start that tell every kind but text."""


class Media(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A stored file as a job refers to it."""

    ref: str
    type: str
    size: int
    name: str | None = None

    @property
    def sha256(self) -> str:
        return sha256_of(self.ref)


def new_ref(sha256: str, kind: Kind) -> str:
    return f"{sha256}-{kind.name}"


def is_ref(text: str) -> bool:
    return _REF.fullmatch(text) is not None


def sha256_of(ref: str) -> str:
    return ref.partition("-")[0]


def mode_of(type_: str) -> Mode | None:
    """The mode that files of this type go in."""
    kind = _BY_TYPE.get(type_)
    return kind.mode if kind else None


def fits(type_: str, mode: Mode) -> bool:
    """An image may also go as a document, as people do to keep its quality; nothing but an image goes as one."""
    found = mode_of(type_)
    return found is not None and mode in ("document", found)


def types_said(mode: Mode) -> frozenset[str]:
    """Every Content-Type under which something that fits may come."""
    return frozenset(said for said, kind in _BY_TYPE.items() if fits(kind.type, mode)) | _SAYS_NOTHING


def declared_kind(content_type: str, name: str | None) -> Kind | None:
    """What a file claims to be: by its Content-Type, or by its name's ending if the type says nothing."""
    type_ = content_type.partition(";")[0].strip().lower()
    if type_ and type_ not in _SAYS_NOTHING:
        return _BY_TYPE.get(type_)
    return _BY_NAME.get((name or "").rpartition(".")[2].lower())


def looks_like(kind: Kind, head: bytes) -> bool:
    """Whether bytes that begin so can be of this kind. Of a text it tells only that it is nothing else."""
    return _family(head) == kind.looks


def may_be_text(chunk: bytes, *, head: bytes) -> bool:
    """Whether a stretch of a file can be text: one of the 8-bit code pages, UTF-8, or UTF-16 with its mark."""
    return head.startswith(_UTF16_MARKS) or len(chunk.translate(None, _CONTROLS)) == len(chunk)


def _family(head: bytes) -> str:
    if head.startswith(b"\xff\xd8\xff"):
        return "jpeg"
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "png"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "webp"
    if head.startswith(b"%PDF-"):
        return "pdf"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    return "ole" if head.startswith(_OLE) else "text"


def shown_name(name: str | None) -> str | None:
    """A file name as a recipient may be shown it: the last part of any path, with nothing in it that acts.

    Format characters go too: one that turns the direction of writing makes `gpj.exe` read as `exe.jpg`.
    """
    last = re.split(r"[/\\]", unicodedata.normalize("NFC", name or ""))[-1]
    kept = "".join(char for char in last if unicodedata.category(char)[0] != "C" and char not in '<>:"|?*')
    kept = " ".join(kept.split()).lstrip(".").strip()
    stem, dot, ending = kept.rpartition(".")
    if len(kept) > NAME_LIMIT and dot and len(ending) <= _ENDING_LIMIT:
        return f"{stem[: NAME_LIMIT - len(ending) - 1]}.{ending}"
    return kept[:NAME_LIMIT] or None
