"""A job of 100,000 contacts: prints the longest single command and what a waiting task costs; asserts no times."""

import pytest

from paceline.domain.jobs import MAX_CONTACTS
from paceline.store import keys

from .servers import LiveServer
from .stage import Stage


def slowest(stage: Stage) -> str:
    """The longest command since the last look, by Redis' own measure."""
    log = stage.redis.slowlog_get(1_000)
    stage.redis.slowlog_reset()
    longest = max(log, key=lambda entry: entry["duration"])
    return f"longest command {longest['duration'] / 1000:.1f} ms"


@pytest.fixture
def logged(server: LiveServer) -> Stage:
    server.client.config_set("slowlog-log-slower-than", 0)
    server.client.config_set("slowlog-max-len", 10_000)
    server.client.slowlog_reset()
    return Stage(server.client)


def test_100_000_contacts(logged: Stage, server: LiveServer, capsys: pytest.CaptureFixture[str]) -> None:
    stage = logged
    before = int(stage.redis.info("memory")["used_memory"])
    job = stage.accept(MAX_CONTACTS)
    lines = [f"accept: {slowest(stage)}"]
    memory = int(stage.redis.info("memory")["used_memory"]) - before
    lines.append(f"memory: {memory / MAX_CONTACTS:.1f} bytes per waiting task")
    stage.turn()
    stage.redis.slowlog_reset()
    assert stage.route(job, 0, 200).cursor == 200
    lines.append(f"route 200: {slowest(stage)}")
    routed = int(stage.redis.info("memory")["used_memory"]) - before - memory
    lines.append(f"memory: {routed / 200:.0f} bytes per routed task")
    stage.connect()
    stage.hello()
    stage.redis.slowlog_reset()
    for _ in range(100):
        task = stage.hand_off()
        stage.claim(task)
        stage.sent(task)
        stage.now += 5_000
    lines.append(f"100 messages: {slowest(stage)}")
    done = int(stage.redis.info("memory")["used_memory"]) - before - memory
    lines.append(f"memory: {done / 200:.0f} bytes per routed task when half of them are sent")
    assert stage.cancel(job).canceled == MAX_CONTACTS - 100
    lines.append(f"cancel: {slowest(stage)}")
    assert len(stage.events("JOB_DONE", job)) == 1
    assert stage.redis.llen(keys.job_contacts(job.job_id, 99)) == 1_000
    with capsys.disabled():
        print(f"\n100,000 contacts on {server.name} Redis {stage.redis.info('server')['redis_version']}")
        print("".join(f"  {line}\n" for line in lines), end="")
