"""A channel carries a text out and says what became of it. An expected failure is an answer, never an exception, and
holds no secret: tokens and addresses stay in the channel.
"""

from dataclasses import dataclass
from typing import Protocol

from paceline.policy.alert_kinds import Severity

TIMEOUT_S = 10.0
"""For one delivery. Who needs longer gets it again later."""


@dataclass(frozen=True)
class Outcome:
    """What became of one delivery."""

    ok: bool
    reason: str = ""
    """Why not, in words that may be shown."""
    retry_after_ms: int | None = None
    """When the service wants to be asked again."""


DELIVERED = Outcome(ok=True)


class Channel(Protocol):
    @property
    def name(self) -> str:
        """As it is shown: the service, never its address."""
        ...

    async def send(self, text: str, severity: Severity) -> Outcome: ...
