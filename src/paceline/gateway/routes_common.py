"""What the gateway's routes share: the guard's mark in the documentation, and the shape of a page."""

from typing import Annotated

from litestar.params import QueryParameter

KEY = [{"apiKey": list[str]()}]
"""In the documentation: this route needs a key."""

Cursor = Annotated[str, QueryParameter(max_length=64, description="nextCursor of the page before")]
Limit = Annotated[int, QueryParameter(ge=1, le=1_000)]
