"""What the simulated server does with one message, decided from the `Behaviour` alone; no state is touched here."""

from dataclasses import dataclass

from paceline.domain.failures import NOT_ON_WHATSAPP, RATE_LIMIT, RESTRICTED_463
from paceline.kits.rng import Rng
from paceline.worker.drivers.account import Standing
from paceline.worker.drivers.base import Refused, RestrictionKind
from paceline.worker.drivers.config import Behaviour

CONNECTION_CLOSED = 428
CONNECTION_LOST = 408
BANNED = 403

_REFUSALS = {
    RATE_LIMIT: Refused(RATE_LIMIT, "too many messages"),
    NOT_ON_WHATSAPP: Refused(NOT_ON_WHATSAPP, "the number is not on WhatsApp"),
    RESTRICTED_463: Refused(RESTRICTED_463, "463: starting new chats is restricted"),
}


@dataclass(frozen=True)
class Accept:
    """Take the message; ack it after `ack_after_ms`, or never; then perhaps end the connection."""

    ack_after_ms: int | None
    disconnect: bool = False


@dataclass(frozen=True)
class Drop:
    """End the connection with this code; the message is not taken."""

    code: int
    reason: str


@dataclass(frozen=True)
class Restrict:
    """Refuse the message and state the limit it ran into."""

    kind: RestrictionKind
    refusal: Refused = _REFUSALS[RESTRICTED_463]


Reaction = Accept | Refused | Drop | Restrict


def react(behaviour: Behaviour, to: str, nth: int, rng: Rng, standing: Standing) -> Reaction:
    """What the server does with the n-th message. Lists come before limits, limits before counters, counters before
    chance."""
    return (
        _by_recipient(behaviour, to)
        or _by_limit(standing)
        or _by_count(behaviour, nth)
        or _by_chance(behaviour, rng, standing)
    )


def _by_recipient(behaviour: Behaviour, to: str) -> Reaction | None:
    if to in behaviour.not_on_whatsapp:
        return _REFUSALS[NOT_ON_WHATSAPP]
    if to in behaviour.restricted_463:
        return _REFUSALS[RESTRICTED_463]
    return _REFUSALS[RATE_LIMIT] if to in behaviour.rate_limited else None


def _by_limit(standing: Standing) -> Reaction | None:
    """Limits are for new chats alone. A lock was stated when it began; a cap is stated to whoever runs into it."""
    if not standing.is_new:
        return None
    if standing.locked:
        return _REFUSALS[RESTRICTED_463]
    return Restrict("CAPPED") if standing.capped else None


def _by_count(behaviour: Behaviour, nth: int) -> Reaction | None:
    if _every(behaviour.rate_limit_every, nth):
        return _REFUSALS[RATE_LIMIT]
    if _every(behaviour.disconnect_every, nth):
        return Drop(CONNECTION_CLOSED, "connection closed")
    return Accept(None) if _every(behaviour.lose_ack_every, nth) else None


def _by_chance(behaviour: Behaviour, rng: Rng, standing: Standing) -> Reaction:
    # One draw walks along all probabilities, so they exclude each other and add up.
    draw = rng.random()
    for probability, reaction in (
        (behaviour.rate_limit, _REFUSALS[RATE_LIMIT]),
        (behaviour.not_registered, _REFUSALS[NOT_ON_WHATSAPP]),
        (behaviour.restricted, _REFUSALS[RESTRICTED_463]),
        (behaviour.time_lock if standing.is_new else 0.0, Restrict("TIME_LOCKED")),
        (behaviour.ban, Drop(BANNED, "account banned")),
        (behaviour.disconnect_before, Drop(CONNECTION_CLOSED, "connection closed")),
        (behaviour.disconnect_after, Accept(None, disconnect=True)),
        (behaviour.lost_ack, Accept(None)),
        (behaviour.slow_ack, Accept(rng.randint(*behaviour.slow_ack_delay_ms))),
    ):
        if draw < probability:
            return reaction
        draw -= probability
    return Accept(rng.randint(*behaviour.ack_delay_ms))


def _every(n: int, nth: int) -> bool:
    return n > 0 and nth % n == 0
