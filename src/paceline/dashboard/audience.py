"""Whom a message is for, as somebody pasted or dropped it: numbers one below the other, or a table with columns.

What a contact must be, the gateway judges; here a list only becomes something it can read, and something to look at
before sending. No I/O. Neighbour: `pages.compose`.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from paceline.domain.columns import ACCEPTED, NoNumberColumn, number_column
from paceline.domain.text import render, variables

SHOWN = 20
"""Recipients kept to look at; the first ones, in order."""
OWN_COLUMNS = ("to", "clientRef", "timezone")
"""What the gateway reads itself; every other column is a variable."""

_SEPARATORS = re.compile(r"[\n,;\t]")
_NUMBER = re.compile(r"\+?[\d\s().\-–/]{5,}(@[a-z.]+)?", re.ASCII)
_NOT_IN_A_NAME = re.compile(r"[^\w.-]+")
_BEGINS_A_NAME = re.compile(r"[^\W\d]")


class Unreadable(ValueError):
    """Why a list cannot be read, for whoever gave it."""


class Recipient(msgspec.Struct, frozen=True):
    to: str
    vars: dict[str, str] = {}


class Audience(msgspec.Struct, frozen=True, kw_only=True):
    count: int
    shown: tuple[Recipient, ...]
    columns: tuple[str, ...] = ()
    """What the text may name in {{…}}."""
    number_column: str = ""
    """As it was called in the file, if that was not `to`."""
    numbers: tuple[str, ...] = ()
    """One of the two is what the gateway gets: numbers, or CSV."""
    csv: str = ""


class Filled(msgspec.Struct, frozen=True):
    """The text as one recipient would get it; what has no value stays as it was written."""

    text: str
    missing: tuple[str, ...] = ()


def read_text(text: str) -> Audience:
    """What was pasted. A first line that names columns makes a table of it; numbers may stand in one line, with marks
    between them."""
    return _read(text, is_file=False)


def _read(text: str, *, is_file: bool) -> Audience:
    lines = [line for line in text.removeprefix("\ufeff").splitlines() if line.strip()]
    if not lines:
        raise Unreadable("there is nothing in it")
    cells = [cell.strip() for cell in _SEPARATORS.split(lines[0])]
    is_header = "to" in cells or '"to"' in cells
    if not is_header and any(map(_NUMBER.fullmatch, cells)):
        return _plain(lines, is_file=is_file)
    return _table(text.removeprefix("\ufeff"), max(",;\t", key=lines[0].count))


def read_file(data: bytes) -> Audience:
    try:
        return _read(data.decode("utf-8-sig"), is_file=True)
    except UnicodeDecodeError as error:
        raise Unreadable("it is not UTF-8; from a spreadsheet, save it as “CSV UTF-8”") from error


def fill(text: str, values: Mapping[str, str]) -> Filled:
    missing = tuple(sorted(name for name in variables(text) if not values.get(name)))
    shown = {**values, **{name: f"{{{{{name}}}}}" for name in missing}}
    return Filled(render(text, shown), missing)


def _plain(lines: list[str], *, is_file: bool) -> Audience:
    """Several cells in a line are columns that nobody named, unless one line of numbers was pasted."""
    rows = [[part.strip() for part in _SEPARATORS.split(line) if part.strip()] for line in lines]
    if max(map(len, rows)) > 1 and (is_file or len(rows) > 1 or not all(map(_NUMBER.fullmatch, rows[0]))):
        raise Unreadable(f"the first row does not name the columns; put names above it, the numbers' {ACCEPTED}")
    numbers = tuple(part for row in rows for part in row)
    return Audience(count=len(numbers), shown=tuple(Recipient(to) for to in numbers[:SHOWN]), numbers=numbers)


def _table(text: str, delimiter: str) -> Audience:
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True) if row]
    except csv.Error as error:
        raise Unreadable(f"it cannot be read as CSV: {error}") from error
    named, rows = [name.strip() for name in rows[0]], rows[1:]
    if not rows:
        raise Unreadable("there is no row below the first, which names the columns")
    try:
        place = number_column(named)
    except NoNumberColumn as error:
        raise Unreadable(str(error)) from error
    names = list(_names(named, place))
    columns = tuple(name for name in names if name and name not in OWN_COLUMNS)
    shown = tuple(_recipient(names, row, columns) for row in rows[:SHOWN])
    # As it came, if the gateway can read that: then its words about a row are about a row of this file.
    as_it_is = names == named and delimiter != "\t"
    return Audience(
        count=len(rows),
        shown=shown,
        columns=columns,
        number_column=named[place] if named[place] != "to" else "",
        csv=text if as_it_is else _written([names, *rows]),
    )


def _names(named: list[str], place: int) -> Iterator[str]:
    """As the text can name them: “First name” becomes First_name."""
    for index, name in enumerate(named):
        if index == place:
            yield "to"
        elif name in OWN_COLUMNS[1:]:
            yield name
        else:
            plain = _NOT_IN_A_NAME.sub("_", name).strip("_")[:64]
            yield f"{plain}_2" if plain == "to" else plain if _BEGINS_A_NAME.match(plain) else ""


def _recipient(names: list[str], row: list[str], columns: tuple[str, ...]) -> Recipient:
    cells = dict(zip(names, row, strict=False))
    return Recipient(cells.get("to", "").strip(), {name: cells[name] for name in columns if cells.get(name)})


def _written(rows: Iterable[list[str]]) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()
