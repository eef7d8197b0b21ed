"""What the decisions about one number read: the facts of a phone, its sessions and the tasks at the head of its queue.

The store fills these; they are values, so a test writes them down by hand.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from paceline.policy import budget, hours, pacing
from paceline.policy.trust import Level, Policy

if TYPE_CHECKING:
    from random import Random

LEAD_MARGIN_MS = 1_000
"""How long before typing starts a task is handed over: claim and network fit in here."""


class SessionFacts(msgspec.Struct, frozen=True, rename="camel", gc=False):
    id: str
    connection: str = "STOPPED"
    last_seen_ms: int = 0
    paused: bool = False
    """An operator paused it: it stays connected and gets no task."""

    def is_live(self, *, now_ms: int, liveness_ms: int) -> bool:
        """Connected by its own word and by its activity: the word CONNECTED alone proves nothing."""
        return self.connection == "CONNECTED" and now_ms - self.last_seen_ms <= liveness_ms

    def may_send(self, *, now_ms: int, liveness_ms: int) -> bool:
        return not self.paused and self.is_live(now_ms=now_ms, liveness_ms=liveness_ms)


class Head(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A task near the head of a phone's queue. `entry` is its exact text there, which the hand-off names again."""

    entry: str
    task: str
    to: str
    state: str
    expires_at: int
    tz: str | None = None
    suppressed: bool = False
    pinned: str | None = None
    maybe_sent: bool = False
    is_known: bool = True
    """This number has talked with this person before, so writing to them starts no new chat."""
    job_paused: bool = False
    frequency_free_at: int = 0
    """Until then this person has had as many messages as they may get."""
    priority: int = 1
    single: bool = False
    """A single send, which counts among those that wait for its number until it is handed over."""
    is_seen: bool = True
    """Otherwise only its entry was read: whether it may go as the rest here says is for the hand-over to ask."""


class PhoneFacts(msgspec.Struct, frozen=True, rename="camel", kw_only=True, gc=False):
    phone: str
    version: int
    pace_line: str = ""
    """What the store has of its pacing; a decision replaces all of it, or nothing."""
    leased_until: int = 0
    """To whoever looked, so that its decision counts only if nobody looked later."""
    created_at: int | None = None
    timezone: str | None = None
    rpm_override: int | None = None
    rpm_source: str = ""
    """Who set the override: manual or smartguard."""
    rpm_changed_at: int = 0
    pacer: pacing.PacerFields = pacing.PacerFields()
    restriction: str = ""
    """TIME_LOCKED or CAPPED: no new chats before `restricted_until`."""
    restricted_until: int = 0
    failures: tuple[int, ...] = ()
    """When the last attempts failed, without those that concern the recipient alone."""
    last_sent_at: int = 0
    """When a message was last confirmed; `sends` hold refused attempts too."""
    last_now: int = 0
    """When the last decision about it was made."""
    global_free_at: int = 0
    """Until then the whole fleet has sent as much as `GLOBAL_RPM` allows."""
    fleet_stopped: bool = False
    cooldown_until: int = 0
    quarantined: bool = False
    fleet_paused: bool = False
    unsettled: str | None = None
    starts: Sequence[int] = ()
    sends: Sequence[int] = ()
    """Between `starts[i]` and `sends[i]` the i-th of the last messages was on the wire."""
    gap_ms: int = 0
    gap_key: str = ""
    cap_day: str = ""
    cap_used: int = 0
    sessions: tuple[SessionFacts, ...] = ()
    heads: tuple[Head, ...] = ()
    more: bool = False
    """The queue holds more than these heads."""
    due_at: int = 0
    """Since when it was its turn; what is decided does not depend on it."""


class Rules(msgspec.Struct, frozen=True):
    """Everything configured that decisions about a phone depend on."""

    policy: Policy
    pace_defaults: pacing.PaceDefaults = pacing.PaceDefaults()
    liveness_ms: int = 60_000
    global_rpm: int = 0
    """A ceiling for the whole fleet; 0 is none."""
    retry_delay_ms: int = 60_000
    """Before the first retry; here for the forecast, which has to count with it."""

    @property
    def lead_ms(self) -> int:
        return self.policy.typing_ms[1] + LEAD_MARGIN_MS


class Sender(msgspec.Struct, frozen=True, gc=False):
    """A phone's facts seen through the rules at one moment."""

    facts: PhoneFacts
    level: Level
    pace: pacing.Pace
    zone: str
    day: str
    day_ends_at: int
    windows: tuple[hours.Window, ...]

    @property
    def used_today(self) -> int:
        return budget.used_on(self.day, counted_day=self.facts.cap_day, counted=self.facts.cap_used)

    @property
    def left_today(self) -> int | None:
        return budget.left(self.level, self.used_today)

    def may_write_to(self, *, is_known: bool, now_ms: int) -> bool:
        """A restricted number starts no new chats; people it knows go on."""
        return is_known or not self.facts.restriction or self.facts.restricted_until <= now_ms

    def slot(self, *, rng: "Random") -> tuple[int, pacing.Gap]:
        """The next slot, and the gap it rests on: the one drawn before if the rules are still the same."""
        gap = pacing.Gap(self.facts.gap_ms, self.facts.gap_key)
        if gap.key != self.pace.key:
            gap = pacing.draw_gap(self.pace, self.facts.sends, self.starts, rng=rng)
        return pacing.next_slot(self.pace, self.facts.sends, gap.ms, self.starts), gap

    def burst_with(self, send_after: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """When the last messages and the one that follows them were on the wire at the latest, and at the earliest; no
        more of them than make a burst."""
        limit = self.pace.burst_limit
        if not limit:
            return (send_after,), (send_after,)
        return (*self.facts.sends[-limit:], send_after), (*self.starts[-limit:], send_after)

    @property
    def starts(self) -> Sequence[int]:
        return self.facts.starts or self.facts.sends


def sender(facts: PhoneFacts, rules: Rules, *, now_ms: int) -> Sender:
    level = rules.policy.level(facts.created_at, now_ms=now_ms)
    zone = hours.phone_zone(facts.phone, facts.timezone)
    day, day_ends_at = hours.day_and_end(zone, now_ms)
    return Sender(
        facts=facts,
        level=level,
        pace=pacing.pace_for(
            level,
            rules.policy,
            rules.pace_defaults,
            rpm_override=facts.rpm_override,
            rpm_source=facts.rpm_source,
            fields=facts.pacer,
        ),
        zone=zone,
        day=day,
        day_ends_at=day_ends_at,
        windows=hours.phone_windows(level, zone),
    )


def is_available(facts: PhoneFacts, rules: Rules, *, now_ms: int) -> bool:
    """Whether a new conversation may start on this number."""
    able = any(session.may_send(now_ms=now_ms, liveness_ms=rules.liveness_ms) for session in facts.sessions)
    return able and not facts.quarantined and facts.cooldown_until <= now_ms
