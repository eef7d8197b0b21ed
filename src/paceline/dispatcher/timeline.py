"""A number's pacing on a time line: when it sent, when it may send next, when it rests and sleeps. Reads only.

The next slot is known; those after it are expected: the middle of the window each time, with the rests a burst brings.
Neighbours: `watching` tells the rest of a number's pace in words.
"""

from paceline.dispatcher.schemas_overview import PacingView, Stretch
from paceline.dispatcher.watching import Watching, next_slot_at, restriction
from paceline.policy import hours, pacing
from paceline.policy.facts import Rules, Sender, sender
from paceline.store.operators import WatchedPhone

SLOTS = 20
"""Expected slots: as many as can be told apart on a line."""
AHEAD_MS = 86_400_000


class Timeline:
    def __init__(self, watching: Watching, rules: Rules) -> None:
        self._watching = watching
        self._rules = rules

    async def of(self, session: str, *, now_ms: int) -> PacingView:
        return pacing_view(session, await self._watching.look(session), self._rules, now_ms=now_ms)


def pacing_view(session: str, phone: WatchedPhone, rules: Rules, *, now_ms: int) -> PacingView:
    who = sender(phone.facts, rules, now_ms=now_ms)
    return PacingView(
        session_id=session,
        phone=phone.facts.phone,
        now=now_ms,
        sends=list(phone.facts.sends),
        slots=expected_slots(who, min(SLOTS, phone.queue_len), now_ms=now_ms),
        next_slot_at=next_slot_at(who, now_ms),
        burst_count=pacing.burst_count(who.pace, phone.facts.sends, who.starts),
        burst_limit=who.pace.burst_limit,
        burst_cooldown_ms=who.pace.burst_cooldown_ms,
        min_delay_ms=who.pace.min_ms,
        max_delay_ms=who.pace.max_ms,
        restriction=restriction(phone, now_ms),
        open=open_stretches(who, now_ms=now_ms),
        busy=phone.facts.unsettled is not None,
    )


def expected_slots(who: Sender, count: int, *, now_ms: int) -> list[int]:
    """When the next messages should go, while nothing else holds them up."""
    sends, starts, slots = list(who.facts.sends), list(who.starts), []
    mean_ms = (who.pace.min_ms + who.pace.max_ms) // 2
    at = next_slot_at(who, now_ms) or now_ms
    for _ in range(count):
        opens = hours.next_open(who.windows, at)
        if opens is None:
            break
        slots.append(opens)
        sends, starts = [*sends, opens], [*starts, opens]
        at = pacing.next_slot(who.pace, sends, mean_ms, starts)
    return slots


def open_stretches(who: Sender, *, now_ms: int) -> list[Stretch] | None:
    """Within the next day; None: it never sleeps."""
    if not who.windows:
        return None
    found: list[Stretch] = []
    at = now_ms
    while (opens := hours.next_open(who.windows, at)) is not None and opens < now_ms + AHEAD_MS:
        closes = hours.closes_at(who.windows, opens)
        if closes is None or closes <= opens:
            break
        found.append(Stretch(begin=opens, end=closes))
        at = closes
    return found
