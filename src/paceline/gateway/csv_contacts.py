"""A job whose contacts come as CSV: rows become contacts, and the job's other fields stand in the query.

The body is decoded and read row by row; what is kept is the body itself and the contacts, never the whole file as
text. Neighbours: `routes_common.read_job` chooses between JSON and this, `sifting` judges the contacts.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from typing import Any

import msgspec

from paceline.domain.columns import NoNumberColumn, number_column
from paceline.domain.errors import BadRequest
from paceline.domain.jobs import MAX_CONTACTS
from paceline.domain.text import TEXT_LIMIT
from paceline.gateway.schemas import BadRow, ContactIn, JobRequest
from paceline.kits import strict_json
from paceline.kits.web import decode

STRETCH = 1_000
"""Rows between two breaths, empty ones too: 32 MB may be lines and nothing else."""
ROW_LIMIT = 2**20
"""Characters of one row, however many lines it has: 64 variables of the longest kind in quotes have room. A row becomes
a list before it can be judged, and 32 MB of commas would be a list of 32 million."""
VARIABLES = 64
SHORT = 256
"""Both as in a JSON body."""
NAME_LIMIT = 64
"""Characters of a variable's name in a text (`domain.text`)."""
EXAMPLE = "to,name,clientRef\n+972541234567,Ada,crm-1\n972541234568,Grace,crm-2\n"

_DELIMITERS = (",", ";")
_FIELDS = frozenset(JobRequest.__struct_encode_fields__) - {"contacts"}
_INTEGERS = frozenset({"priority", "spreadMinutes", "validitySeconds", "sendAt"})
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_INTEGER = re.compile(r"-?\d{1,18}", re.ASCII)


def options(query: Iterable[tuple[str, str]]) -> JobRequest:
    """The job's fields but its contacts, under the same rules as in a body; whatever is wrong is named."""
    fields: dict[str, Any] = {}
    for name, text in query:
        if name not in _FIELDS:
            raise BadRequest("INVALID_REQUEST", "there is no such field of a job", field=name)
        if name in fields:
            raise BadRequest("INVALID_REQUEST", "given twice", field=name)
        fields[name] = _value(name, text)
    # One contact stands in for all: they are read afterwards.
    written = msgspec.json.encode({**fields, "contacts": [""]})
    strict_json.look(written)
    return decode(written, JobRequest)


def _value(name: str, text: str) -> Any:
    """As it would stand in JSON. What cannot be read stays a text, and is refused as one."""
    if name in _INTEGERS and _INTEGER.fullmatch(text):
        return int(text)
    if name == "strict":
        return _BOOLEANS.get(text.lower(), text)
    if name == "tags":
        return [tag.strip() for tag in text.split(",")]
    if name == "metadata":
        found = decode(text.encode(), dict[str, Any], inside="metadata")
        strict_json.look(text.encode())
        return found
    return text


