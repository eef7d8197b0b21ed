"""The HTTP edge that the services share: what our errors are over HTTP, who may ask, and how often.

Keys are stored hashed. What a caller presents is hashed too and compared with every stored hash in constant time, so
neither the answer's time nor a stolen Redis tells a key. Requests are counted in this process (`kits.ratelimit`), so
that all of them together cost Redis one reading of the keys a second. Neighbour: `gateway.api_keys` makes and revokes
keys.
"""

import asyncio
import hashlib
import hmac
import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.types import Guard

from paceline import __version__
from paceline.apidoc import CATALOGUE, SECURITY
from paceline.domain.errors import Forbidden, RequestError, TooMany, Unauthorized, Unavailable
from paceline.kits.clock import Clock, monotonic_ms
from paceline.kits.headers import header
from paceline.kits.http_cycle import lines_of
from paceline.kits.openapi import Reference
from paceline.kits.ratelimit import Meter, Verdict
from paceline.kits.service import ANSWER_HEADERS, Service
from paceline.kits.web import AnyRequest, Handler, Problem, create_service
from paceline.store.guards import ApiKeyRecord
from paceline.store.store import Store

BOOTSTRAP_ID = "bootstrap"
SCOPES = ("send", "read", "admin")
KEYS_AGE_MS = 1_000
"""How soon a revoked key is noticed."""
UNKNOWN_AGE_MS = 100
"""How soon a new one is: so many ms after the last look an unknown key is worth another, but no more often."""
FAILURES_PER_MINUTE = 60
"""Requests without a valid key from one address: enough for a caller that is set up wrongly to find out. It bounds
noise; against guessing stands the length of the keys."""
METERED = 10_000
"""Addresses, and keys, whose requests are remembered: about 2 MB at most."""
_ALL = "*"
_EVERYWHERE = (
    "Every answer has an `X-Request-Id`, the caller's own if it sent one, and with a rate limit `X-RateLimit-Limit`,"
    " `X-RateLimit-Remaining` and `X-RateLimit-Reset` (seconds)."
)
Connection = ASGIConnection[Any, Any, Any, Any]


def service(*, name: str, description: str, routes: list[Handler], reference: Reference) -> Service:
    """`reference` is what the documentation says of each route beyond what the route says itself."""
    return create_service(
        title=f"Paceline {name}",
        version=__version__,
        description=f"{description} {_EVERYWHERE}",
        routes=routes,
        translate=translate,
        reference=reference,
        catalogue=CATALOGUE,
        security_schemes=SECURITY,
    )


def translate(error: Exception) -> Problem | None:
    if isinstance(error, RequestError):
        return Problem(
            error.status,
            error.code,
            error.message,
            details=error.details,
            retry_after_seconds=error.retry_after_seconds,
        )
    if isinstance(error, Unavailable):
        message = "the store cannot serve this now; the request may be repeated"
        return Problem(503, "UNAVAILABLE", message, retry_after_seconds=error.retry_after_seconds)
    return None


def digest(key: bytes) -> str:
    return hashlib.sha256(key).hexdigest()


@dataclass(frozen=True)
class Limits:
    """Requests a minute; 0 is no limit."""

    per_key: int = 0
    """For keys whose record says nothing else."""
    all_keys: int = 0


