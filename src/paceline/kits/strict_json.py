"""What a JSON decoder lets pass and we do not: a key twice in one object, and NUL characters in texts.

Of two values under one key every reader keeps another one, so a proxy or a log may have seen another text than the one
we would send. A NUL ends a text for whatever is written in C behind us. Asked after the body was decoded, so it is
JSON already and of a shape with limits.
"""

import asyncio
import json
import re
from functools import cache
from typing import Any, NamedTuple

import msgspec

from paceline.kits.problem import Problem

AT_ONCE_BYTES = 65_536
"""Larger ones are looked through in a thread: 10 MB take a tenth of a second."""

# An escape that is not itself escaped.
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


class Part(NamedTuple):
    """A value inside of a body, and how many fields it has after decoding: those of all its objects, each name once."""

    written: bytes
    fields: int

    def has_each_once(self) -> bool:
        """Certain if true. Each field has a colon, so with as many colons as fields none can have been dropped. A colon
        in a text leaves it open."""
        return self.written.count(b":") == self.fields


async def check(body: bytes, *, any_text: bool = False, part: Part | None = None) -> None:
    """`part` is the large part of a body, for whoever has counted its fields: then it is not read again."""
    if len(body) <= AT_ONCE_BYTES:
        look(body, any_text=any_text)
    else:
        await asyncio.to_thread(look, body, any_text=any_text, part=part)


def is_plain(body: bytes, kind: Any) -> bool:
    """Certain if true, without reading it again: it was decoded as this kind and has no more colons than that must have
    fields. A colon in a text leaves it open, and so does a field that may be left out."""
    return body.count(b":") == _required(kind) and b"\\u0000" not in body


@cache
def _required(kind: Any) -> int:
    fields = msgspec.structs.fields(kind) if isinstance(kind, type) and issubclass(kind, msgspec.Struct) else ()
    return sum(field.required for field in fields)


def look(body: bytes, *, any_text: bool = False, part: Part | None = None) -> None:
    has_nul = not any_text and b"\\u0000" in body and _NUL.search(body) is not None
    if part is not None and not has_nul and part.has_each_once():
        body = body.replace(part.written, b"0", 1)
    try:
        # It was decoded before, so it is UTF-8.
        (_read_without_nul if has_nul else _read_once)(body.decode("utf-8", "surrogatepass"))
    except RecursionError as error:
        raise Problem(400, "INVALID_JSON", "the JSON is nested too deeply") from error
    except ValueError as error:
        # In a field that the decoder skipped: a number of thousands of digits.
        raise Problem(400, "INVALID_JSON", "the JSON has a number that is out of range") from error
    if has_nul:
        raise Problem(400, "INVALID_JSON", "a text has a NUL character")


def _once(pairs: list[tuple[str, Any]]) -> None:
    """Nothing is kept: what counts was decoded before."""
    if len(pairs) > 1 and len({name for name, _ in pairs}) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise Problem(400, "INVALID_JSON", "a field stands twice in one object", field=name[:64])
            seen.add(name)


def _without_nul(pairs: list[tuple[str, Any]]) -> None:
    for name, value in pairs:
        texts = value if isinstance(value, list) else [value]
        if any(isinstance(text, str) and "\0" in text for text in texts):
            raise Problem(400, "INVALID_JSON", "a text has a NUL character", field=name[:64])
    _once(pairs)


_read_once = json.JSONDecoder(object_pairs_hook=_once).decode
_read_without_nul = json.JSONDecoder(object_pairs_hook=_without_nul).decode
