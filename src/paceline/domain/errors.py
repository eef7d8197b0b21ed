"""The error tree. Expected outcomes are decisions, not exceptions; these are for what a caller must be told.

PacelineError
├── RequestError            the caller's fault; HTTP status, code and the field that is wrong
│   ├── BadRequest          400
│   ├── Unauthorized        401
│   ├── Forbidden           403
│   ├── NotFound            404
│   ├── Conflict            409
│   ├── TooLarge            413
│   ├── Unprocessable       422
│   └── TooMany             429, with the seconds to wait
├── Unavailable             503: Redis does not answer or is full; nothing was changed, or the call may be repeated
│   └── Busy                503: no room or no disk for it just now; for certain nothing was accepted
└── ConfigError             a setting or a policy file is wrong; all faults at once
"""

from typing import Any


class PacelineError(Exception):
    """Base of everything we raise on purpose."""


class RequestError(PacelineError):
    status = 400

    def __init__(
        self,
        code: str,
        message: str,
        *,
        field: str | None = None,
        details: dict[str, Any] | None = None,
        retry_after_seconds: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = {**({"field": field} if field else {}), **(details or {})}
        self.retry_after_seconds = retry_after_seconds


class BadRequest(RequestError):
    status = 400


class Unauthorized(RequestError):
    status = 401


class Forbidden(RequestError):
    status = 403


class NotFound(RequestError):
    status = 404


class Conflict(RequestError):
    status = 409


class TooLarge(RequestError):
    status = 413


class Unprocessable(RequestError):
    status = 422


class TooMany(RequestError):
    status = 429


class Unavailable(PacelineError):
    """The store cannot serve this now. `retry_after_seconds` is what the HTTP edge tells the caller."""

    retry_after_seconds = 2


class Busy(Unavailable):
    """Refused before anything was accepted: whoever repeats it need not find out what became of the first."""


class ConfigError(PacelineError):
    def __init__(self, faults: list[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults
