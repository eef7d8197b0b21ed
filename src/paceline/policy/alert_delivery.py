"""What becomes of an alert that was made: which is next for a channel, when one that failed is tried again, when it is
given up. Pure, over the memory of `policy.alerts`.

Each channel has its own line: one that does not answer holds up no other, and its oldest alerts make room; when it is
back it is told how many it missed.
"""

import copy

from paceline.policy.alert_texts import headed
from paceline.policy.alerts import Alert, AlertRules, Channel, Memory, strike

TRIES_MAX = 100
"""With the longest wait about 16 hours of trying."""
FIRST_WAIT_MS = 5_000
WAIT_MAX_MS = 600_000
RETRY_AFTER_MAX_MS = 3_600_000
"""A service that asks for more than an hour is asked again after one."""


def next_for(memory: Memory, channel: str, *, now_ms: int) -> Alert | None:
    """What this channel is to be sent now: one at a time, in order."""
    if memory.channels.get(channel, Channel()).not_before_ms > now_ms:
        return None
    return next((alert for alert in memory.outbox if channel in alert.left), None)


def text_for(memory: Memory, alert: Alert, channel: str, rules: AlertRules) -> str:
    """The alert as that channel gets it."""
    missed = memory.channels.get(channel, Channel()).missed
    note = f"\n({missed} earlier alerts did not reach you here; GET /incidents has what happened.)" if missed else ""
    return headed(rules.name, alert.severity, alert.text + note)


def delivered(memory: Memory, alert: Alert, channel: str) -> Memory:
    memory = copy.deepcopy(memory)
    memory.channels[channel] = Channel()
    strike(memory, alert.id, channel)
    return memory


def failed(memory: Memory, alert: Alert, channel: str, *, retry_after_ms: int | None, now_ms: int) -> Memory:
    """It is tried again later, and later each time; the service's own word on when comes first."""
    memory = copy.deepcopy(memory)
    state = memory.channels.setdefault(channel, Channel())
    state.tries += 1
    wait_ms = min(FIRST_WAIT_MS << min(state.tries - 1, 20), WAIT_MAX_MS)
    if retry_after_ms is not None:
        wait_ms = max(1_000, min(retry_after_ms, RETRY_AFTER_MAX_MS))
    state.not_before_ms = now_ms + wait_ms
    if state.tries >= TRIES_MAX:
        state.tries, state.missed = 0, state.missed + 1
        strike(memory, alert.id, channel)
    return memory
