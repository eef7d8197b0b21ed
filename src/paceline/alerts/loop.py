"""Follows the incidents and delivers the alerts that follow from them.

One orchestrator alerts, under a lease. How far it has read and everything the policy remembers, the alerts that wait
included, are kept in one step, before the first delivery; then each delivery is followed by another. So a crash forgets
nothing, and repeats at most the one alert that was on its way. Nothing waits for this loop.
"""

import asyncio
from collections.abc import Sequence

import msgspec
import structlog

from paceline.alerts.channels import TIMEOUT_S, Channel, Outcome
from paceline.kits.failpoint import failpoint
from paceline.policy import alert_delivery
from paceline.policy.alert_kinds import Severity
from paceline.policy.alert_texts import TEST, headed
from paceline.policy.alerts import Alert, AlertRules, Memory, Seen, due_ms, step
from paceline.store.alerts import AlertBook, Incidents

log = structlog.stdlib.get_logger(__name__)

BATCH = 500
LEASE_MS = 30_000
"""Beyond what a step may take with every channel at its timeout. Another orchestrator goes on so long after a crash."""


class Alerts:
    def __init__(self, book: AlertBook, channels: Sequence[Channel], rules: AlertRules, *, holder: str) -> None:
        self._book = book
        self._channels = {channel.name: channel for channel in channels}
        self._rules = rules
        self._holder = holder
        self._lease_ms = LEASE_MS + len(channels) * int(TIMEOUT_S * 1000)
        self._failing: set[str] = set()

    @property
    def channels(self) -> list[str]:
        return list(self._channels)

    async def step(self, now_ms: int) -> int | None:
        """Takes in what happened, delivers one alert to each channel that is ready. Now if there may be more."""
        if not await self._book.hold(self._holder, now_ms=now_ms, ttl_ms=self._lease_ms):
            return None
        kept = await self._book.kept()
        found = await self._book.after(kept.cursor, limit=BATCH)
        before = _remembered(kept.memory)
        seen = [Seen(incident.kind, incident.at, incident.fields) for incident in found.items]
        memory = step(before, [*_missed(found, now_ms), *seen], self._rules, self.channels, now_ms=now_ms)
        if found.place != kept.cursor or memory != before:
            if not await self._save(found.place, memory, now_ms):
                return None
            failpoint("alerts-taken")
        sent = False
        for channel in self._channels.values():
            alert = alert_delivery.next_for(memory, channel.name, now_ms=now_ms)
            if alert is None:
                continue
            memory, sent = await self._deliver(channel, alert, memory, now_ms), True
            failpoint("alerts-sent")
            if not await self._save(found.place, memory, now_ms):
                return None
        return now_ms if sent or len(found.items) == BATCH else due_ms(memory)

    async def test(self) -> list[tuple[str, Outcome]]:
        """Sends a test to every channel, at once and past everything that waits."""
        text = headed(self._rules.name, Severity.INFO, TEST)
        sending = [_sent(channel, text, Severity.INFO) for channel in self._channels.values()]
        return list(zip(self._channels, await asyncio.gather(*sending), strict=True))

    async def _deliver(self, channel: Channel, alert: Alert, memory: Memory, now_ms: int) -> Memory:
        text = alert_delivery.text_for(memory, alert, channel.name, self._rules)
        outcome = await _sent(channel, text, alert.severity)
        self._note(channel.name, outcome)
        if outcome.ok:
            return alert_delivery.delivered(memory, alert, channel.name)
        return alert_delivery.failed(memory, alert, channel.name, retry_after_ms=outcome.retry_after_ms, now_ms=now_ms)

    async def _save(self, place: str, memory: Memory, now_ms: int) -> bool:
        kept = msgspec.json.encode(memory)
        return await self._book.save(self._holder, place, kept, now_ms=now_ms, ttl_ms=self._lease_ms)

    def _note(self, name: str, outcome: Outcome) -> None:
        """Told once when it begins and once when it is over, not for every try."""
        if outcome.ok and name in self._failing:
            log.info("alerts are delivered again", channel=name)
            self._failing.discard(name)
        elif not outcome.ok and name not in self._failing:
            log.error("an alert could not be delivered; it is tried again", channel=name, reason=outcome.reason)
            self._failing.add(name)


async def _sent(channel: Channel, text: str, severity: Severity) -> Outcome:
    try:
        return await channel.send(text, severity)
    except Exception as error:
        # A fault of ours in one channel must not silence the others. Without its words: they may hold an address.
        log.error("a channel failed in an unexpected way", channel=channel.name, error=type(error).__name__)
        return Outcome(ok=False, reason=f"it failed ({type(error).__name__})")


def _remembered(kept: bytes | None) -> Memory:
    if kept is None:
        return Memory()
    try:
        return msgspec.json.decode(kept, type=Memory)
    except msgspec.DecodeError:
        # Of a version that kept something else. What waited is in the list of incidents.
        log.error("what the alerts remembered cannot be read; they begin anew")
        return Memory()


def _missed(found: Incidents, now_ms: int) -> list[Seen]:
    return [Seen("INCIDENTS_MISSED", now_ms, {})] if found.behind else []
