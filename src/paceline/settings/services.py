"""The topics put together: what all services read, and what one of them cannot do without."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from paceline.settings.access import Access
from paceline.settings.alerting import Alerting
from paceline.settings.content import Events, Media
from paceline.settings.keeping import Keeping
from paceline.settings.neighbours import Neighbours
from paceline.settings.pacing import Pacing, People
from paceline.settings.section import Port
from paceline.settings.sending import SendProtocol, Watchdog
from paceline.settings.workers import Inventory, Workers


# pydantic lists the fields of the last base first; the docs and the faults come in its order.
class Settings(
    Keeping,
    Alerting,
    Events,
    Media,
    Workers,
    Inventory,
    Watchdog,
    SendProtocol,
    People,
    Pacing,
    Neighbours,
    Access,
):
    """The settings of one process."""

    @property
    def audit_path(self) -> Path:
        return self.db_path or self.data / "orchestrator.sqlite"


class OrchestratorSettings(Settings):
    """What the orchestrator cannot do without."""

    @field_validator("webhook_secret")
    @classmethod
    def _secret_is_there(cls, value: SecretStr | None) -> SecretStr | None:
        if value is None:
            raise ValueError("is required; the secret of each worker is derived from it")
        return value


class DispatcherSettings(Settings):
    """What a dispatcher cannot do without."""

    @field_validator("orchestrator_api_key")
    @classmethod
    def _has_a_key_to_show(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        # Fields that are themselves bad are absent, and already reported.
        if value is None and info.data.get("send_mode") == "api" and info.data.get("api_key", "bad") is None:
            raise ValueError("is required with SEND_MODE=api (or API_KEY)")
        return value


class DashboardSettings(Settings):
    """The dashboard needs no key of its own, wherever it listens."""

    @field_validator("api_key")
    @classmethod
    def _key_fits_the_address(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        return value


class UpSettings(Settings):
    """What `paceline up` reads on top: where its services listen. `PORT` itself is ignored there."""

    gateway_port: Port = 4000
    """Port of the public API."""

    dispatcher_port: Port = 4001
    """Port of the first dispatcher; with `--dispatchers N` the others take the next ones."""

    orchestrator_port: Port = 3000
    """Port of the orchestrator, which workers call."""

    fake_whatsapp_port: Annotated[int, Field(ge=1, le=65_533)] = 8090
    """First of three ports of the fake WhatsApp (`--fake-whatsapp`): its socket, its admin API, its media. On loopback
    always."""

    dashboard_port: Annotated[int, Field(ge=0, le=65_535)] = 8080
    """Port of the dashboard; 0 starts none."""