class Sheet:
    """One CSV file. `stretches` reads it; then `contacts` are there. `used` are the variables of the job's text."""

    def __init__(self, body: bytes, used: Set[str]) -> None:
        self._body = body
        self._used = used
        self._text = io.TextIOWrapper(io.BytesIO(body), encoding="utf-8-sig", newline="")
        self._line = 1
        self._row_length = 0
        self.contacts: list[str | ContactIn] = []

    def stretches(self) -> Iterator[None]:
        """Reads all rows, and pauses after each thousand. A file that cannot be read is refused with its line."""
        try:
            yield from self._read()
        except UnicodeDecodeError as error:
            raise self._not_utf8() from error
        except csv.Error as error:
            field = f"contacts[{len(self.contacts)}]"
            raise _unreadable(f"not CSV: {error}", field=field, line=self._line) from error

    def _read(self) -> Iterator[None]:
        delimiter, names = self._header()
        columns = _Columns(names, self._used)
        for count, row in enumerate(csv.reader(self._lines(), delimiter=delimiter, strict=True), start=1):
            self._row_length = 0
            if count % STRETCH == 0:
                yield
            if not row:
                if count > 2 * MAX_CONTACTS:
                    raise _unreadable("too many empty lines", field="contacts", line=self._line)
                continue
            if len(self.contacts) == MAX_CONTACTS:
                message = f"at most {MAX_CONTACTS:,} contacts in a job"
                raise BadRequest("INVALID_REQUEST", message, field="contacts", details={"line": self._line})
            self.contacts.append(columns.contact(row))
        if not self.contacts:
            raise BadRequest("INVALID_REQUEST", "there is no row below the header", field="contacts")

    def _lines(self) -> Iterator[str]:
        """Below the header. A row in quotes may have several."""
        while line := self._text.readline(ROW_LIMIT + 1):
            self._line += 1
            self._row_length += len(line)
            if self._row_length > ROW_LIMIT:
                raise self._too_long()
            yield line

    def _header(self) -> tuple[str, list[str]]:
        """The first line tells the delimiter: it is the one that makes a column of numbers of it."""
        if b"\0" in self._body:
            line_number = self._body.count(b"\n", 0, self._body.index(b"\0")) + 1
            raise _unreadable("a NUL character; send the file as UTF-8", field="contacts", line=line_number)
        line = self._text.readline(ROW_LIMIT + 1)
        if not line:
            raise _unreadable("the file is empty", field="contacts", line=1)
        if len(line) > ROW_LIMIT:
            raise self._too_long()
        why = ""
        for delimiter in _DELIMITERS:
            names = [name.strip() for name in next(csv.reader([line], delimiter=delimiter), [])]
            try:
                names[number_column(names)] = "to"
            except NoNumberColumn as error:
                why = why or str(error)
            else:
                return delimiter, names
        raise _unreadable(why, field="to", line=1)

    def _too_long(self) -> BadRequest:
        message = f"a row has at most {ROW_LIMIT:,} characters"
        return _unreadable(message, field=f"contacts[{len(self.contacts)}]", line=self._line)

    def _not_utf8(self) -> BadRequest:
        # Decoding runs ahead of the rows by some kilobytes; where exactly it went wrong is looked up only now.
        try:
            self._body.decode()
        except UnicodeDecodeError as error:
            self._line = self._body.count(b"\n", 0, error.start) + 1
        return _unreadable("the file is not UTF-8", field="contacts", line=self._line)


class _Columns:
    """What each column of a file means."""

    def __init__(self, names: list[str], used: Set[str]) -> None:
        # A column without a name is what a spreadsheet leaves behind: nothing can refer to it, nor to a longer name.
        named = Counter(name for name in names if 0 < len(name) <= NAME_LIMIT)
        for name, count in named.items():
            if count > 1:
                raise _unreadable("two columns have this name", field=name, line=1)
        self._width = len(names)
        self._to = names.index("to")
        self._special = {name: names.index(name) for name in ("clientRef", "timezone") if name in named}
        variables = [name for name in named if name != "to" and name not in self._special]
        if len(variables) > VARIABLES:
            raise _unreadable(f"at most {VARIABLES} variables", field=variables[VARIABLES], line=1)
        # The name is stored with each contact: columns that no text needs would make a small file a large job.
        self._variables = [(names.index(name), name) for name in variables if name in used]

    def contact(self, row: list[str]) -> str | ContactIn:
        width = len(row)
        to = row[self._to] if self._to < width else ""
        if width > self._width:
            return BadRow(to=to, code="TOO_MANY_COLUMNS")
        # An empty cell is no value: better a contact that is listed as lacking one than "Hello ,".
        values = {name: row[i] for i, name in self._variables if i < width and row[i]}
        special = {name: row[i] for name, i in self._special.items() if i < width and row[i]}
        for cells, limit in ((values, TEXT_LIMIT), (special, SHORT)):
            for column, cell in cells.items():
                if len(cell) > limit:
                    return BadRow(to=to, code="FIELD_TOO_LONG", column=column)
        if not values and not special:
            return to
        return ContactIn(to=to, vars=values, client_ref=special.get("clientRef"), timezone=special.get("timezone"))


def _unreadable(message: str, *, field: str, line: int) -> BadRequest:
    return BadRequest("INVALID_CSV", message, field=field, details={"line": line})
