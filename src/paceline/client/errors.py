"""What can go wrong, as one tree.

PacelineError
├── Misused             the call cannot be made: no possible address, key or argument. Nobody was asked
├── Refused             the gateway answered, and the answer is no: status, code, message, details, field
│   ├── Unauthorized    401: no key, or not a valid one
│   ├── Forbidden       403: the key lacks a scope
│   ├── NotFound        404
│   ├── Conflict        409: it is in no state for this
│   └── TooMany         429: slow down; retry_after_seconds
├── Unreachable         no answer. `maybe_done` says whether the request may have been carried out all the same;
│   │                   one that sends is repeated safely under the error's `idempotency_key`
│   └── Unavailable     502, 503, 504: the gateway, or its store, is away for the moment
├── BadAnswer           answered, but not like a service of Paceline
├── TimedOut            what was waited for has not happened yet; `last` is how it stands
└── BadSignature        a webhook that nobody who knows the secret has signed, or an old one

Refusals and outages that may pass were repeated before they are raised, where repeating is safe; `tries` counts.
"""

from collections.abc import Mapping
from typing import Any


class PacelineError(Exception):
    """Base of all that this client raises on purpose."""

    idempotency_key: str | None = None
    """Of a call that sends: the one it was asked under, its own or the caller's. Under it the call can be made again
    without being done twice."""


class Misused(PacelineError, ValueError):
    """Also a ValueError, since that is what it is."""


class Refused(PacelineError):
    def __init__(
        self,
        where: str,
        status: int,
        code: str,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        retry_after_seconds: float | None = None,
        request_id: str | None = None,
        tries: int = 1,
    ) -> None:
        self.status = status
        self.code = code
        """One of the closed list in docs/api.md."""
        self.message = message
        self.details = dict(details or {})
        self.retry_after_seconds = retry_after_seconds
        self.request_id = request_id
        """Finds the request in the gateway's logs."""
        self.tries = tries
        """If more than one, what is complained of may be the doing of an earlier try whose answer was lost."""
        field = f" ({self.field})" if self.field else ""
        super().__init__(f"{where} answered {status}: {code}: {message}{field}")

    @property
    def field(self) -> str | None:
        """The field that is wrong, if one is."""
        found = self.details.get("field")
        return found if isinstance(found, str) else None


class Unauthorized(Refused):
    pass


class Forbidden(Refused):
    pass


class NotFound(Refused):
    pass


class Conflict(Refused):
    pass


class TooMany(Refused):
    pass


REFUSALS: dict[int, type[Refused]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    429: TooMany,
}
"""Other 4xx and 500 are a plain `Refused`."""


class Unreachable(PacelineError):
    def __init__(self, words: str, *, maybe_done: bool, tries: int = 1) -> None:
        super().__init__(words)
        self.maybe_done = maybe_done
        self.tries = tries


class Unavailable(Unreachable):
    def __init__(self, words: str, *, status: int, retry_after_seconds: float | None, tries: int = 1) -> None:
        super().__init__(words, maybe_done=True, tries=tries)
        self.status = status
        self.retry_after_seconds = retry_after_seconds


class BadAnswer(PacelineError):
    def __init__(self, words: str, *, status: int | None = None) -> None:
        super().__init__(words)
        self.status = status


class TimedOut(PacelineError, TimeoutError):
    def __init__(self, words: str, last: Any) -> None:
        super().__init__(words)
        self.last = last


class BadSignature(PacelineError):
    pass
