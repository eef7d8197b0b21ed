"""One header of a request, looked up where it lies: parsing all of them takes longer than most requests need."""

from typing import Any

_BY_NAME = "paceline_headers"


def header(scope: Any, name: bytes) -> str | None:
    """The first of that name, which is given in lower case, as ASGI has them."""
    found: dict[bytes, bytes] | None = scope.get(_BY_NAME)
    if found is None:
        found = scope[_BY_NAME] = dict(reversed(scope["headers"]))
    value = found.get(name)
    return None if value is None else str(value, "latin-1")
