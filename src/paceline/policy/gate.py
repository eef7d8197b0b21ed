"""The last gate: what a claim may still be told after the task was handed over, and between which times it may be
sent."""

from typing import Literal

import msgspec

from paceline.domain.reasons import Reason
from paceline.policy import hours, pacing
from paceline.policy.facts import Rules, Sender

LEASE_MARGIN_MS = 2_000
"""The write must happen this long before the lease ends, so that nothing is on its way when the lease is judged."""


class OutboxTask(msgspec.Struct, frozen=True, rename="camel"):
    """The task at the head of a session's outbox, as the gate sees it."""

    task: str
    to: str
    state: str
    expires_at: int
    send_after: int
    day: str
    tz: str | None = None
    suppressed: bool = False
    maybe_sent: bool = False
    is_known: bool = True
    job_paused: bool = False
    session_paused: bool = False


class Give(msgspec.Struct, frozen=True):
    send_after_ms: int
    send_before_ms: int
    lease_until_ms: int


class Refuse(msgspec.Struct, frozen=True):
    """Back to the head of the queue, or to an end; no attempt is counted and the day's unit returns."""

    kind: Literal["return", "park", "expire", "suppress", "fail"]
    reason: Reason
    until_ms: int = 0


def decide(task: OutboxTask, who: Sender, rules: Rules, *, lease_ms: int, now_ms: int) -> Give | Refuse:
    refusal = _message_refused(task, now_ms) or _phone_refused(who, now_ms) or _chat_refused(task, who, now_ms)
    if refusal is not None:
        return refusal
    windows = who.windows + hours.recipient_windows(rules.policy, task.to, task.tz, who.zone)
    opening = hours.next_open(windows, now_ms)
    if opening is None:
        return Refuse("fail", Reason.NO_COMMON_HOURS)
    if opening > now_ms:
        return Refuse("park", Reason.RECIPIENT_HOURS, opening)
    if task.day != who.day:
        return Refuse("return", Reason.DAILY_CAP)
    # The rules may have become stricter since the hand-over; the rest before this message obeys those of now.
    send_after = max(task.send_after, pacing.next_slot(who.pace, who.facts.sends, who.pace.shortest_ms, who.starts))
    # Typing that does not fit in before the slot must not eat up the lease.
    lease_until = max(now_ms + rules.policy.typing_ms[1], send_after) + lease_ms
    before = [lease_until - min(LEASE_MARGIN_MS, lease_ms // 2), task.expires_at, hours.day_ends_at(who.zone, now_ms)]
    closing = hours.closes_at(windows, now_ms)
    before += [] if closing is None else [closing]
    if send_after >= min(before):
        return Refuse("return", Reason.QUIET_HOURS)
    return Give(send_after, min(before), lease_until)


def _message_refused(task: OutboxTask, now_ms: int) -> Refuse | None:
    if task.maybe_sent and (task.suppressed or now_ms >= task.expires_at):
        return Refuse("fail", Reason.UNKNOWN_OUTCOME)
    if task.suppressed:
        return Refuse("suppress", Reason.SUPPRESSED)
    return Refuse("expire", Reason.EXPIRED) if now_ms >= task.expires_at else None


def _chat_refused(task: OutboxTask, who: Sender, now_ms: int) -> Refuse | None:
    if task.job_paused:
        return Refuse("return", Reason.JOB_PAUSED)
    if task.session_paused:
        return Refuse("return", Reason.SESSION_PAUSED)
    if not who.may_write_to(is_known=task.is_known, now_ms=now_ms):
        return Refuse("park", Reason(who.facts.restriction), who.facts.restricted_until)
    return None


def _phone_refused(who: Sender, now_ms: int) -> Refuse | None:
    facts = who.facts
    if facts.fleet_paused:
        return Refuse("return", Reason.FLEET_PAUSED)
    if facts.quarantined:
        return Refuse("return", Reason.QUARANTINED)
    if facts.cooldown_until > now_ms:
        return Refuse("return", Reason.COOLDOWN)
    if not hours.is_open(who.windows, now_ms):
        return Refuse("return", Reason.QUIET_HOURS)
    return None
