"""Who reaches a service: where it listens, with which secrets, how much it takes of each caller."""

from typing import Annotated

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from paceline.kits.addresses import is_loopback
from paceline.settings.section import Port, Section

# Words that have been seen as "keys" on the open internet; compared without case. Shorter ones fall to the
# length.
TRIVIAL_KEYS = frozenset(
    {
        "0123456789abcdef",
        "1234567890123456",
        "api-key-change-me",
        "changemechangeme",
        "passwordpassword",
        "paceline-api-key",
        "secretsecretsecret",
        "your-api-key-here",
        "your_api_key_here",
    }
)

# 16 characters of hex are 64 bits: out of reach for guessing over a network.
MIN_KEY_LENGTH = 16


class Access(Section):
    """Where it listens, secrets, request rates."""

    # Where it listens

    host: str = "127.0.0.1"
    """Address to listen on. Loopback, so that a first run is reachable from this machine only; any other
    address needs a real `API_KEY`, of the dashboard alone it does not: whoever logs in there brings a key."""

    port: Port | None = None
    """Port to listen on. Unset, each service takes its own: gateway 4000, dispatcher 4001, orchestrator
    3000, dashboard 8080."""

    # Secrets

    api_key: SecretStr | None = None
    """The bootstrap admin key that callers send as `X-API-KEY`. `paceline up` generates one when it is unset.
    Missing, shorter than 16 characters or a well-known word is refused unless the service listens on loopback
    only."""

    webhook_secret: SecretStr | None = None
    """From this each session's own secret is derived (HMAC-SHA256 of the sessionId), with which its worker
    proves who it is. The orchestrator does not start without it; beyond loopback it is held to the same length
    as `API_KEY`. In a worker's environment it is the derived one."""

    auth_secret: SecretStr | None = None
    """From this the key of each session's login is derived (HMAC-SHA256), with which a `baileys` worker encrypts the
    linked device on its volume. Unset, it is `WEBHOOK_SECRET`. Whoever changes it has to link all those numbers again;
    with one of its own, `WEBHOOK_SECRET` can be changed without that."""

    # Request rates

    key_rate_per_minute: Annotated[int, Field(ge=0, le=1_000_000)] = 6_000
    """Requests one API key may make a minute at a gateway process, unless its own record says otherwise; 0 is no limit.
    100 a second is more than a caller needs who sends jobs, and stops one that runs in circles."""

    rate_per_minute: Annotated[int, Field(ge=0, le=10_000_000)] = 60_000
    """Requests all API keys together may make a minute at a gateway process; 0 is no limit. About what one process can
    answer."""

    body_timeout_seconds: Annotated[int, Field(ge=1, le=600)] = 30
    """How long a caller may send nothing in the middle of its body, in seconds; the whole body may take twenty times
    that. Then it is a 408. Longer than any hiccup of a network, shorter than anybody's patience."""

    bodies_at_once_mb: Annotated[int, Field(ge=32, le=65_536)] = 64
    """How many megabytes of bodies a process holds at once; what comes on top is a 503 with `Retry-After`. Decoded, a
    body takes five times its size, and one made to hurt fifteen times: 64 MB, two jobs of the largest size, are at
    most a gigabyte. Bodies under 64 kB are always served."""

    @field_validator("api_key")
    @classmethod
    def _key_fits_the_address(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if "host" not in info.data or is_loopback(info.data["host"]):
            return value
        if value is None:
            raise ValueError(f"is required when HOST is not a loopback address ({info.data['host']})")
        return _not_trivial(value)

    @field_validator("webhook_secret", "auth_secret")
    @classmethod
    def _secret_fits_the_address(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if value is None or "host" not in info.data or is_loopback(info.data["host"]):
            return value
        return _not_trivial(value)


def _not_trivial(key: SecretStr) -> SecretStr:
    if is_guessable(key.get_secret_value()):
        raise ValueError(
            f"is too easy to guess for a service that listens beyond loopback; "
            f"use at least {MIN_KEY_LENGTH} random characters"
        )
    return key


def is_guessable(key: str) -> bool:
    """Too short, a well-known word, or next to no different characters."""
    return len(key) < MIN_KEY_LENGTH or key.lower() in TRIVIAL_KEYS or len(set(key)) < 4
