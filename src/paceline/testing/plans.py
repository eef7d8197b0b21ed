"""What a run of the World is made of: policies, numbers, jobs, what people press, and the scenario that holds them."""

from typing import Any, Literal

import msgspec

from paceline.domain.jobs import Strategy
from paceline.policy.trust import Level, Policy
from paceline.testing.steps import Faults
from paceline.worker.drivers.config import Behaviour

MINUTE_MS = 60_000
HOUR_MS = 3_600_000
MIDNIGHTS_MS = (1_792_886_400_000, 1_793_491_200_000, 1_806_105_600_000, 1_794_700_800_000)
"""Midnight UTC of the days on which the clocks go back in Europe and in America, of the day before they go forward in
Europe, and of an ordinary Sunday."""

FAST = Policy(name="fast", levels=(Level("only", 12, (1_000, 2_000)),), typing_ms=(0, 500), burst_limit=0)
BURSTY = Policy(name="bursty", levels=(Level("only", 20, (2_000, 4_000)),), typing_ms=(200, 1_500))
TIGHT = Policy(
    name="tight",
    levels=(
        Level("cold", 6, (6_000, 9_000), max_age_days=3, daily_cap=8, hours=(9, 11)),
        Level("hot", 10, (4_000, 6_000), daily_cap=14, hours=(8, 12)),
    ),
    recipient_hours=(9, 20),
    typing_ms=(500, 2_000),
)
GROWING = Policy(
    name="growing",
    levels=(
        Level("cold", 3, (8_000, 12_000), max_age_days=3, daily_cap=6),
        Level("warm", 10, (3_000, 5_000), max_age_days=7, daily_cap=10),
        Level("hot", 20, (1_000, 2_000), daily_cap=25),
    ),
    typing_ms=(0, 1_000),
    burst_limit=4,
    burst_cooldown_ms=20_000,
)
"""Three levels whose numbers grow up in the middle of a run."""

CAREFUL = Policy(name="careful", levels=(Level("only", 12, (9_000, 11_000)),), typing_ms=(0, 500), burst_limit=0)
"""Slower than its rate alone would be: an override that only looks at the rate would make it faster."""


class PhonePlan(msgspec.Struct, frozen=True):
    """A number and one of its sessions; a number with two of them stands here twice."""

    phone: str
    session: str
    age_ms: int
    timezone: str


class JobPlan(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    at_ms: int
    contacts: list[str]
    priority: int
    on_unknown: str
    validity_seconds: int
    single: bool = False
    delay_ms: int = 0
    """Its `sendAt`, counted from when it is posted."""
    spread_minutes: int = 0
    strategy: Strategy | None = None
    phone: str | None = None
    """The number it names."""
    says: str = ""
    file: str = ""
    """What stands in the file it sends; empty: it sends none."""

    @property
    def text(self) -> str:
        return self.says or f"text of {self.name}"


DeedKind = Literal[
    "pause", "resume", "stop", "start", "rpm", "pacer", "cooldown", "requeue", "cancel_queue", "guard",
    "pause_job", "resume_job", "pause_session", "resume_session", "cancel_message", "hear", "stop_word",
    "restart_session", "proxy_bad", "proxy_ok", "hang", "clock",
]  # fmt: skip


class Deed(msgspec.Struct, frozen=True, kw_only=True):
    """A press of a button, or a person who writes to one of the numbers."""

    at_ms: int
    kind: DeedKind
    which: int = 0
    """The number or the job it is about, by its place in the scenario."""
    value: Any = None


class Receiver(msgspec.Struct, frozen=True, kw_only=True):
    """Where a customer takes events."""

    down: tuple[int, int] = (0, 0)
    """From when and for how long nobody is there."""
    fails: float = 0.0
    forgets: float = 0.0
    """It has the event, and its answer is lost."""


class Around(msgspec.Struct, frozen=True, kw_only=True):
    """What a run has beyond its messages; by default nothing."""

    late_words: float = 0.0
    """How likely a worker's word comes long after it was told again."""
    confirmation: str = ""
    """What somebody is answered who says stop."""
    receiver: Receiver | None = None
    provisioned: bool = False
    """Workers are begun by the provisioner and watched by the watchdog; else each boots again by itself."""
    bad_files: float = 0.0
    """How likely a worker gets no file, or a damaged one."""
    proxies: int = 0
    """How many there are; 0: the numbers go out directly."""
    skew_ms: int = 0
    """So much ahead or behind the clocks of workers' hosts may be; each of their lives may be on another."""
    restarts: bool = False
    """A worker that ended comes back under its old instance, on its host and volume: a container that restarts by
    itself. Else each life has an instance of its own."""


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    seed: int
    policy: Policy
    phones: list[PhonePlan]
    jobs: list[JobPlan]
    suppressions: list[tuple[int, str]]
    """When somebody says stop."""
    cancels: list[tuple[int, int]]
    """When the n-th job is canceled."""
    outage: tuple[int, int]
    """From when and for how long the first number's worker stands still."""
    behaviour: Behaviour
    faults: Faults
    lease_ms: int
    start_ms: int
    lost_volumes: bool = False
    """A worker that crashes may lose its journal with its volume."""
    deeds: list[Deed] = []
    api: bool = False
    """SEND_MODE=api."""
    global_rpm: int = 0
    frequency: tuple[int, int] = (0, 0)
    """How many messages a person may get within how many ms."""
    guard_tick_ms: int = 0
    """SmartGuard's tick; 0 is off."""
    restores: bool = False
    """The platform lifts bans after a while; else the night watch cancels what waits for a banned number."""
    patience_ms: int = 5 * MINUTE_MS
    """How long the night watch lets something stand that holds up messages."""
    around: Around = Around()

    @property
    def numbers(self) -> list[PhonePlan]:
        """Each number once."""
        return list({plan.phone: plan for plan in reversed(self.phones)}.values())[::-1]

    @property
    def is_quiet(self) -> bool:
        """Nothing holds a message up but the pace, its turn and its number's hours."""
        held_up = self.deeds or self.global_rpm or self.frequency[0] or self.faults != Faults()
        people = [to for job in self.jobs for to in set(job.contacts)]
        return not (
            held_up
            or self.around != Around()
            or _is_troubled(self.behaviour)
            or self.policy.recipient_hours
            or self.outage[1] > 5_000
            or (len(people) > len(set(people)) and len(self.numbers) > 1)
            or any(job.phone for job in self.jobs)
        )


def _is_troubled(behaviour: Behaviour) -> bool:
    return bool(
        behaviour.lost_ack
        or behaviour.slow_ack
        or behaviour.disconnect_before
        or behaviour.ban
        or behaviour.time_lock
        or behaviour.new_chats
        or behaviour.restricted
        or behaviour.reply_ratio
        or behaviour.disconnect_after
        or behaviour.rate_limit
    )
