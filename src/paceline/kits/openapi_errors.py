"""Errors in an OpenAPI document: the one shape they have, and for an operation the closed list of its codes under each
status, with an example of every one. Neighbour: `openapi` knows which codes an operation has.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from litestar.handlers import HTTPRouteHandler

_JSON = "application/json"
_ERROR = {"$ref": "#/components/schemas/Error"}
SCHEMA_OF_ERRORS: dict[str, Any] = {
    "type": "object",
    "title": "Error",
    "description": "Every error of every service has this shape.",
    "required": ["error"],
    "additionalProperties": False,
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "details"],
            "additionalProperties": False,
            "properties": {
                "code": {"type": "string", "description": "for programs; one of a closed list"},
                "message": {"type": "string", "description": "for people; its words may change"},
                "details": {"type": "object", "description": "`field` names what is wrong in the request"},
                "retryAfterSeconds": {"type": "integer", "minimum": 0, "description": "as the header Retry-After"},
            },
        }
    },
}
_STATUS = re.compile(r"(\d{3})\b")

CommonErrors = Callable[[HTTPRouteHandler], Iterable[str]]


@dataclass(frozen=True)
class Catalogue:
    """What all operations share."""

    codes: Mapping[str, str]
    """Each code with its meaning, which begins with its status."""
    details: Mapping[str, Mapping[str, Any]]
    """What `details` holds, for codes that always say more than a field."""
    parameters: Mapping[str, str]
    """What a parameter of this name in a path is."""
    common: CommonErrors
    """Codes that follow from who may ask."""
    needs: Callable[[HTTPRouteHandler], str]
    """Who may ask, in a sentence."""

    def status(self, code: str) -> int | None:
        found = _STATUS.match(self.codes[code])
        return int(found[1]) if found else None

    def meaning(self, code: str) -> str:
        return self.codes[code].partition(": ")[2]


def error_answers(codes: Iterable[str], catalogue: Catalogue) -> dict[str, Any]:
    by_status: dict[int, list[str]] = {}
    for code in codes:
        status = catalogue.status(code)
        if status is None:
            raise LookupError(f"{code} is no code of an answer")
        by_status.setdefault(status, []).append(code)
    return {str(status): _error_answer(status, sorted(by_status[status])) for status in sorted(by_status)}


def _error_answer(status: int, codes: list[str]) -> dict[str, Any]:
    """The shape of all errors, with the codes that this operation answers under this status."""
    closed = {"properties": {"error": {"properties": {"code": {"enum": codes}}}}}
    return {
        "description": f"{HTTPStatus(status).phrase}: {', '.join(codes)}",
        "content": {
            _JSON: {
                "schema": {"allOf": [_ERROR, closed]},
                "examples": {code: {"$ref": f"#/components/examples/{code}"} for code in codes},
            }
        },
        **({"headers": _HEADERS[status]} if status in _HEADERS else {}),
    }


_RETRY_AFTER = {"Retry-After": {"description": "seconds until it is worth another try", "schema": {"type": "integer"}}}
_HEADERS: dict[int, dict[str, Any]] = {
    401: {"WWW-Authenticate": {"description": "how a key is shown", "schema": {"type": "string"}}},
    429: _RETRY_AFTER,
    503: _RETRY_AFTER,
}


def error_example(code: str, catalogue: Catalogue) -> dict[str, Any]:
    details = dict(catalogue.details.get(code, {}))
    error: dict[str, Any] = {"code": code, "message": catalogue.meaning(code)}
    retry = details.pop("retryAfterSeconds", None)
    error["details"] = details
    if retry is not None:
        error["retryAfterSeconds"] = retry
    return {"summary": catalogue.codes[code], "value": {"error": error}}
