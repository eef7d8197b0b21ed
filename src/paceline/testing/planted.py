"""Planted bugs: a green run shows something only if the judges would have seen red. Each of these must be caught.

A bug is a text replaced in a Lua file, or a Python name replaced for the time of a run.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import msgspec

from paceline.domain.ids import whatsapp_id
from paceline.policy import gate, pacing, retry

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


def _resend_always(**facts: Any) -> retry.RetryDecision:
    return retry.Retry(facts["now_ms"] + 1_000, pinned=True)


def _no_rolling_minute(pace: pacing.Pace, sends: Any, gap_ms: int, starts: Any = None) -> int:
    return int(sends[-1] + gap_ms) if sends else 0


_next_slot = pacing.next_slot


def _half_a_rest(pace: pacing.Pace, sends: Any, gap_ms: int, starts: Any = None) -> int:
    return _next_slot(pace, sends, gap_ms // 2, starts)


def _server_zone(phone: str, timezone: str | None) -> str:
    return "UTC"


def _no_second_try(code: str, **facts: Any) -> retry.RetryDecision:
    return retry.GiveUp(code, "permanent")


def _all_at_once(job: Any, index: int) -> int:
    return int(job.accepted_at)


_ids_given = 0


def _new_id_each_time(task: str) -> str:
    global _ids_given  # noqa: PLW0603 - a planted bug need not be pretty
    _ids_given += 1
    return whatsapp_id(f"{task}#{_ids_given}")


BUGS = [
    Bug("the task is taken from the queue but not put into the outbox", "I1", {
        "hand_off.lua": ("call('LPUSH', K.outbox(final.session), item.task)", "")}, seeds=(-1,)),
    Bug("a task given back is not put back", "I1", {
        "settle_task.lua": ("  put_back(phone, {about.entry})\n", "")}, seeds=(43, 55)),
    Bug("a parked task is forgotten", "I1", {
        "hand_off.lua": ("call('ZADD', K.parked(a.phone), step.untilMs, step.entry)", "")}, seeds=(11, 30)),
    Bug("a lease that ends is not noticed", "I1", {
        "overdue.lua": ("call('ZRANGEBYSCORE', K.deadlines(), '-inf', a.now, 'LIMIT', 0, a.limit)", "{}")},
        seeds=(2, 3)),
    Bug("a proof that a message went out is ignored once it was given up", "I1", {
        "settle_task.lua": ("if not move(a.task, PROOF[a.outcome], a.now)",
                            "if has('FEXO', byte) or not move(a.task, PROOF[a.outcome], a.now)")}, seeds=(2, 18)),
    Bug("everything is called expired", "I1", {
        "60_heads.lua": ("tz = item.tz, expiresAt = item.expiresAt,", "tz = item.tz, expiresAt = 0,")},
        seeds=(41, 43)),
    Bug("every other message is called suppressed", "I1", {
        "60_heads.lua": ("suppressed = call('ZSCORE', K.suppressions(), item.to) and true or false",
                         "suppressed = item.seq % 2 == 0")}, seeds=(24, 54)),
    Bug("every failure is final", "I1", python=("paceline.policy.retry.after_failure", "_no_second_try"),
        seeds=(59, 51)),
    Bug("an unknown outcome is sent again although it must be held", "I2",
        python=("paceline.policy.retry.after_unknown", "_resend_always"), seeds=(22, 15)),
    Bug("a new message id for every try", "I2", python=("paceline.worker.sender.whatsapp_id", "_new_id_each_time"),
        seeds=(43, 14)),
    Bug("the send is not stamped", "I3", {"50_outbox.lua": ("if on_wire then\n", "if false then\n")}, seeds=(41, 9)),
    Bug("a rest is half as long as it was drawn", "I3", python=("paceline.policy.pacing.next_slot", "_half_a_rest"),
        seeds=(41, 9)),
    Bug("no rolling minute, no burst rule", "I3", python=("paceline.policy.pacing.next_slot", "_no_rolling_minute"),
        seeds=(-1,)),
    Bug("the daily unit is not counted", "I4", {"hand_off.lua": ("'capUsed', used + 1)", "'capUsed', used)")},
        seeds=(34,)),
    Bug("hours are those of the server", "I4", python=("paceline.policy.hours.phone_zone", "_server_zone"),
        seeds=(9, 50)),
    Bug("the gate lets everything pass", "I4", python=("paceline.policy.gate.decide", "_always_give"), seeds=(-8, 13)),
    Bug("what is scheduled goes at once", "I4", python=("paceline.domain.jobs.Job.scheduled_at", "_all_at_once"),
        seeds=(56, 39)),
    Bug("the lowest priority is served first", "I5", {
        "60_heads.lua": ("for priority = 3, 1, -1 do", "for priority = 1, 3 do")}, seeds=(-2,)),
    Bug("the newest is served first", "I5", {
        "30_phone.lua": ("  call('LPUSH', queue_key(phone, fields.priority), entry_of(task, fields, seq))",
                         "  call('RPUSH', queue_key(phone, fields.priority), entry_of(task, fields, seq))")},
        seeds=(31, 20)),
    Bug("a job is closed by every task that ends", "I6", {
        "20_task.lua": ("if call('DECR', K.job_open(job)) == 0 then close_job(job, now) end",
                        "call('DECR', K.job_open(job)); close_job(job, now)")}, seeds=(24, 39)),
    Bug("JOB_DONE is not emitted once but again", "I6", {
        "20_task.lua": ("if not call('SET', K.job_done_emitted(job), now, 'NX') then return end",
                        "job_event('JOB_DONE', job, now, "
                        "{total = 0, sent = 0, failed = 0, expired = 0, canceled = 0, suppressed = 0})")},
        seeds=(24, 14)),
    Bug("stop is looked up only at intake", "I9", {
        "60_heads.lua": ("call('ZSCORE', K.suppressions(), item.to) and true or false", "false"),
        "hand_off.lua": ("call('ZSCORE', K.suppressions(), item.to)", "false"),
        "open_claim.lua": ("call('ZSCORE', K.suppressions(), about.to) and true or false", "false"),
        "claim_outbox.lua": ("call('ZSCORE', K.suppressions(), about.to)", "false")}, seeds=(23, 32)),
    Bug("cancel forgets what is routed", "I9", {"cancel_job.lua": ("'qrspth'", "'q'")}, seeds=(48, 52)),
]  # fmt: skip
