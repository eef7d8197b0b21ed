"""Judges of the clock: pace with what operators and SmartGuard set, the fleet's rate, a person's patience, caps and
hours, times asked for (I3, I4)."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

import msgspec

from paceline.policy import hours
from paceline.policy.trust import Level
from paceline.testing.evidence import Evidence, Wire
from paceline.testing.outside import Claim, Terms

MINUTE_MS = 60_000
SPREAD = 0.2


class Allowed(msgspec.Struct, frozen=True):
    """The pace that must hold, worked out here from what was set and not by the code that is judged."""

    shortest_ms: int
    rpm: int
    burst_limit: int
    burst_rest_ms: int


def pace_is_kept(evidence: Evidence) -> Iterator[str]:
    """The rules in force when a message was claimed hold against everything its number had sent before."""
    for phone, events in evidence.wire_by_phone.items():
        times = [event.at for event in events]
        for number, event in enumerate(events):
            claim = evidence.claim_of(event)
            if claim is None:
                yield f"{phone}: {event.task_id} went over the wire at {event.at} and nobody had claimed it"
                continue
            faults = [_fault(allowed, times[: number + 1]) for allowed in _in_force(evidence, phone, claim)]
            if all(faults):
                yield f"{phone}: {event.task_id} at {event.at}: {faults[0]}"


def _in_force(evidence: Evidence, phone: str, claim: Claim) -> list[Allowed]:
    """The rules may have changed while the gate looked: then either is right."""
    terms = evidence.outside.terms_during(phone, claim.asked, claim.at)
    return [_allowed(evidence, evidence.level(phone, claim.asked), each) for each in terms]


def _allowed(evidence: Evidence, level: Level, terms: Terms) -> Allowed:
    policy, defaults, fields = evidence.scenario.policy, evidence.world.rules.pace_defaults, terms.fields
    shortest, rpm = (level.delay_ms or (defaults.min_delay_ms, 0))[0], level.rpm
    if fields.rpm is not None:
        shortest, rpm = _by_rate(fields.rpm), fields.rpm
    elif terms.override is not None and terms.source == "smartguard":
        # Both must hold, its own trust and the override: it only ever slows.
        shortest, rpm = max(shortest, _by_rate(terms.override)), min(rpm, terms.override)
    elif terms.override is not None:
        shortest, rpm = _by_rate(terms.override), terms.override
    return Allowed(
        int((shortest if fields.min_delay_ms is None else fields.min_delay_ms) * (1 - policy.jitter)),
        rpm,
        _first(fields.burst_limit, policy.burst_limit, defaults.burst_limit),
        _first(fields.burst_cooldown_ms, policy.burst_cooldown_ms, defaults.burst_cooldown_ms),
    )


def _by_rate(rpm: int) -> int:
    return int(MINUTE_MS / rpm * (1 - SPREAD))


def _first(*values: int | None) -> int:
    return next(value for value in values if value is not None)


def _fault(allowed: Allowed, times: list[int]) -> str:
    """What is wrong with the last of these."""
    if len(times) > 1 and times[-1] - times[-2] < allowed.shortest_ms:
        return f"{times[-1] - times[-2]} ms between two sends, at least {allowed.shortest_ms} needed"
    if len(times) > allowed.rpm and times[-1] - times[-1 - allowed.rpm] <= MINUTE_MS:
        return f"more than {allowed.rpm} sends in the minute before"
    burst = times[-1 - allowed.burst_limit :]
    full = allowed.burst_limit > 0 and allowed.burst_rest_ms > 0 and len(burst) > allowed.burst_limit
    if full and all(later - earlier < allowed.burst_rest_ms for earlier, later in pairwise(burst)):
        return f"{allowed.burst_limit + 1} sends without a rest"
    return ""


def the_fleet_keeps_its_rate(evidence: Evidence) -> Iterator[str]:
    most = evidence.scenario.global_rpm
    times = [event.at for event in evidence.wire]
    for number in range(most, len(times)) if most else ():
        if times[number] - times[number - most] <= MINUTE_MS:
            yield f"more than {most} sends of the whole fleet in the minute before {times[number]}"


def nobody_is_written_to_too_often(evidence: Evidence) -> Iterator[str]:
    """Distinct messages to a person in any window, over all numbers."""
    most, window_ms = evidence.scenario.frequency
    people: dict[str, list[Wire]] = defaultdict(list)
    for line in evidence.lines if most else ():
        people[line.to].append(line)
        tasks = {other.task_id for other in people[line.to] if line.at - other.at < window_ms}
        if len(tasks) > most:
            yield f"{line.to} got {len(tasks)} messages within {window_ms} ms before {line.at}"


def caps_and_hours_are_kept(evidence: Evidence) -> Iterator[str]:
    for plan in evidence.scenario.numbers:
        days: Counter[str] = Counter()
        for line in evidence.by_phone[plan.phone]:
            levels = _levels(evidence, plan.phone, line)
            at, day = evidence.told_time(line), hours.local_day(plan.timezone, line.at)
            # Where a clock was set back over midnight, services disagree on the day.
            days[day] += day == hours.local_day(plan.timezone, line.at - evidence.behind_ms)
            if all(level.daily_cap is not None and days[day] > level.daily_cap for level in levels):
                yield f"{plan.phone}: {days[day]} sends on {day}, the cap is {levels[0].daily_cap}"
            if not any(hours.is_open(hours.phone_windows(level, plan.timezone), at) for level in levels):
                yield f"{plan.phone} sent at {line.at}, outside its hours"
            awake = hours.recipient_windows(evidence.scenario.policy, line.to, None, plan.timezone)
            if not hours.is_open(awake, at):
                yield f"{line.to} was written to at {line.at}, outside their hours"


def _levels(evidence: Evidence, phone: str, event: Wire) -> list[Level]:
    """The number may have grown up between the claim and the send."""
    claim = evidence.claim_of(event)
    return [evidence.level(phone, at) for at in (claim.asked if claim else event.at, event.at)]


def nothing_goes_before_its_time(evidence: Evidence) -> Iterator[str]:
    for task, lines in evidence.by_task.items():
        due = evidence.due_at(task)
        if lines[0].at < due:
            yield f"{task} went out at {lines[0].at}, {due - lines[0].at} ms before its time"


def the_guard_keeps_its_rules(evidence: Evidence) -> Iterator[str]:
    """SmartGuard changes a number at most once a minute, touches no operator's word and goes not above trust."""
    last: dict[str, int] = {}
    for change in evidence.outside.guard_changes:
        if change.asked - last.get(change.phone, 0) < MINUTE_MS:
            yield f"{change.phone}: changed at {last[change.phone]} and again at {change.asked}"
        last[change.phone] = change.asked
        terms, trusted = change.terms, evidence.level(change.phone, change.asked).rpm
        if (terms.override is not None and terms.source == "manual") or terms.fields.rpm is not None:
            yield f"{change.phone}: an operator's rate was overwritten at {change.at}"
        if change.rpm is not None and change.rpm >= trusted:
            yield f"{change.phone}: set to {change.rpm} at {change.at}, its trust is {trusted}"
