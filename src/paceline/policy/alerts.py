"""When an incident becomes an alert: at once, counted, or told in a digest. Pure: memory in, memory out.

    incidents ──step──► windows (one for each kind: what was told, what is gathered) ──► outbox ──► channels

The first of a kind and subject is told at once. What follows within the kind's window is gathered and told as one
digest when the window ends; then the next window is twice as long, up to an hour, until one stays empty. What exceeds
the rate of all alerts together is gathered too, so a flood is a handful of alerts whose numbers add up. `Memory` holds
all of it; whoever keeps it together with the place in the stream forgets nothing. Neighbours: `alert_kinds` and
`alert_texts` have the kinds and the words, `alert_delivery` what becomes of the outbox; `paceline.alerts` runs it all.
"""

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from paceline.policy.alert_kinds import KINDS, RANK, Fields, Kind, Severity
from paceline.policy.alert_texts import digest, named_of, severity_of, single, subject_of

MINUTE_MS = 60_000
SPAN_MAX_MS = 3_600_000
"""The longest window: whoever has a flood for hours is told how it goes once an hour."""
ALONE = 5
"""Subjects of a kind that are told one by one in a window; more is a flood."""
NAMED_KEPT = 200
"""Numbers that a digest can count apart."""
TOLD_KEPT = 2_000
"""Troubles that are remembered, so that they are not told again and that their end can be told."""
TOLD_MS = 7 * 86_400_000
WAITING_MAX = 50
"""Alerts that wait for one channel. Beyond it the oldest are dropped there, and the channel is told how many."""


class AlertRules(msgspec.Struct, frozen=True):
    window_ms: int = 10 * MINUTE_MS
    per_minute: int = 10
    level: Severity = Severity.INFO
    name: str = "Paceline"


class Seen(msgspec.Struct, frozen=True):
    """An incident as the policy sees it."""

    kind: str
    at_ms: int
    fields: Fields


class Window(msgspec.Struct):
    """What happens of one kind: told and gathered."""

    since_ms: int
    span_ms: int
    alone: int = 0
    """Told one by one."""
    gathered: int = 0
    named: dict[str, int] = {}
    others: int = 0
    """How many gathered ones are not among the named."""
    subjects: dict[str, int] = {}
    """Troubles gathered here, to be remembered as told with the digest."""
    severity: Severity = Severity.INFO
    """The gravest that was gathered."""


class Alert(msgspec.Struct, frozen=True):
    id: int
    severity: Severity
    text: str
    at_ms: int
    left: list[str]
    """Channels it has not reached."""


class Channel(msgspec.Struct):
    tries: int = 0
    """In a row, for the alert that is first in line."""
    not_before_ms: int = 0
    missed: int = 0
    """Alerts dropped here that it has not been told of."""


class Memory(msgspec.Struct):
    """Everything between two steps. JSON, kept with the place in the stream."""

    windows: dict[str, Window] = {}
    told: dict[str, int] = {}
    """Troubles by when they were told last."""
    sent: list[int] = []
    """When alerts were made in the last minute."""
    outbox: list[Alert] = []
    channels: dict[str, Channel] = {}
    made: int = 0


def step(
    memory: Memory, incidents: Iterable[Seen], rules: AlertRules, channels: Sequence[str], *, now_ms: int
) -> Memory:
    """Takes in what happened and ends the windows that are over. The alerts that follow are in the outbox."""
    work = _Step(copy.deepcopy(memory), rules, channels, now_ms)
    work.begin()
    for incident in incidents:
        kind = KINDS.get(incident.kind)
        if kind is not None and RANK[severity_of(kind, incident.fields)] >= RANK[rules.level]:
            work.take(kind, incident)
    for name in list(work.memory.windows):
        work.end_window(name)
    work.forget()
    return work.memory


def due_ms(memory: Memory) -> int | None:
    """When there is something to do even if nothing happens."""
    ends = [window.since_ms + window.span_ms for window in memory.windows.values()]
    tries = [memory.channels[name].not_before_ms for alert in memory.outbox for name in alert.left]
    return min([*ends, *tries], default=None)