class Keys:
    """Who holds a key, what it is good for, and how often it may be used."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        limits: Limits | None = None,
        monotonic: Callable[[], int] = monotonic_ms,
    ) -> None:
        """What was read grows old by `monotonic`: a clock that was set back stands still, and what was revoked must end
        all the same."""
        self._monotonic = monotonic
        self._store = store
        self._clock = clock
        self._limits = limits or Limits()
        self._meter = Meter(METERED)
        self._failures = Meter(METERED)
        self._known: list[ApiKeyRecord] = []
        self._read_at_ms = -KEYS_AGE_MS
        self._reading: asyncio.Task[None] | None = None

    async def save_bootstrap(self, key: str) -> None:
        """The setting API_KEY as a record like any other, the newest in place of the one before."""
        given = digest(key.encode())
        known = {record.key_id: record.digest for record in await self._store.guards.api_keys()}
        if known.get(BOOTSTRAP_ID) != given:
            record = ApiKeyRecord(BOOTSTRAP_ID, given, list(SCOPES), name="API_KEY", created_at=self._clock.now_ms())
            await self._store.guards.save_key(record)
            self.forget()

    def forget(self) -> None:
        """After a change made here: it holds from the next request on. A reading that is under way may have looked
        before it."""
        self._read_at_ms = -KEYS_AGE_MS
        self._reading = None

    async def is_live(self, key_id: str) -> bool:
        """For what goes on after its request was let in: a stream ends with its key."""
        now_ms = self._clock.now_ms()
        return any(record.key_id == key_id and not _fault(record, now_ms) for record in await self._all())

    def requires(self, *scopes: str) -> Guard:
        """Any one of these; `admin` includes them all."""

        good = frozenset({*scopes, "admin"})

        async def guard(connection: Connection, _handler: BaseRouteHandler) -> None:
            now_ms = self._clock.now_ms()
            record = await self._identified(connection, now_ms)
            connection.scope["auth"] = record
            self._count(connection, record, now_ms)
            if good.isdisjoint(record.scopes):
                raise Forbidden("FORBIDDEN", f"this key has no {scopes[0]!r} scope", details={"scope": scopes[0]})

        guard.required_scopes = scopes  # type: ignore[attr-defined]  # for the test that walks all routes
        return guard

    async def _identified(self, connection: Connection, now_ms: int) -> ApiKeyRecord:
        key = _presented(connection)
        if key is None:
            self._refuse(connection, "send a key as X-API-KEY or Authorization: Bearer")
        presented = digest(key)
        known = self._known if self._monotonic() - self._read_at_ms < KEYS_AGE_MS else await self._all()
        # What nobody knows may have been made a moment ago, by another process.
        record = _matching(known, presented)
        record = record or _matching(await self._all(UNKNOWN_AGE_MS), presented)
        if record is None:
            self._refuse(connection, "this key is not valid")
        # Who shows the whole key may know what became of it.
        if fault := _fault(record, now_ms):
            self._refuse(connection, fault)
        return record

    def _refuse(self, connection: Connection, why: str) -> NoReturn:
        """401, or 429 to an address that tries too often. A valid key is never refused for what others at its address
        do: behind one proxy or office router are many callers."""
        address = _address(connection)
        verdict = self._failures.ask(address, FAILURES_PER_MINUTE, self._clock.now_ms())
        self._failures.count(address, verdict)
        _tell(connection, verdict)
        if not verdict.allowed:
            raise _too_many("too many requests without a valid key from this address", "address", verdict)
        raise Unauthorized("UNAUTHORIZED", why)

    def _count(self, connection: Connection, record: ApiKeyRecord, now_ms: int) -> None:
        """One request of this key, unless its limit or that of all keys is reached: then it counts for neither."""
        rate = self._limits.per_key if record.rate_per_minute is None else record.rate_per_minute
        if not rate and not self._limits.all_keys:
            return
        verdicts = self._verdicts(record, rate, now_ms)
        for name, verdict in verdicts:
            if not verdict.allowed:
                _tell(connection, verdict)
                whose = "all keys together" if name == _ALL else "this key"
                raise _too_many(f"the limit of {whose} is reached", "all" if name == _ALL else "key", verdict)
        for name, verdict in verdicts:
            self._meter.count(name, verdict)
        if verdicts:
            _tell(connection, verdicts[0][1])

    def _verdicts(self, record: ApiKeyRecord, rate: int, now_ms: int) -> list[tuple[str, Verdict]]:
        # The names cannot meet: a key's id is never the star.
        asked = ((record.key_id, rate), (_ALL, self._limits.all_keys))
        return [(name, self._meter.ask(name, per_minute, now_ms)) for name, per_minute in asked if per_minute]

    def known(self, presented: str, scope: str, now_ms: int) -> ApiKeyRecord | None:
        """Whose key has this digest, if that is known at once and all is well with it. Whatever there is to refuse, the
        guard refuses."""
        if self._monotonic() - self._read_at_ms >= KEYS_AGE_MS:
            return None
        record = _matching(self._known, presented)
        if record is None or _fault(record, now_ms):
            return None
        return record if scope in record.scopes or "admin" in record.scopes else None

    def counted(self, record: ApiKeyRecord, now_ms: int) -> bytes | None:
        """One request of this key: the lines about it for the answer's head. None, and not counted, if it is one too
        many: the guard says so."""
        rate = self._limits.per_key if record.rate_per_minute is None else record.rate_per_minute
        if not rate and not self._limits.all_keys:
            return b""
        verdicts = self._verdicts(record, rate, now_ms)
        if not all(verdict.allowed for _, verdict in verdicts):
            return None
        for name, verdict in verdicts:
            self._meter.count(name, verdict)
        return lines_of(_told(verdicts[0][1]))

    async def _all(self, age_ms: int = KEYS_AGE_MS) -> list[ApiKeyRecord]:
        """Every key, as of so long ago. Requests that come together share one reading, and its failure."""
        read_at_ms = self._monotonic()
        if read_at_ms - self._read_at_ms >= age_ms:
            if self._reading is None:
                self._reading = asyncio.create_task(self._read(read_at_ms), name="keys")
            # A caller that hangs up must not take the reading from the others.
            await asyncio.shield(self._reading)
        return self._known

    async def _read(self, read_at_ms: int) -> None:
        this = asyncio.current_task()
        try:
            found = await self._store.guards.api_keys()
            if self._reading is this:
                self._known, self._read_at_ms = found, read_at_ms
        finally:
            if self._reading is this:
                self._reading = None


def holder(request: AnyRequest) -> str:
    """The id of the key that a guarded request came with."""
    record: ApiKeyRecord = request.auth
    return record.key_id


def _matching(known: list[ApiKeyRecord], presented: str) -> ApiKeyRecord | None:
    # All are compared, whichever matches: the time taken says nothing.
    matches = [record for record in known if hmac.compare_digest(record.digest, presented)]
    return matches[0] if matches else None


def _fault(record: ApiKeyRecord, now_ms: int) -> str:
    if record.revoked_at is not None:
        return "this key was revoked"
    if record.expires_at is not None and record.expires_at <= now_ms:
        return "this key has expired"
    return ""


def _too_many(message: str, of: str, verdict: Verdict) -> TooMany:
    details = {"limit": verdict.limit, "of": of}
    return TooMany("RATE_LIMITED", message, details=details, retry_after_seconds=_seconds(verdict.retry_ms))


def _tell(connection: Connection, verdict: Verdict) -> None:
    """On every answer, so that a caller can slow down before it is refused."""
    connection.scope[ANSWER_HEADERS] = _told(verdict)  # type: ignore[literal-required]


def _told(verdict: Verdict) -> list[tuple[bytes, bytes]]:
    told = (
        (b"x-ratelimit-limit", verdict.limit),
        (b"x-ratelimit-remaining", verdict.remaining),
        (b"x-ratelimit-reset", _seconds(verdict.reset_ms)),
    )
    return [(name, b"%d" % value) for name, value in told]


def _seconds(ms: int) -> int:
    return -(-ms // 1000)


def _address(connection: Connection) -> str:
    """Whom to count failures against. Of an IPv6 address its /64, which is what one customer of a provider has."""
    client = connection.scope["client"]
    host = client[0] if client else ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host[:64]
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((int(address), 64), strict=False))
    return host


def _presented(connection: Connection) -> bytes | None:
    return _key_of(header(connection.scope, b"x-api-key"), header(connection.scope, b"authorization"))


def digest_in(headers: Mapping[bytes, bytes]) -> str | None:
    """Of the key that a head presents."""
    key = _key_of(str(headers.get(b"x-api-key", b""), "latin-1"), str(headers.get(b"authorization", b""), "latin-1"))
    return None if key is None else digest(key)


def _key_of(key: str | None, authorization: str | None) -> bytes | None:
    if not key:
        kind, _, key = (authorization or "").partition(" ")
        key = key.strip() if kind.lower() == "bearer" else ""
    # Headers are decoded as Latin-1; these are the bytes that were sent.
    return key.encode("latin-1") if key else None
