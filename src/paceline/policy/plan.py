"""The plan: a prospect that people can read, and what would make it better, found by forecasting the changed fleet.

Neighbours: `prospect` says when, `suggest` asks what would help, the gateway's `plan` sifts the contacts.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import msgspec

from paceline.domain.reasons import Reason
from paceline.policy import audience
from paceline.policy.facts import Rules
from paceline.policy.forecast import ROUTE_AHEAD, Share, alike
from paceline.policy.prospect import Ask, Known, Prospect, Seat, kinds_of, prospect
from paceline.policy.trust import DAY_MS
from paceline.policy.workday import NEVER, Kind, meet

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
    kinds: tuple[Kind | None, ...] = ()
    """Of each seat, for those who go on from here."""


def plan(ask: Ask, seats: Sequence[Seat], rules: Rules, *, ahead: int = ROUTE_AHEAD) -> Plan:
    known = Known(seats, kinds_of(seats, rules, ask.start_ms))
    refused = _refused(ask, known, rules)
    sendable = msgspec.structs.replace(ask, size=max(0, ask.size - refused))
    found = prospect(sendable, seats, rules, ahead=ahead, known=known)
    reasons = ((str(Reason.NO_COMMON_HOURS), refused),) if refused else ()
    if found.outlook is None or not sendable.size:
        late = sendable.size if found.outlook is None and found.kinds and any(found.kinds) else 0
        return Plan(None, found.finish_ms if sendable.size else ask.start_ms, found.will_expire or late,
                    _why_nothing(seats, found), refused=reasons)  # fmt: skip
    shares = [share for share in found.outlook.shares if share.messages >= 0.5]
    own = sendable.size / max(1.0, sum(share.messages * share.phones for share in shares))
    phones = _phones(seats, found, own, sendable.size)
    shown = phones[:PHONES_SHOWN]
    return Plan(
        starts_at=min((share.start_ms for share in shares if share.start_ms < NEVER), default=None),
        finishes_at=found.finish_ms,
        will_expire=found.will_expire,
        bottleneck=bottleneck(found),
        days=_spread_days(sendable, shares) if found.spread_decides else _days(shares, own, sendable.size),
        phones=tuple(shown),
        other_phones=len(phones) - len(shown),
        other_messages=sum(phone.messages for phone in phones[PHONES_SHOWN:]),
        refused=reasons,
        kinds=found.kinds,
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
    return _limit(max(outlook.shares, key=lambda share: share.finish_ms if share.messages else 0))


def _limit(share: Share) -> str:
    return next((name for name in _ORDER if name in share.met), "PACE")


def _why_nothing(seats: Sequence[Seat], found: Prospect) -> str:
    if any(found.kinds):
        return "NOT_IN_SIGHT" if found.outlook is None else "NONE"
    facts = [seat.facts for seat in seats]
    if facts and all(fact.fleet_stopped for fact in facts):
        return str(Reason.STOPPED)
    if facts and all(fact.fleet_paused for fact in facts):
        return str(Reason.FLEET_PAUSED)
    if facts and all(fact.quarantined for fact in facts):
        return str(Reason.QUARANTINED)
    return str(Reason.NO_SESSIONS_AVAILABLE)


def _refused(ask: Ask, known: Known, rules: Rules) -> int:
    """People with whom no number has an hour in common."""
    groups, shares = audience.groups(ask.zones, rules.policy)
    kinds = [kind for kind in known.kinds if kind is not None]
    day = ask.start_ms // DAY_MS
    calendars = {kind.shifts[0].windows for kind in kinds}
    total = sum(ask.zones.values()) or 1
    never = sum(
        share
        for windows, share in zip(groups, shares, strict=True)
        if calendars and not any(meet(windows + calendar, day) for calendar in calendars)
    )
    return round(never * total * ask.size / total)


def _phones(seats: Sequence[Seat], found: Prospect, own: float, size: int) -> list[PhonePlan]:
    """Each number's part, the largest first; together they are the whole job."""
    outlook = found.outlook
    shares = {} if outlook is None else {share.kind: share for share in outlook.shares}
    merged = {} if outlook is None else {alike(share.kind): share for share in outlook.shares}
    parts = []
    for seat, kind in zip(seats, found.kinds, strict=True):
        share = None if kind is None else _share_of(kind, shares, merged)
        if share is not None and share.messages >= 0.5:
            parts.append((seat, share, share.messages * own))
    counts = _whole([amount for _, _, amount in parts], size)
    rows = [
        PhonePlan(
            phone=seat.facts.phone,
            session_id=min((session.id for session in seat.facts.sessions), default=None),
            messages=count,
            finishes_at=share.finish_ms if share.finish_ms < NEVER else None,
            limited_by=_limit(share),
        )
        for (seat, share, _), count in zip(parts, counts, strict=True)
        if count
    ]
    return sorted(rows, key=lambda row: (-row.messages, row.phone))


def _share_of(kind: Kind, shares: dict[Kind, Share], merged: dict[Kind, Share]) -> Share | None:
    return shares.get(kind) or merged.get(alike(kind))


def _days(shares: Sequence[Share], own: float, size: int) -> tuple[Day, ...]:
    """By the numbers' own calendars, so a day with numbers in several zones is longer than 24 hours."""
    messages: Counter[str] = Counter()
    phones: Counter[str] = Counter()
    for share in shares:
        for began, count in share.days.items():
            date = _date(began, share.kind.zone)
            messages[date] += count * share.phones * own  # type: ignore[assignment]
            phones[date] += share.phones
    dates = sorted(messages)
    counts = _whole([float(messages[date]) for date in dates], size)
    return tuple(Day(date, count, phones[date]) for date, count in zip(dates, counts, strict=True) if count)


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
