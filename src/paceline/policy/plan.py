"""The plan: a prospect that people can read, and what would make it better, found by forecasting the changed fleet.

Neighbours: `prospect` says when, `suggest` asks what would help, the gateway's `plan` sifts the contacts.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import msgspec

from paceline.domain.reasons import Reason
from paceline.policy import audience
from paceline.policy.crew import Crew
from paceline.policy.facts import Rules
from paceline.policy.forecast import ROUTE_AHEAD, Share
from paceline.policy.prospect import Ask, Prospect, prospect
from paceline.policy.trust import DAY_MS
from paceline.policy.workday import NEVER, meet

PHONES_SHOWN = 100
_ORDER = ("DAILY_CAP", "RECIPIENT_HOURS", "HOURS")
"""Of several things a number had to wait for, the one that costs most."""


class Day(msgspec.Struct, frozen=True, rename="camel"):
    date: str
    """In the timezone of the numbers."""
    messages: int
    phones: int


class PhonePlan(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    phone: str
    session_id: str | None = None
    messages: int
    finishes_at: int | None
    limited_by: str


class Plan(msgspec.Struct, frozen=True):
    starts_at: int | None
    finishes_at: int | None
    will_expire: int
    bottleneck: str
    days: tuple[Day, ...] = ()
    phones: tuple[PhonePlan, ...] = ()
    other_phones: int = 0
    other_messages: int = 0
    refused: tuple[tuple[str, int], ...] = ()
    late_by: str = ""
    """What keeps those waiting that will expire."""


def plan(ask: Ask, crew: Crew, rules: Rules, *, ahead: int = ROUTE_AHEAD) -> Plan:
    refused = _refused(ask, crew, rules)
    sendable = msgspec.structs.replace(ask, size=max(0, ask.size - refused))
    found = prospect(sendable, crew, rules, ahead=ahead)
    reasons = ((str(Reason.NO_COMMON_HOURS), refused),) if refused else ()
    if found.outlook is None or not sendable.size:
        late = sendable.size if found.outlook is None and crew.groups else 0
        why = _why_nothing(crew, found)
        return Plan(None, found.finish_ms if sendable.size else ask.start_ms, found.will_expire or late,
                    why, refused=reasons, late_by=why)  # fmt: skip
    shares = [share for share in found.outlook.shares if share.fresh >= 0.5]
    own = sendable.size / max(1.0, sum(share.fresh * share.phones for share in shares))
    shown, others, their_messages = _phones(found.crew or crew, found.outlook.shares, own, sendable.size)
    return Plan(
        starts_at=min((share.start_ms for share in shares if share.start_ms < NEVER), default=None),
        finishes_at=found.finish_ms,
        will_expire=found.will_expire,
        bottleneck=bottleneck(found),
        days=_spread_days(sendable, shares) if found.spread_decides else _days(shares, own, sendable.size),
        phones=tuple(shown),
        other_phones=others,
        other_messages=their_messages,
        refused=reasons,
        late_by=found.late_by or bottleneck(found),
    )


def bottleneck(found: Prospect) -> str:
    """What says when the job is done."""
    outlook = found.outlook
    if outlook is None or not outlook.shares:
        return "NONE"
    if found.spread_decides:
        return "SPREAD"
    if outlook.is_ceiling:
        return str(Reason.GLOBAL_LIMIT)
    return _limit(max(outlook.shares, key=lambda share: share.finish_ms if share.messages and share.is_part else 0))


def _limit(share: Share) -> str:
    return next((name for name in _ORDER if name in share.met), "PACE")


def _why_nothing(crew: Crew, found: Prospect) -> str:
    if crew.groups:
        return "NOT_IN_SIGHT" if found.outlook is None else "NONE"
    facts = [seat.facts for seat in crew.seats]
    if facts and all(fact.fleet_stopped for fact in facts):
        return str(Reason.STOPPED)
    if facts and all(fact.fleet_paused for fact in facts):
        return str(Reason.FLEET_PAUSED)
    if facts and all(fact.quarantined for fact in facts):
        return str(Reason.QUARANTINED)
    if facts and all(fact.sessions and all(session.paused for session in fact.sessions) for fact in facts):
        return str(Reason.SESSION_PAUSED)
    return str(Reason.NO_SESSIONS_AVAILABLE)


def _refused(ask: Ask, crew: Crew, rules: Rules) -> int:
    """People with whom no number has an hour in common."""
    groups, shares = audience.groups(ask.zones, rules.policy)
    day = ask.start_ms // DAY_MS
    calendars = {kind.shifts[0].windows for kind, _ in crew.groups}
    total = sum(ask.zones.values()) or 1
    never = sum(
        share
        for windows, share in zip(groups, shares, strict=True)
        if calendars and not any(meet(windows + calendar, day) for calendar in calendars)
    )
    return round(never * total * ask.size / total)


def _phones(crew: Crew, shares: Sequence[Share], own: float, size: int) -> tuple[list[PhonePlan], int, int]:
    """The numbers with the largest parts, and how many others have how many messages; together they are the whole job.

    Numbers of one group have the same part, so whole messages are dealt out by group: ten thousand rows that nobody
    sees need not be made.
    """
    amounts = [share.fresh * own if share.fresh >= 0.5 else 0.0 for share in shares]
    least, one_more = _dealt(amounts, [share.phones for share in shares], size)
    members: list[list[int]] = [[] for _ in shares]
    for index, place in enumerate(crew.places):
        if place >= 0:
            members[place].append(index)
    parts = []
    """(messages, group, which of its numbers)"""
    for place, some in enumerate(members):
        lucky = one_more[place]
        parts += [(least[place] + 1, place, some[:lucky]), (least[place], place, some[lucky:])]
    parts = sorted((part for part in parts if part[0] and part[2]), key=lambda part: -part[0])
    shown: list[PhonePlan] = []
    for messages, place, some in parts:
        if len(shown) < PHONES_SHOWN:
            shown += [_phone(crew, index, messages, shares[place]) for index in some[: PHONES_SHOWN - len(shown)]]
    shown.sort(key=lambda row: (-row.messages, row.phone))
    others = sum(len(some) for _, _, some in parts) - len(shown)
    return shown, others, sum(messages * len(some) for messages, _, some in parts) - sum(row.messages for row in shown)


def _phone(crew: Crew, index: int, messages: int, share: Share) -> PhonePlan:
    facts = crew.seats[index].facts
    return PhonePlan(
        phone=facts.phone,
        session_id=min((session.id for session in facts.sessions), default=None),
        messages=messages,
        finishes_at=share.finish_ms if share.finish_ms < NEVER else None,
        limited_by=_limit(share),
    )


def _dealt(amounts: Sequence[float], phones: Sequence[int], size: int) -> tuple[list[int], list[int]]:
    """Whole messages for each number of a group, and how many numbers of it get one more; `size` in all."""
    total = sum(amount * count for amount, count in zip(amounts, phones, strict=True))
    if total <= 0:
        return [0 for _ in amounts], [0 for _ in amounts]
    exact = [amount * size / total for amount in amounts]
    least = [int(amount) for amount in exact]
    left = size - sum(whole * count for whole, count in zip(least, phones, strict=True))
    one_more = [0 for _ in amounts]
    for index in sorted(range(len(exact)), key=lambda index: least[index] - exact[index]):
        one_more[index] = min(left, phones[index]) if exact[index] else 0
        left -= one_more[index]
    return least, one_more


def _days(shares: Sequence[Share], own: float, size: int) -> tuple[Day, ...]:
    """By the numbers' own calendars, so a day with numbers in several zones is longer than 24 hours."""
    messages: Counter[str] = Counter()
    phones: Counter[str] = Counter()
    for share in shares:
        for began, count in _fresh_days(share):
            date = _date(began, share.kind.zone)
            messages[date] += count * share.phones * own  # type: ignore[assignment]
            phones[date] += share.phones
    dates = sorted(messages)
    counts = _whole([float(messages[date]) for date in dates], size)
    return tuple(Day(date, count, phones[date]) for date, count in zip(dates, counts, strict=True) if count)


