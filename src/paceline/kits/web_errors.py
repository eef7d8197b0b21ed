"""Every error as an answer of one shape, whoever raised it: the product, the framework, or nobody on purpose.

What an error of the product means over HTTP, a `translate` function tells. Neighbour: `web`.
"""

import re
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import structlog
from litestar import MediaType, Request, Response
from litestar.exceptions import HTTPException, ValidationException

from paceline.kits.problem import Problem

log = structlog.stdlib.get_logger(__name__)

Translate = Callable[[Exception], Problem | None]
_CODES = {
    400: "INVALID_REQUEST",
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    413: "BODY_TOO_LARGE",
    415: "UNSUPPORTED_MEDIA_TYPE",
    500: "INTERNAL",
}
_MISSING_PARAMETER = re.compile(r"Missing required \w+ parameter '(?P<name>[^']+)'")


def error_handler(translate: Translate) -> Callable[[Request[Any, Any, Any], Exception], Response[dict[str, Any]]]:
    def handle(_request: Request[Any, Any, Any], error: Exception) -> Response[dict[str, Any]]:
        problem = error if isinstance(error, Problem) else translate(error)
        if problem is not None:
            return answer_of(problem)
        if isinstance(error, HTTPException) and error.status_code < 500:
            return answer_of(_framework_problem(error), error.headers)
        # Without the error's own words: they may hold what a caller sent us.
        where = "".join(traceback.format_tb(error.__traceback__))
        log.error("request failed", error=type(error).__name__, where=where)
        return answer_of(Problem(500, "INTERNAL", "something went wrong on our side; the request id tells us what"))

    return handle


def _framework_problem(error: HTTPException) -> Problem:
    code = _CODES.get(error.status_code, "INVALID_REQUEST")
    if isinstance(error, ValidationException) and isinstance(error.extra, list) and error.extra:
        first = error.extra[0]
        return Problem(400, code, str(first.get("message", "")), field=str(first.get("key", "")))
    if missing := _MISSING_PARAMETER.match(error.detail):
        return Problem(400, code, f"the parameter {missing['name']!r} is missing", field=missing["name"])
    messages = {404: "there is no such path", 405: "this path does not take that method", 413: "the body is too large"}
    return Problem(error.status_code, code, messages.get(error.status_code, "the request cannot be read"))


def answer_of(problem: Problem, headers: Mapping[str, str] | None = None) -> Response[dict[str, Any]]:
    headers = dict(headers or {})
    if problem.closes:
        headers["Connection"] = "close"
    if problem.retry_after_seconds is not None:
        headers["Retry-After"] = str(problem.retry_after_seconds)
    if problem.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="paceline"'
    return Response(problem.content(), status_code=problem.status, headers=headers, media_type=MediaType.JSON)
