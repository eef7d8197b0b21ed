"""Is a proxy good? By real requests through it, several in a row, and not at all when everything fails at once.

A proxy is burned only for what it does itself. When most of them fail in the same round it is our own network, or what
they were asked to reach, and moving every number to another address would do harm for nothing. Neighbours:
`orchestrator.proxy_checks` asks, `store.inventory` remembers.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

CHECKER = "proxy-check"
"""Who marked it. What a person marked, a person unmarks."""


class ProxyRules(msgspec.Struct, frozen=True):
    failures: int = 3
    """In a row, and it is bad."""
    successes: int = 2
    """In a row, and it is good again."""
    doubtful_share: float = 0.5
    """With at least this share of the good ones failing in one round, and more than one of them, nothing follows."""


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    proxy_id: str
    state: str
    marked_by: str = ""
    failures: int = 0
    """In a row, before this one."""
    successes: int = 0
    fault: str = ""
    """Why it failed now; empty: it answered. Without credentials."""
    took_ms: int = 0


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """What is remembered of it."""

    proxy_id: str
    failures: int
    successes: int
    fault: str
    took_ms: int


class Mark(msgspec.Struct, frozen=True):
    proxy_id: str
    state: Literal["OK", "BAD"]
    reason: str


class Round(msgspec.Struct, frozen=True):
    health: list[Health]
    marks: list[Mark]
    is_doubtful: bool = False


def judge(checks: Sequence[Checked], rules: ProxyRules) -> Round:
    good = [one for one in checks if one.state == "OK"]
    failing = [one for one in good if one.fault]
    if len(failing) > 1 and len(failing) >= rules.doubtful_share * len(good):
        return Round([_remembered(one, counts=not one.fault) for one in checks], [], is_doubtful=True)
    health = [_remembered(one, counts=True) for one in checks]
    marks = [mark for one, now in zip(checks, health, strict=True) if (mark := _mark(one, now, rules))]
    return Round(health, marks)


def _remembered(one: Checked, *, counts: bool) -> Health:
    failures, successes = one.failures, one.successes
    if counts:
        failures, successes = (one.failures + 1, 0) if one.fault else (0, one.successes + 1)
    return Health(proxy_id=one.proxy_id, failures=failures, successes=successes, fault=one.fault, took_ms=one.took_ms)


def _mark(one: Checked, now: Health, rules: ProxyRules) -> Mark | None:
    if one.state == "OK" and now.failures >= rules.failures:
        return Mark(one.proxy_id, "BAD", one.fault)
    if one.state == "BAD" and one.marked_by == CHECKER and now.successes >= rules.successes:
        return Mark(one.proxy_id, "OK", "answers again")
    return None