def _fresh_days(share: Share) -> Iterator[tuple[int, float]]:
    """Without what it held before, which goes first."""
    held = share.messages - share.fresh
    for began, count in sorted(share.days.items()):
        fresh, held = max(0.0, count - held), max(0.0, held - count)
        if fresh > 0:
            yield began, fresh


def _spread_days(ask: Ask, shares: Sequence[Share]) -> tuple[Day, ...]:
    """A spread job the numbers keep up with goes out as it is scheduled."""
    zone = shares[0].kind.zone
    phones = sum(share.phones for share in shares)
    steps = min(ask.size, 2_000)
    found = Counter(
        _date(ask.start_ms + (ask.last_ms - ask.start_ms) * step // max(1, steps - 1), zone) for step in range(steps)
    )
    dates = sorted(found)
    counts = _whole([found[date] * ask.size / steps for date in dates], ask.size)
    return tuple(Day(date, count, phones) for date, count in zip(dates, counts, strict=True) if count)


def _date(at: int, zone: str) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).astimezone(ZoneInfo(zone)).date().isoformat()


def _whole(amounts: Sequence[float], size: int) -> list[int]:
    """Whole numbers with that sum; what rounding down left goes to the largest remainders."""
    total = sum(amounts)
    if total <= 0:
        return [0 for _ in amounts]
    exact = [amount * size / total for amount in amounts]
    whole = [int(amount) for amount in exact]
    order = sorted(range(len(exact)), key=lambda index: whole[index] - exact[index])
    for index in order[: size - sum(whole)]:
        whole[index] += 1
    return whole
