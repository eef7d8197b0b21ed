"""Why: what a number does at this moment and the facts that decide it, and one calm sentence for every reason.

`explain` asks `dispatch.decide` itself, so the answer cannot differ from what the dispatcher does. `sentence` needs no
more than what is stored with a wait, so a message's status reads the same as its number's page.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Literal
from zoneinfo import ZoneInfo

import msgspec
from msgspec.structs import replace

from paceline.domain.reasons import Reason
from paceline.domain.times import moment_ms
from paceline.policy import dispatch, hours, pacing
from paceline.policy.facts import PhoneFacts, Rules, Sender, sender

if TYPE_CHECKING:
    from random import Random

READY = "READY"
"""The rule of a number that nothing holds up."""
ENDED = "ENDED"
"""The rule of a task that is still in the queue but has its end already."""
HEADS_SHOWN = 8

_GOES_ON, _NEW_CHATS = "it goes on at {at}", "new chats may start again at {at}"
_SENTENCES: dict[str, tuple[str, str | None]] = {
    Reason.PACING: ("{number} rests between two messages", "the next may go at {at}"),
    Reason.QUIET_HOURS: ("outside {number}'s hours", _GOES_ON),
    Reason.RECIPIENT_HOURS: ("it is night where the recipient may be", _GOES_ON),
    Reason.DAILY_CAP: ("{number} has sent as many messages as it may in a day", _GOES_ON),
    Reason.NOT_CONNECTED: ("{number} is not connected; what waits for it stays in its queue", None),
    Reason.SESSION_PAUSED: (
        "{number} is paused until an operator resumes it; what waits for it stays in its queue",
        None,
    ),
    Reason.COOLDOWN: ("{number} rests because it was told to slow down", _GOES_ON),
    Reason.QUARANTINED: ("{number} is in quarantine; its queue waits for an operator", None),
    Reason.TIME_LOCKED: ("the platform lets {number} start no new chats for a while", _NEW_CHATS),
    Reason.CAPPED: ("{number} has used up the new chats the platform grants it", _NEW_CHATS),
    Reason.FLEET_PAUSED: ("all sending is paused until an operator resumes it", None),
    Reason.STOPPED: ("the dispatchers are stopped until an operator starts them", None),
    Reason.JOB_PAUSED: ("its job is paused until somebody resumes it", None),
    Reason.FREQUENCY_CAP: ("this person has had as many messages as they may get for now", "the next may go at {at}"),
    Reason.GLOBAL_LIMIT: ("the whole fleet sends as fast as its common limit allows", _GOES_ON),
    Reason.SCHEDULED: ("it is planned for later", "it is due at {at}"),
    Reason.RETRY: ("the last attempt failed and another follows", "it is due at {at}"),
    Reason.UNKNOWN_OUTCOME: ("it may have gone out, and no receipt has been found yet", None),
    Reason.UNSETTLED: ("{number} is busy with another message", None),
    Reason.NO_SESSIONS_AVAILABLE: ("no number is available at the moment; it goes on by itself when one is", None),
    Reason.WAITING_FOR_ROOM: ("all queues are full for the moment; it goes on by itself when there is room", None),
    Reason.IN_TURN: ("others stand before it in {number}'s queue", None),
    Reason.EXPIRED: ("its validity ended before it could be sent", None),
    Reason.SUPPRESSED: ("the recipient is on the suppression list", None),
    Reason.NO_COMMON_HOURS: ("there is no hour at which both {number} and the recipient are awake", None),
}
"""Why, and what the time means if there is one. Without the second half a stored time is only when we look again."""
NO_KNOWN_END = frozenset(reason for reason, (_, when) in _SENTENCES.items() if when is None)

_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
"""Written out here, since strftime follows the machine's language."""


class HeadExplained(msgspec.Struct, frozen=True, rename="camel"):
    """What would become of one task at the head of the queue."""

    task: str
    action: Literal["send", "wait", "park", "drop", "expire", "suppress", "fail"]
    rule: str
    until: int | None
    text: str


