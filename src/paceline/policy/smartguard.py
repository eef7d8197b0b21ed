"""SmartGuard: slows a number down when its sends fail, and lets it recover step by step.

It only ever slows: an automatic override lies below the number's own rate, and reaching that rate removes it. What an
operator set is not touched. The dispatcher's guard loop asks `decide` for each number and stores the answer;
`pacing.pace_for` reads the override together with its source.
"""

from collections.abc import Iterable

import msgspec

from paceline.policy.facts import PhoneFacts, Rules
from paceline.policy.pacing import MINUTE_MS, SMARTGUARD

LADDER = (20, 15, 10, 5)
COLD_LADDER = (3, 2)
COLD_RPM = 3
"""Numbers whose level allows no more than this have a ladder of their own; the usual one ends above them."""
FAILURES_TO_SLOW = 3
QUEUE_TO_RECOVER = 2
"""A number with more waiting would use the freedom at once, so it has to prove itself on a short queue first."""


class GuardFacts(msgspec.Struct, frozen=True):
    """What SmartGuard looks at for one number."""

    level_rpm: int
    override: int | None
    source: str
    changed_at: int
    failures: tuple[int, ...]
    sent60s: int
    queue: int

    @property
    def automatic(self) -> int | None:
        """The override, if SmartGuard itself set it."""
        return self.override if self.source == SMARTGUARD else None


class Change(msgspec.Struct, frozen=True):
    """The override to set; None removes it."""

    rpm: int | None
    reason: str


def guard_facts(facts: PhoneFacts, rules: Rules, *, queue: int, now_ms: int) -> GuardFacts:
    """A rate in the number's own fields goes before any override, so it counts as an operator's override here."""
    is_set = facts.pacer.rpm is not None
    return GuardFacts(
        level_rpm=rules.policy.level(facts.created_at, now_ms=now_ms).rpm,
        override=facts.pacer.rpm if is_set else facts.rpm_override,
        source="manual" if is_set else facts.rpm_source,
        changed_at=facts.rpm_changed_at,
        failures=facts.failures,
        # Attempts that were refused are among the sends; without a confirmed one there is nothing to trust again.
        sent60s=_within_a_minute(facts.sends, now_ms) if now_ms - facts.last_sent_at < MINUTE_MS else 0,
        queue=queue,
    )


def decide(facts: GuardFacts, *, now_ms: int) -> Change | None:
    """One step down, one step up, or nothing; at most one change in a minute."""
    is_manual = facts.override is not None and facts.automatic is None
    if is_manual or now_ms - facts.changed_at < MINUTE_MS:
        return None
    # The last change is a minute old or older, so all of these came after it.
    failed = _within_a_minute(facts.failures, now_ms)
    if failed >= FAILURES_TO_SLOW and (slower := _step_down(facts)) is not None:
        return Change(slower, f"FAILURES: {failed} failed attempts in 60 s")
    if facts.automatic is None:
        return None
    if facts.automatic >= facts.level_rpm:
        return Change(None, f"OBSOLETE: the number's own {facts.level_rpm} a minute is no more than the override")
    if failed == 0 and facts.queue <= QUEUE_TO_RECOVER and facts.sent60s > 0:
        return Change(_step_up(facts), f"RECOVERED: {facts.sent60s} sent in 60 s, none failed")
    return None


def _step_down(facts: GuardFacts) -> int | None:
    """The greatest rung below the present rate; None at the bottom."""
    current = min(facts.level_rpm, facts.automatic or facts.level_rpm)
    return max((rung for rung in _ladder(facts) if rung < current), default=None)


def _step_up(facts: GuardFacts) -> int | None:
    """The least rung above the override; None (no override) if that is all the level allows, or more."""
    current = facts.automatic or 0
    higher = min((rung for rung in _ladder(facts) if rung > current), default=None)
    return higher if higher is not None and higher < facts.level_rpm else None


def _ladder(facts: GuardFacts) -> tuple[int, ...]:
    return COLD_LADDER if facts.level_rpm <= COLD_RPM else LADDER


def _within_a_minute(moments: Iterable[int], now_ms: int) -> int:
    return sum(at > now_ms - MINUTE_MS for at in moments)
