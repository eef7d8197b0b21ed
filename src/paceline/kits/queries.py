"""What stands behind the `?` of a request: names that its route does not know are refused, never overlooked.

A filter that nobody heard would widen what a request does. A route knows the parameters that its handler declares. One
that says `opt={"any_query": True}` is left alone: it reads its query itself, or is asked by probes that add their own.
Neighbours: `web` has every route ask this when its guards have let the caller in, `direct` likewise.
"""

from typing import Any
from urllib.parse import parse_qsl

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.params import QueryParameter

from paceline.kits.problem import Problem

Connection = ASGIConnection[Any, Any, Any, Any]

_SHOWN_LENGTH = 64
"""Of a name that is not ours."""


def given(connection: Connection) -> list[tuple[str, str]]:
    """Names and values as they came, also those that say nothing: the framework leaves `?jobId=` out."""
    return parse_qsl(connection.scope["query_string"].decode("latin-1"), keep_blank_values=True)


async def check(request: Any) -> None:
    """Most requests have no query, and go on at once."""
    if request.scope["query_string"]:
        _check(request)


def _check(request: Any) -> None:
    handler: BaseRouteHandler = request.scope["route_handler"]
    if handler.opt.get("any_query") or request.scope["method"] == "OPTIONS":
        return
    known = known_to(handler)
    seen: set[str] = set()
    for name, _ in given(request):
        if name not in known:
            takes = f"this route takes {', '.join(known)}" if known else "this route takes none"
            message = f"there is no such query parameter here; {takes}"
            raise Problem(400, "INVALID_REQUEST", message, field=name[:_SHOWN_LENGTH])
        if name in seen:
            raise Problem(400, "INVALID_REQUEST", "given twice", field=name)
        seen.add(name)


def known_to(handler: BaseRouteHandler) -> list[str]:
    """The names under which callers know them."""
    return [
        field.kwarg_definition.name or name
        for name, field in handler.parsed_fn_signature.parameters.items()
        if isinstance(field.kwarg_definition, QueryParameter)
    ]
