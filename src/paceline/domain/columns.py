"""Which column of a table holds the phone numbers: the one whose name says so, never one that merely looks like it.

A customer's id may be digits that are somebody's number. So a table without a row of names is refused rather than
guessed at. The gateway and the dashboard ask here, so that both judge a file alike.
"""

import re
from collections.abc import Sequence

NUMBER_NAMES = ("to", "phone", "number", "mobile", "cell", "tel", "whatsapp", "msisdn", "telephone", "phone number")
"""In small or capital letters, with spaces and marks wherever they stand."""
ACCEPTED = ", ".join(f"`{name}`" for name in NUMBER_NAMES)
_PLAIN_NAMES = {name.replace(" ", "") for name in NUMBER_NAMES}
_MARKS = re.compile(r"[^\w,;|\t]|_")
"""Not what may stand between two columns: a line that was taken apart at another mark is no name."""
_DECORATION = re.compile(r"[\s().\-–/+]|@[a-z.]+$")
_DIGITS_OF_A_NUMBER = 7
"""Fewer may be a year or a house; the shortest numbers that people write to have more."""


class NoNumberColumn(ValueError):
    """Why nobody can tell, for whoever gave the table."""


def number_column(names: Sequence[str]) -> int:
    """The place of the column. `to` itself counts before names that mean the same, and makes a row one of names,
    whatever else stands in it."""
    if "to" in names:
        return names.index("to")
    for name in names:
        if looks_like_number(name):
            message = "the first row must name the columns, and it has a phone number"
            raise NoNumberColumn(f"{message}; name the column of the numbers {ACCEPTED}")
    plain = [_MARKS.sub("", name).lower() for name in names]
    if plain.count("to") == 1:
        return plain.index("to")
    found = [place for place, name in enumerate(plain) if name in _PLAIN_NAMES]
    if not found:
        raise NoNumberColumn(f"the first row must name the columns, and one of them must be the numbers': {ACCEPTED}")
    if len(found) > 1:
        raise NoNumberColumn("two columns may hold the numbers; call the right one `to`")
    return found[0]


def looks_like_number(cell: str) -> bool:
    digits = _DECORATION.sub("", cell)
    return len(digits) >= _DIGITS_OF_A_NUMBER and digits.isascii() and digits.isdigit()
