"""An error as a caller sees it over HTTP. Neighbours: `web` answers with it, `bodies` and `forms` raise it too."""

from collections.abc import Mapping
from typing import Any


class Problem(Exception):
    """Status, code, words, and what is wrong exactly."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        field: str | None = None,
        details: Mapping[str, Any] | None = None,
        retry_after_seconds: int | None = None,
        closes: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.details = {**({"field": field} if field else {}), **(details or {})}
        self.retry_after_seconds = retry_after_seconds
        self.closes = closes
        """Whether the connection ends with this answer: nobody knows where the next request would begin."""

    def content(self) -> dict[str, Any]:
        """The body of the answer, the same for every error of every service."""
        error: dict[str, Any] = {"code": self.code, "message": self.message, "details": self.details}
        if self.retry_after_seconds is not None:
            error["retryAfterSeconds"] = self.retry_after_seconds
        return {"error": error}
