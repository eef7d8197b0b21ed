"""How a bug is planted: a text replaced in Lua files, or a Python name replaced for the time of a run by one of the
functions here. The bugs themselves stand in `planted`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import msgspec

from paceline.domain.ids import whatsapp_id
from paceline.orchestrator.provisioner import Provisioner
from paceline.orchestrator.runners.base import Seen
from paceline.policy import gate, pacing, retry, routing, smartguard
from paceline.policy.facts import PhoneFacts
from paceline.policy.trust import Level, Policy
from paceline.worker import decisions, servertime
from paceline.worker.book import Entry

Mutation = dict[str, tuple[str, str]]


class Bug(msgspec.Struct, frozen=True):
    name: str
    promise: str
    """Which promise of SPEC §11 breaks."""
    lua: Mutation = {}
    python: tuple[str, str] = ("", "")
    """The attribute to replace, and the function here that replaces it."""
    seeds: tuple[int, ...] = ()
    """Where it was seen before, so that it need not be looked for: tried first, then the drills and all the others."""

    @contextmanager
    def planted(self) -> Iterator[None]:
        if not self.python[0]:
            yield
            return
        with patch(self.python[0], globals()[self.python[1]]):
            yield


def _always_give(task: gate.OutboxTask, who: Any, rules: Any, *, lease_ms: int, now_ms: int) -> gate.Give:
    lease_until = now_ms + lease_ms
    return gate.Give(task.send_after, lease_until - 1_000, lease_until)


_chat_refused = gate._chat_refused


def _knows_nobody(task: gate.OutboxTask, who: Any, now_ms: int) -> gate.Refuse | None:
    return _chat_refused(msgspec.structs.replace(task, is_known=False), who, now_ms)


def _resend_always(**facts: Any) -> retry.RetryDecision:
    return retry.Retry(facts["now_ms"] + 1_000, pinned=True)


_answer_for_pending = decisions.answer_for_pending


def _forgets_the_second_try(entry: Entry | None) -> Any:
    is_cut_off_again = entry is not None and entry.in_doubt and entry.outcome is None
    return decisions.NotSent() if is_cut_off_again else _answer_for_pending(entry)


def _no_rolling_minute(pace: pacing.Pace, sends: Any, gap_ms: int, starts: Any = None) -> int:
    return int(sends[-1] + gap_ms) if sends else 0


_next_slot = pacing.next_slot


def _half_a_rest(pace: pacing.Pace, sends: Any, gap_ms: int, starts: Any = None) -> int:
    return _next_slot(pace, sends, gap_ms // 2, starts)


def _no_unit(facts: PhoneFacts, day: str) -> tuple[str, int]:
    return day, facts.cap_used


def _server_zone(phone: str, timezone: str | None) -> str:
    return "UTC"


def _no_second_try(code: str, **facts: Any) -> retry.RetryDecision:
    return retry.GiveUp(code, "permanent")


def _all_at_once(job: Any, index: int) -> int:
    return int(job.accepted_at)


def _no_cooldown(code: str, *, now_ms: int) -> int | None:
    return None


def _refused_is_retried(code: str, **facts: Any) -> retry.RetryDecision:
    return retry.Retry(facts["now_ms"] + 1_000, pinned=False)


_guard_facts = smartguard.guard_facts


def _everything_is_automatic(*facts: Any, **more: Any) -> smartguard.GuardFacts:
    return msgspec.structs.replace(_guard_facts(*facts, **more), source=pacing.SMARTGUARD)


def _long_ago(*facts: Any, **more: Any) -> smartguard.GuardFacts:
    return msgspec.structs.replace(_guard_facts(*facts, **more), changed_at=0)


_pace_for = pacing.pace_for


def _automatic_as_manual(*facts: Any, **more: Any) -> pacing.Pace:
    return _pace_for(*facts, **more | {"rpm_source": "manual"})


_observe = servertime.ServerTime.observe


def _first_word_counts(time: servertime.ServerTime, server_ms: int, **times: int) -> None:
    if time._bounds is None:
        _observe(time, server_ms, **times)


def _own_clock(time: servertime.ServerTime, now_ms: int) -> int:
    return now_ms


def _never_warm(sticky: routing.Sticky, now_ms: int) -> bool:
    return False


_choose = routing.Fleet._choose


def _no_name_counts(fleet: routing.Fleet, sticky: Any, named: Any, *more: Any) -> Any:
    return _choose(fleet, sticky, None, *more)


def _all_are_old(policy: Policy, created_at_ms: int | None, *, now_ms: int) -> Level:
    return policy.levels[-1]


def _always_well(one: Any, rules: Any, **more: Any) -> None:
    return None


_observed = Provisioner._observed


async def _sees_nobody(provisioner: Provisioner) -> list[Seen] | None:
    return []


async def _sees_all_alive(provisioner: Provisioner) -> list[Seen] | None:
    seen = await _observed(provisioner)
    return seen and [msgspec.structs.replace(one, state="running") for one in seen]


class _Whatever(str):
    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False


def _whatever_came(ref: str) -> str:
    return _Whatever(ref)


def _open(sender: Any, task: Any) -> bool:
    return True


def _another_id(event_id: str) -> str:
    global _ids_given  # noqa: PLW0603 - a planted bug need not be pretty
    _ids_given += 1
    return f"evt_{event_id}#{_ids_given}"


def _deaf(said: str, words: Any) -> bool:
    return False


_ids_given = 0


def _new_id_each_time(task: str) -> str:
    global _ids_given  # noqa: PLW0603 - a planted bug need not be pretty
    _ids_given += 1
    return whatsapp_id(f"{task}#{_ids_given}")
