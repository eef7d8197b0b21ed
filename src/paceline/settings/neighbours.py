"""Where a process finds what it works with."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_validator

from paceline.settings.section import AnyCase, HttpUrl, Section


class Neighbours(Section):
    """Redis, the other services, the data."""

    redis_url: Annotated[str, Field(repr=False)] = "redis://127.0.0.1:6379"
    """Where the state lives: `redis://`, `rediss://` (TLS) or `unix://`. Redis 6.2 or newer, or Valkey, with
    `appendonly yes` and `maxmemory-policy noeviction`; with `hash-max-ziplist-value 1024` messages take two thirds of
    the room, and with `hash-max-ziplist-entries 64` numbers are found at once. The default is Redis' own."""

    orchestrator_url: HttpUrl = "http://localhost:3000"
    """Base address of the orchestrator, for those who call it over HTTP. The default is its own default
    port."""

    gateway_url: HttpUrl = "http://localhost:4000"
    """Base address of the gateway, for the dashboard. The default is its own default port."""

    dispatcher_url: HttpUrl = "http://localhost:4001"
    """Base address of a dispatcher, for the dashboard. The default is its own default port."""

    send_mode: Annotated[Literal["api", "redis"], AnyCase] = "api"
    """How a paced task reaches the orchestrator's outbox: `api`, by its HTTP interface, which lets it refuse
    and be watched; or `redis`, in one atomic step, which is faster. Both keep the same promises.
    `paceline up` uses `redis`."""

    orchestrator_api_key: SecretStr | None = None
    """The key a dispatcher shows the orchestrator with `SEND_MODE=api`. Unset, it is `API_KEY`; one of the two
    it needs."""

    session_brain_url: Annotated[HttpUrl | None, Field(repr=False)] = None
    """If set, `SEND_FAILED` and `SESSION_CONSUMER_ERROR` events are posted to `<url>/event`, best effort."""

    data: Annotated[Path, Field(validation_alias="PACELINE_DATA")] = Path("./data")
    """Directory below which all local state lies: worker volumes, ledgers, and with `paceline up` Redis,
    logs, pid files and generated keys. Below the working directory, so that trying it out leaves nothing
    elsewhere."""

    @field_validator("redis_url")
    @classmethod
    def _redis_scheme(cls, value: str) -> str:
        if not value.startswith(("redis://", "rediss://", "unix://")):
            raise ValueError("must start with redis://, rediss:// or unix://")
        return value
