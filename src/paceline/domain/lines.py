"""A file that somebody uploaded, as numbered lines of text. Blank lines and # comments are nobody's mistake."""

from collections.abc import Iterator
from dataclasses import dataclass

_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class NotText:
    """The file is no text in UTF-8."""

    line: int
    reason: str


def read_text(data: bytes) -> str | NotText:
    """The text without a byte order mark, with one kind of line end; or the first line that is no text."""
    if data.startswith(_UTF16):
        return NotText(1, "is UTF-16; save it as UTF-8")
    nul = data.find(b"\0")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        bad = error.start if nul < 0 else min(nul, error.start)
        return NotText(_line_at(data, bad), "is not text in UTF-8")
    if nul >= 0:
        return NotText(_line_at(data, nul), "has a NUL byte")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def numbered(text: str) -> Iterator[tuple[int, str]]:
    """Lines that say something, with their numbers from 1."""
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip(" \t")
        if stripped and not stripped.startswith("#"):
            yield number, stripped


def _line_at(data: bytes, position: int) -> int:
    # A lone CR ends a line too, as in `read_text`.
    before = data[:position].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return before.count(b"\n") + 1
