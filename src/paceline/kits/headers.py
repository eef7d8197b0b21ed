"""One header of a request, looked up where it lies: parsing all of them takes longer than most requests need."""

from collections.abc import Mapping
from typing import Any


def header(scope: Mapping[str, Any], name: bytes) -> str | None:
    """The first of that name, which is given in lower case, as ASGI has them."""
    for known, value in scope["headers"]:
        if known == name:
            return str(value, "latin-1")
    return None
