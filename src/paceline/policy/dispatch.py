"""What a due phone does now: send, wait or hold; and what happens to the tasks at the head of its queue on the way
there.

`decide` is the one place that orders the rules. `store.pacers.hand_off` applies the answer, or refuses because the
facts changed meanwhile.
"""

from collections.abc import Container
from typing import TYPE_CHECKING, Literal

import msgspec

from paceline.domain.reasons import Reason
from paceline.domain.states import WAITING
from paceline.policy import hours, pacing
from paceline.policy.facts import Head, PhoneFacts, Rules, Sender, sender

if TYPE_CHECKING:
    from random import Random

RECHECK_MS = 60_000
"""A held phone is looked at again this often even if no event wakes it; it bounds what a lost wake-up costs."""
PINNED_RECHECK_MS = 30_000
PAUSED_RECHECK_MS = 600_000
"""What a paused job left in queues is looked at again this often; resuming it brings most of it back at once. So is
what only a session could send that nobody but an operator brings back."""

StepKind = Literal["drop", "expire", "suppress", "fail", "park"]


class Step(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Something to do with one head task before the phone's own decision."""

    kind: StepKind
    entry: str
    task: str
    reason: str = ""
    until_ms: int = 0


class Send(msgspec.Struct, frozen=True, gc=False):
    head: Head
    session_id: str
    send_after_ms: int
    gap: pacing.Gap
    """The rest that follows this message."""
    day: str
    cap: int | None


class Wait(msgspec.Struct, frozen=True, gc=False):
    until_ms: int
    reason: Reason
    gap: pacing.Gap | None = None


class Idle(msgspec.Struct, frozen=True):
    """Nothing that waits; the next push wakes it."""


class Decision(msgspec.Struct, frozen=True, gc=False):
    final: Send | Wait | Idle
    steps: tuple[Step, ...] = ()


def decide(facts: PhoneFacts, rules: Rules, *, now_ms: int, rng: "Random") -> Decision:
    steps, heads = _clear(facts, now_ms)
    if not heads:
        return Decision(Wait(now_ms, Reason.IN_TURN) if facts.more else Idle(), tuple(steps))
    who = sender(facts, rules, now_ms=now_ms)
    blocked = _phone_blocks(who, rules, now_ms)
    if blocked is not None:
        return Decision(blocked, tuple(steps))
    slot, gap = who.slot(rng=rng)
    if facts.global_free_at - rules.lead_ms > now_ms and facts.global_free_at > slot:
        return Decision(Wait(facts.global_free_at - rules.lead_ms, Reason.GLOBAL_LIMIT, gap), tuple(steps))
    slot = max(slot, facts.global_free_at)
    if slot - rules.lead_ms > now_ms:
        return Decision(Wait(slot - rules.lead_ms, Reason.PACING, gap), tuple(steps))
    send_after = max(slot, now_ms)
    if send_after >= _limit(who, who.windows, now_ms):
        # The slot lies behind closing time or midnight; from there the usual rules say what to wait for.
        return Decision(Wait(send_after, Reason.PACING, gap), tuple(steps))
    return _first_that_may_go(who, rules, heads, steps, send_after, now_ms=now_ms, rng=rng)


def _clear(facts: PhoneFacts, now_ms: int) -> tuple[list[Step], list[Head]]:
    """Tasks that will not go at all leave the queue first, also while the phone itself has to wait."""
    steps: list[Step] = []
    heads: list[Head] = []
    for head in facts.heads:
        # Without a state: its job is no longer kept.
        if not head.state or head.state not in WAITING:
            steps.append(Step("drop", head.entry, head.task))
        elif head.maybe_sent and (head.suppressed or now_ms >= head.expires_at):
            # "suppressed" and "expired" say that it was not sent. Of one that may have been, that would be a lie.
            steps.append(Step("fail", head.entry, head.task, Reason.UNKNOWN_OUTCOME))
        elif head.suppressed:
            steps.append(Step("suppress", head.entry, head.task, Reason.SUPPRESSED))
        elif now_ms >= head.expires_at:
            steps.append(Step("expire", head.entry, head.task, Reason.EXPIRED))
        else:
            heads.append(head)
    return steps, heads


def _phone_blocks(who: Sender, rules: Rules, now_ms: int) -> Wait | None:
    facts = who.facts
    if facts.fleet_stopped:
        return Wait(now_ms + RECHECK_MS, Reason.STOPPED)
    if facts.fleet_paused:
        return Wait(now_ms + RECHECK_MS, Reason.FLEET_PAUSED)
    if facts.quarantined:
        return Wait(now_ms + RECHECK_MS, Reason.QUARANTINED)
    if facts.unsettled:
        return Wait(now_ms + RECHECK_MS, Reason.UNSETTLED)
    live = [session for session in facts.sessions if session.is_live(now_ms=now_ms, liveness_ms=rules.liveness_ms)]
    if not live:
        return Wait(now_ms + RECHECK_MS, Reason.NOT_CONNECTED)
    if all(session.paused for session in live):
        return Wait(now_ms + RECHECK_MS, Reason.SESSION_PAUSED)
    if facts.cooldown_until > now_ms:
        return Wait(facts.cooldown_until, Reason.COOLDOWN)
    opening = hours.next_open(who.windows, now_ms)
    if opening != now_ms:
        return Wait(opening or now_ms + RECHECK_MS, Reason.QUIET_HOURS)
    if who.left_today == 0:
        return Wait(who.day_ends_at, Reason.DAILY_CAP)
    return None


def _limit(who: Sender, windows: tuple[hours.Window, ...], now_ms: int) -> int:
    """The end of the present: closing time, or the midnight that ends the day whose unit would be taken."""
    closing = hours.closes_at(windows, now_ms)
    return who.day_ends_at if closing is None else min(closing, who.day_ends_at)


def _first_that_may_go(
    who: Sender, rules: Rules, heads: list[Head], steps: list[Step], send_after: int, *, now_ms: int, rng: "Random"
) -> Decision:
    able = [s.id for s in who.facts.sessions if s.may_send(now_ms=now_ms, liveness_ms=rules.liveness_ms)]
    for head in heads:
        step = _recipient_blocks(head, who, rules, able, send_after=send_after, now_ms=now_ms)
        if step is None:
            return Decision(_send(who, head, able, send_after, rng=rng), tuple(steps))
        steps.append(step)
    return Decision(Wait(now_ms, Reason.IN_TURN), tuple(steps))


def _recipient_blocks(
    head: Head, who: Sender, rules: Rules, able: Container[str], *, send_after: int, now_ms: int
) -> Step | None:
    """Why this task cannot go now although the phone could: it is parked until its own time, or ends."""

    def park(reason: Reason, until_ms: int) -> Step:
        return Step("park", head.entry, head.task, reason, min(until_ms, head.expires_at))

    if head.job_paused:
        return park(Reason.JOB_PAUSED, now_ms + PAUSED_RECHECK_MS)
    if head.pinned is not None and head.pinned not in able:
        own = next((session for session in who.facts.sessions if session.id == head.pinned), None)
        if own is not None and own.paused:
            return park(Reason.SESSION_PAUSED, now_ms + PINNED_RECHECK_MS)
        is_over = own is None or own.connection in ("FAILED", "STOPPED")
        return park(Reason.NOT_CONNECTED, now_ms + (PAUSED_RECHECK_MS if is_over else PINNED_RECHECK_MS))
    if not who.may_write_to(is_known=head.is_known, now_ms=now_ms):
        return park(Reason(who.facts.restriction), who.facts.restricted_until)
    if head.frequency_free_at > now_ms:
        return park(Reason.FREQUENCY_CAP, head.frequency_free_at)
    windows = who.windows + hours.recipient_windows(rules.policy, head.to, head.tz, who.zone)
    opening = hours.next_open(windows, now_ms)
    if opening is None:
        return Step("fail", head.entry, head.task, Reason.NO_COMMON_HOURS)
    if opening > now_ms:
        return park(Reason.RECIPIENT_HOURS, opening)
    if send_after >= min(head.expires_at, _limit(who, windows, now_ms)):
        return park(Reason.RECIPIENT_HOURS, hours.next_open(windows, send_after) or head.expires_at)
    return None


def _send(who: Sender, head: Head, able: list[str], send_after: int, *, rng: "Random") -> Send:
    return Send(
        head=head,
        session_id=head.pinned or min(able),
        send_after_ms=send_after,
        gap=pacing.draw_gap(who.pace, *who.burst_with(send_after), rng=rng),
        day=who.day,
        cap=who.level.daily_cap,
    )