@dataclass
class _Step:
    """One step under way: the memory it changes and what it goes by."""

    memory: Memory
    rules: AlertRules
    channels: Sequence[str]
    now_ms: int

    def begin(self) -> None:
        self.memory.sent = [at for at in self.memory.sent if at > self.now_ms - MINUTE_MS]

    def take(self, kind: Kind, incident: Seen) -> None:
        memory, fields = self.memory, incident.fields
        if kind.ends and not self._ends_something(kind, fields):
            return
        severity = severity_of(kind, fields)
        trouble = _trouble(incident.kind, subject_of(kind, fields), severity)
        window = memory.windows.get(incident.kind)
        if window is None:
            # What is grave is not left waiting for ten minutes.
            span_ms = min(MINUTE_MS, self.rules.window_ms) if severity is Severity.CRITICAL else self.rules.window_ms
            window = memory.windows[incident.kind] = Window(self.now_ms, span_ms)
        is_known = self.now_ms - memory.told.get(trouble, -TOLD_MS) < max(self.rules.window_ms, window.span_ms)
        if not is_known and window.alone < ALONE and self._has_room(severity):
            window.alone += 1
            memory.told[trouble] = self.now_ms
            self._make(severity, single(kind, fields, incident.at_ms))
        else:
            _gather(window, named_of(kind, fields), trouble, severity)

    def end_window(self, name: str) -> None:
        window = self.memory.windows[name]
        if self.now_ms < window.since_ms + window.span_ms:
            return
        if not window.gathered:
            del self.memory.windows[name]
            return
        if not self._has_room(window.severity):
            # It goes on gathering until there is room.
            window.span_ms = self.now_ms - window.since_ms + 1_000
            return
        text = digest(
            KINDS[name], window.gathered, window.named, more=window.others > 0, ms=self.now_ms - window.since_ms
        )
        self._make(window.severity, text)
        for trouble in window.subjects:
            self.memory.told[trouble] = self.now_ms
        span_ms = min(max(window.span_ms, MINUTE_MS) * 2, SPAN_MAX_MS)
        self.memory.windows[name] = Window(self.now_ms, span_ms)

    def forget(self) -> None:
        """Bounds everything: channels that are gone, alerts nobody takes, troubles of last week."""
        memory = self.memory
        memory.channels = {name: memory.channels.get(name, Channel()) for name in self.channels}
        for alert in list(memory.outbox):
            for name in alert.left:
                if name not in memory.channels:
                    strike(memory, alert.id, name)
        for name, channel in memory.channels.items():
            waiting = [alert for alert in memory.outbox if name in alert.left]
            for alert in waiting[: max(0, len(waiting) - WAITING_MAX)]:
                channel.missed += 1
                strike(memory, alert.id, name)
        memory.outbox = [alert for alert in memory.outbox if alert.left]
        young = {trouble: at for trouble, at in memory.told.items() if self.now_ms - at < TOLD_MS}
        memory.told = dict(sorted(young.items(), key=lambda item: item[1])[-TOLD_KEPT:])

    def _ends_something(self, kind: Kind, fields: Fields) -> bool:
        """Whether a trouble it ends was told; it is one no longer."""
        subject = subject_of(kind, fields)
        troubles = {_trouble(name, subject, severity) for name in kind.ends for severity in Severity}
        ended = troubles & self.memory.told.keys()
        for trouble in ended:
            del self.memory.told[trouble]
        return bool(ended)

    def _has_room(self, severity: Severity) -> bool:
        """A third of the rate is kept for what is critical: it must not wait behind a flood of warnings."""
        kept = 0 if severity is Severity.CRITICAL else self.rules.per_minute // 3
        return len(self.memory.sent) < self.rules.per_minute - kept

    def _make(self, severity: Severity, text: str) -> None:
        self.memory.made += 1
        self.memory.sent.append(self.now_ms)
        self.memory.outbox.append(Alert(self.memory.made, severity, text, self.now_ms, list(self.channels)))


def _gather(window: Window, name: str, trouble: str, severity: Severity) -> None:
    window.gathered += 1
    window.severity = max(window.severity, severity, key=RANK.__getitem__)
    if trouble in window.subjects or len(window.subjects) < NAMED_KEPT:
        window.subjects[trouble] = window.subjects.get(trouble, 0) + 1
    if name in window.named or len(window.named) < NAMED_KEPT:
        window.named[name] = window.named.get(name, 0) + 1
    else:
        window.others += 1


def _trouble(kind: str, subject: str, severity: Severity) -> str:
    # Few proxies and no proxy are two troubles.
    return f"{kind}|{severity}|{subject}"


def strike(memory: Memory, alert_id: int, channel: str) -> None:
    """The alert waits for this channel no longer."""
    for index, alert in enumerate(memory.outbox):
        if alert.id == alert_id:
            left = [name for name in alert.left if name != channel]
            memory.outbox[index : index + 1] = [msgspec.structs.replace(alert, left=left)] if left else []
            return
