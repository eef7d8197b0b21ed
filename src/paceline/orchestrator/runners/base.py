"""What every runner can do. All of it may be repeated: a worker that runs is not started twice, one that is gone is
stopped and removed without complaint."""

from collections.abc import Iterable
from typing import Protocol

import msgspec

from paceline.domain.errors import PacelineError
from paceline.policy.reconcile import Seen

__all__ = ["Runner", "RunnerAway", "Seen", "StartRefused", "Usage", "WorkerSpec", "generation_of"]


class RunnerAway(PacelineError):
    """The engine does not answer. Nothing follows from that about any worker."""


class StartRefused(PacelineError):
    """This worker cannot be started now; the message says why, without secrets."""


class WorkerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One worker to be started."""

    session_id: str
    phone: str
    driver: str
    instance: str
    generation: int
    webhook_url: str
    webhook_secret: str
    proxy_url: str = ""
    keep_alive: bool = True
    orphan_ms: int = 0
    log_level: str = "info"
    auth_key: str = ""
    """Of drivers that keep a login: what it is encrypted with."""
    whatsapp_url: str = ""
    """Of drivers that speak to a server of WhatsApp: another one than the real one."""
    whatsapp_version: str = ""

    def environment(self) -> dict[str, str]:
        """What SPEC §6 tells a worker, and what we need on top. No proxy means no variable: it goes out directly."""
        told = {
            "SESSION_ID": self.session_id,
            "PHONE": self.phone,
            "PROXY_URL": self.proxy_url,
            "WEBHOOK_URL": self.webhook_url,
            "WEBHOOK_SECRET": self.webhook_secret,
            "ENABLE_KEEP_ALIVE": "true" if self.keep_alive else "false",
            "DRIVER": self.driver,
            "INSTANCE_ID": self.instance,
            "GENERATION": str(self.generation),
            "ORPHAN_MS": str(self.orphan_ms),
            "LOG_LEVEL": self.log_level,
            "AUTH_KEY": self.auth_key,
            "WHATSAPP_URL": self.whatsapp_url,
            "WHATSAPP_VERSION": self.whatsapp_version,
        }
        return {name: value for name, value in told.items() if value}

    def __repr__(self) -> str:
        return f"WorkerSpec({self.session_id!r}, instance={self.instance!r}, generation={self.generation})"


def generation_of(text: str) -> int:
    """As a worker's mark tells it; 0, which is nobody's, for a mark that somebody else wrote."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0


class Usage(msgspec.Struct, frozen=True, rename="camel"):
    memory_bytes: int
    cpu_seconds: float
    """Since it was started."""


class Runner(Protocol):
    def runs(self, driver: str) -> bool:
        """Whether workers with this driver are ours to start."""

    async def observe(self) -> list[Seen]:
        """All workers of this fleet, running or not. Raises RunnerAway."""

    async def start(self, spec: WorkerSpec) -> None:
        """Returns when it runs, and no other of its session does: one that still did is ended first. Raises RunnerAway,
        StartRefused."""

    async def stop(self, handle: str, grace_ms: int) -> None:
        """Ask it to end, and end it after `grace_ms`; returns when it is gone. Raises RunnerAway."""

    async def remove(self, handle: str) -> None:
        """Clear away what is left of one that has ended. Raises RunnerAway."""

    async def usage(self, handles: Iterable[str]) -> dict[str, Usage]:
        """By session, of those that run. Raises RunnerAway."""

    async def logs(self, session_id: str, lines: int) -> list[str]:
        """The end of what its worker printed. Raises RunnerAway."""

    async def close(self) -> None: ...
