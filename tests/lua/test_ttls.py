"""No key that holds waiting work ever has a TTL; what has ended, is staged or is remembered for a while has one."""

import re

from paceline.domain.reasons import Reason
from paceline.policy.dispatch import Step, Wait
from paceline.store import keys

from .stage import GAP, HOUR, T0, Stage, recipient, value_of

MAY_END = (
    keys.sticky, keys.incidents, keys.idempotency, keys.task_status, keys.session_stats, keys.metric,
    keys.recipient_sends, keys.person, keys.fleet_hour,
)  # fmt: skip
ENDED_JOB = (
    keys.job, keys.job_run, keys.job_states, keys.job_contacts, keys.job_routes, keys.job_total, keys.job_sent,
    keys.job_failed, keys.job_open, keys.job_done_emitted, keys.message,
)  # fmt: skip


def template(key: str) -> keys.Key:
    """Which of the keyspace's keys this is; the one with the longest fixed text wins."""
    fits = [k for k in keys.ALL.values() if re.fullmatch(re.escape(k.template).replace(r"\{\}", ".+"), key)]
    return max(fits, key=lambda k: len(k.template))


def to_be_forgotten(stage: Stage) -> set[str]:
    return set(" ".join(stage.redis.zrange(keys.messages_ended(), 0, -1)).split())


def test_a_whole_day_of_everything(stage: Stage) -> None:
    """Tasks in every state there is, and then the TTLs of all keys are looked at."""
    stage.connect()
    stage.hello()
    done = stage.routed(1)
    stage.claim(stage.hand_off())
    stage.sent(done.task_id(0))
    job = stage.routed(12, first=10)
    ends = {0: "sent", 1: "failed", 2: "retry", 3: "unknown"}
    for outcome in ends.values():
        stage.now += GAP.ms
        task = stage.hand_off()
        stage.claim(task)
        stage.settle(
            task,
            outcome,
            from_="c",
            at=T0 + HOUR,
            code="c",
            message="m",
            reason="r",
            statsDay="d",
            onWire=True,
        )
    stage.now += GAP.ms
    (facts,) = stage.look()
    heads = facts.heads
    stage.apply(
        facts, Wait(stage.now + 1, Reason.IN_TURN),
        Step("park", heads[0].entry, heads[0].task, Reason.RECIPIENT_HOURS, T0 + HOUR),
        Step("expire", heads[1].entry, heads[1].task, Reason.EXPIRED),
        Step("suppress", heads[2].entry, heads[2].task, Reason.SUPPRESSED),
    )  # fmt: skip
    stage.now += GAP.ms
    stage.hand_off()
    stage.send(recipient(90), send_at=T0 + HOUR)
    stage.accept(3, first=100)
    stage.suppress("1")
    value_of(stage.store.guards.begin("k", "i", "b", "J", now_ms=stage.now, holder="one", is_free=True))
    assert stage.states(job) == "SFtupEOhrrrr"
    terminal = {job.task_id(index) for index in (0, 1, 5, 6)} | {done.task_id(0)}
    for key in stage.with_ttl():
        kind = template(key)
        if kind is keys.message:
            assert key.removeprefix("message:") in terminal
        elif kind in ENDED_JOB:
            assert done.job_id in key
        else:
            assert kind in MAY_END, key
    for task in terminal:
        message = keys.message(task)
        assert stage.redis.ttl(message) > 0 or not stage.redis.exists(message) or task in to_be_forgotten(stage)


def test_every_key_is_in_the_keyspace(stage: Stage) -> None:
    """The name and the type of every key the scripts write are what keys.py says."""
    test_a_whole_day_of_everything(stage)
    for key in stage.redis.keys("*"):
        assert stage.redis.type(key).upper() == template(key).type, key
