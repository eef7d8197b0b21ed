"""The list of error codes in the docs is closed: it holds what the code can raise, no more and no less."""

import re
from pathlib import Path

import paceline
from paceline.domain.codes import CODES

_RAISED = re.compile(
    r"(?:BadRequest|Unauthorized|Forbidden|NotFound|Conflict|TooLarge|Unprocessable|TooMany)\(\s*\"([A-Z_]+)\""
    r"|Problem\(\s*\d+,\s*\"([A-Z_]+)\""
    r"|_reject\(\w+, \"([A-Z_]+)\"\)"
    r"|BadRow\(to=\w+, code=\"([A-Z_]+)\""
)


def test_the_codes_in_the_docs_are_those_in_the_code() -> None:
    """Neither a code nobody documented nor a documented one that nothing raises."""
    found = {"BODY_TOO_LARGE", "METHOD_NOT_ALLOWED", "TEXT_TOO_LONG", "INVALID_TIMEZONE", "MISSING_VARIABLE"}
    for path in Path(paceline.__file__).parent.rglob("*.py"):
        found |= {code for groups in _RAISED.findall(path.read_text()) for code in groups if code}
    assert found == set(CODES)
