"""The suppression list as CSV, both ways: reading `to[,reason]` with every bad row named, writing pages of it.

Pure; `suppressions` stores and fetches. What is written opens safely in a spreadsheet: a reason that would be a formula
there is made a text.
"""

import csv
import io
from collections.abc import Iterator
from typing import Any

import msgspec

from paceline.domain.errors import BadRequest
from paceline.domain.numbers import person
from paceline.gateway.schemas import RejectedRow, SuppressionItem

ROWS = 100_000
"""As many as a job may have contacts."""
STRETCH = 1_000
"""Rows between two breaths; also what one script stores."""
REASON_LIMIT = 256
ROW_LIMIT = 65_536
"""Characters of one row, many times what its columns may have. A row becomes a list before it can be judged, and 32 MB
of commas would be a list of 32 million."""
EXAMPLE = "to,reason\n+972541234567,asked by phone\n972541234568,\n"

_COLUMNS = ("to", "at", "reason", "source")
_DELIMITERS = (",", ";", "\t")
_SHOWN_LENGTH = 64
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


class Row(msgspec.Struct, frozen=True, gc=False):
    to: str
    reason: str


class Sheet:
    """One file. `stretches` reads it, a thousand rows at a time; then `rows` and `rejected` are there."""

    def __init__(self, body: bytes) -> None:
        try:
            self._text = body.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise _unreadable("the file is not UTF-8", body.count(b"\n", 0, error.start) + 1) from error
        if b"\0" in body:
            line = body.count(b"\n", 0, body.index(b"\0")) + 1
            raise _unreadable("a NUL character; send the file as UTF-8", line)
        self._row_length = 0
        self.rows: list[Row] = []
        self.rejected: list[RejectedRow] = []

    def stretches(self) -> Iterator[None]:
        """Nothing may be stored before the last one: only then is it certain that the file can be read to its end."""
        reader, columns = self._header()
        line = reader.line_num + 1
        try:
            for count, row in enumerate(reader, start=1):
                self._row_length = 0
                if row:
                    self._take(line, row, columns)
                elif count > 2 * ROWS:
                    raise _unreadable("too many empty lines", line)
                # Empty ones too: 32 MB may be lines and nothing else.
                if count % STRETCH == 0:
                    yield
                # A row in quotes may have several lines; it is named by its first.
                line = reader.line_num + 1
        except csv.Error as error:
            raise _unreadable(f"not CSV: {error}", line) from error

    def _header(self) -> tuple[Any, list[str]]:
        """The first line tells the delimiter: it is the one that makes a column `to` of it."""
        for delimiter in _DELIMITERS:
            self._row_length = 0
            reader = csv.reader(self._lines(), delimiter=delimiter, strict=True)
            try:
                names = [name.strip() for name in next(reader, [])]
            except csv.Error as error:
                raise _unreadable(f"not CSV: {error}", 1) from error
            if "to" in names:
                break
        else:
            raise _unreadable("the first row must name the columns, and one of them must be `to`", 1, field="to")
        for name in names:
            if name not in _COLUMNS or names.count(name) > 1:
                raise _unreadable("the columns are `to` and `reason`, each once", 1, field=name[:_SHOWN_LENGTH])
        return reader, names

    def _lines(self) -> Iterator[str]:
        """A row in quotes may have several."""
        text = io.StringIO(self._text, newline="")
        number = 0
        while line := text.readline(ROW_LIMIT + 1):
            number += 1
            self._row_length += len(line)
            if self._row_length > ROW_LIMIT:
                raise _unreadable(f"a row has at most {ROW_LIMIT:,} characters", number)
            yield line

    def _take(self, line: int, row: list[str], columns: list[str]) -> None:
        if len(self.rows) + len(self.rejected) == ROWS:
            raise _unreadable(f"at most {ROWS:,} rows at once", line)
        given = dict(zip(columns, row, strict=False))
        raw, reason = given.get("to", ""), given.get("reason", "")
        to = person(raw)
        if len(row) > len(columns):
            self._reject(line, raw, "TOO_MANY_COLUMNS")
        elif to is None:
            self._reject(line, raw, "INVALID_NUMBER")
        elif len(reason) > REASON_LIMIT:
            self._reject(line, raw, "FIELD_TOO_LONG")
        else:
            self.rows.append(Row(to, reason))

    def _reject(self, line: int, raw: str, code: str) -> None:
        self.rejected.append(RejectedRow(line=line, to=raw[:_SHOWN_LENGTH], code=code))


def header() -> str:
    return _lines([list(_COLUMNS)])


def lines(items: list[SuppressionItem]) -> str:
    return _lines([[item.to, str(item.at), _harmless(item.reason), _harmless(item.source)] for item in items])


def _harmless(cell: str) -> str:
    """A spreadsheet takes a cell that begins like this for a formula, whatever quotes are around it."""
    return f"'{cell}" if cell.lstrip(" ").startswith(_FORMULA) else cell


def _lines(rows: list[list[str]]) -> str:
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()


def _unreadable(message: str, line: int, *, field: str = "body") -> BadRequest:
    return BadRequest("INVALID_CSV", message, field=field, details={"line": line})