class ExplainedFacts(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    trust_level: str
    rpm_default: int
    rpm_override: int | None
    rpm_source: str | None
    effective_rpm: float
    window: tuple[int, int]
    burst_count: int
    burst_limit: int
    sent_today: int
    daily_cap: int | None
    budget_left: int | None
    local_time: str
    hours: tuple[int, int] | None
    next_slot_at: int
    cooldown_until: int | None
    restriction: str | None
    restricted_until: int | None
    quarantined: bool
    fleet_paused: bool
    fleet_stopped: bool
    connected_sessions: int
    unsettled: str | None


class Explanation(msgspec.Struct, frozen=True, rename="camel"):
    decision: Literal["send", "wait", "idle"]
    rule: str
    until: int | None
    text: str
    facts: ExplainedFacts
    heads: tuple[HeadExplained, ...] = ()


def sentence(reason: str, *, until_ms: int | None, zone: str, phone: str | None = None) -> str:
    """One sentence for people; the time, where it is a promise, in the number's zone."""
    why, when = _SENTENCES.get(reason, (f"it waits ({reason})", _GOES_ON))
    text = why.format(number=f"number {phone}" if phone else "this number")
    if when is not None and until_ms is not None and moment_ms(until_ms) is not None:
        text += "; " + when.format(at=_at(until_ms, zone))
    return text[0].upper() + text[1:] + "."


def explain(facts: PhoneFacts, rules: Rules, *, now_ms: int, rng: "Random") -> Explanation:
    who = sender(facts, rules, now_ms=now_ms)
    slot, gap = who.slot(rng=rng)
    # With this gap in the facts the decision rests on the slot that is shown, also if it had to be drawn for the look.
    decision = dispatch.decide(replace(facts, gap_ms=gap.ms, gap_key=gap.key), rules, now_ms=now_ms, rng=rng)
    slot = max(slot, facts.global_free_at, now_ms)
    kind, rule, until, text = _phone_text(decision.final, who, slot)
    shown = _facts(who, rules, slot, now_ms=now_ms)
    return Explanation(kind, rule, until, text, shown, tuple(_heads(facts, decision, who, slot))[:HEADS_SHOWN])


def _phone_text(
    final: dispatch.Send | dispatch.Wait | dispatch.Idle, who: Sender, slot: int
) -> tuple[Literal["send", "wait", "idle"], str, int | None, str]:
    if isinstance(final, dispatch.Idle):
        return "idle", READY, None, "Nothing waits for this number."
    if isinstance(final, dispatch.Send):
        at = _at(final.send_after_ms, who.zone)
        return "send", READY, final.send_after_ms, f"Nothing holds this number up; its next message may go at {at}."
    if final.reason is Reason.IN_TURN:
        return "wait", final.reason, None, "What stands first cannot go now; those behind are looked at next."
    until = _until(final, slot)
    return "wait", final.reason, until, sentence(final.reason, until_ms=until, zone=who.zone)


def _until(wait: dispatch.Wait, slot: int) -> int | None:
    """When the message may go. A wait for a slot ends earlier than that, so that typing fits in."""
    if wait.reason in NO_KNOWN_END:
        return None
    return slot if wait.reason in (Reason.PACING, Reason.GLOBAL_LIMIT) else wait.until_ms


def _heads(facts: PhoneFacts, decision: dispatch.Decision, who: Sender, slot: int) -> Iterator[HeadExplained]:
    """In the order of the queue: what is decided for a task; the first of the others waits for the number, the rest
    for their turn."""
    steps = {step.task: step for step in decision.steps}
    final: dispatch.Send | dispatch.Wait | dispatch.Idle | None = decision.final
    for head in facts.heads:
        if (step := steps.get(head.task)) is not None:
            yield _step(step, who)
        elif isinstance(final, dispatch.Send) and final.head.task == head.task:
            text = f"It may go at {_at(final.send_after_ms, who.zone)}."
            yield HeadExplained(head.task, "send", READY, final.send_after_ms, text)
        elif isinstance(final, dispatch.Wait):
            yield _waits(head.task, final.reason, _until(final, slot), who)
            final = None
        else:
            yield _waits(head.task, Reason.IN_TURN, None, who)


def _step(step: dispatch.Step, who: Sender) -> HeadExplained:
    if step.kind == "drop":
        return HeadExplained(step.task, "drop", ENDED, None, "It has ended already and leaves the queue.")
    until = step.until_ms if step.kind == "park" and step.reason not in NO_KNOWN_END else None
    return HeadExplained(step.task, step.kind, step.reason, until, sentence(step.reason, until_ms=until, zone=who.zone))


def _waits(task: str, rule: Reason, until: int | None, who: Sender) -> HeadExplained:
    return HeadExplained(task, "wait", rule, until, sentence(rule, until_ms=until, zone=who.zone))


def _facts(who: Sender, rules: Rules, slot: int, *, now_ms: int) -> ExplainedFacts:
    facts, pace = who.facts, who.pace
    restricted = bool(facts.restriction) and facts.restricted_until > now_ms
    return ExplainedFacts(
        trust_level=who.level.name,
        rpm_default=who.level.rpm,
        rpm_override=facts.rpm_override,
        rpm_source=(facts.rpm_source or "manual") if facts.rpm_override is not None else None,
        effective_rpm=round(pacing.effective_rpm(pace), 2),
        window=(pace.min_ms, pace.max_ms),
        burst_count=pacing.burst_count(pace, facts.sends, who.starts),
        burst_limit=pace.burst_limit,
        sent_today=who.used_today,
        daily_cap=who.level.daily_cap,
        budget_left=who.left_today,
        local_time=datetime.fromtimestamp(now_ms / 1000, _zone(who.zone)).isoformat(timespec="seconds"),
        hours=who.level.hours,
        next_slot_at=slot,
        cooldown_until=facts.cooldown_until if facts.cooldown_until > now_ms else None,
        restriction=facts.restriction if restricted else None,
        restricted_until=facts.restricted_until if restricted else None,
        quarantined=facts.quarantined,
        fleet_paused=facts.fleet_paused,
        fleet_stopped=facts.fleet_stopped,
        connected_sessions=sum(s.is_live(now_ms=now_ms, liveness_ms=rules.liveness_ms) for s in facts.sessions),
        unsettled=facts.unsettled,
    )


def _at(at_ms: int, zone: str) -> str:
    """Seconds only where there are any, rounded up: what is promised for 07:00 is not due at 06:59:59."""
    local = datetime.fromtimestamp(-(-at_ms // 1000), _zone(zone))
    clock = f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"
    return f"{clock} on {local.day} {_MONTHS[local.month - 1]} ({local.tzinfo})"


def _zone(name: str) -> tzinfo:
    return ZoneInfo(name) if hours.is_zone(name) else UTC
