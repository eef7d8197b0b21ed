"""Services killed, frozen and raced under load; Redis killed and made to forget its scripts; people who say stop.

One platform with two dispatchers for all of it, so every test is also one of two dispatchers sharing the work.
"""

import os
import random
import signal

import pytest

from .api import Asked, Client, people
from .checkers import judge
from .platform import Pace, Platform, policy_toml, wait_for

QUICK = Pace(rpm=600, delay_ms=(80, 120))
PLATFORM = {"sessions": 4, "dispatchers": 2, "policy": policy_toml(QUICK), "pace": QUICK}
LEASE_MS = 3_000
PACER_LEASE_MS = 5_000
"""How long a dispatcher that looked at a phone keeps the others from it."""

SERVICES = ("gateway", "dispatcher", "dispatcher-2", "orchestrator", "worker-sim-1", "worker-sim-2", "redis")


def sent_of(client: Client, job: Asked) -> int:
    return len(client.lines_of(job))


def holds_a_task(platform: Platform, session: str) -> bool:
    return bool(platform.redis.llen(f"session:outbox:processing:{session}"))


def test_two_dispatchers_share_a_job_while_redis_forgets_its_scripts(platform: Platform, client: Client) -> None:
    """300 messages, two dispatchers that race for every one, SCRIPT FLUSH all the way: each goes out once, in order."""
    job = client.post_job(people(300))

    def flush_and_look() -> bool:
        platform.redis.script_flush()
        return sent_of(client, job) >= 280

    wait_for("most of the job to be sent", flush_and_look)
    [view] = client.wait_end(job)
    assert (view["state"], view["progress"]["sent"]) == ("DONE", 300)
    evidence = judge(platform, client, job)
    assert evidence.by_session.keys() == {"sim-1", "sim-2", "sim-3", "sim-4"}


@pytest.mark.parametrize("on_unknown", ["resend", "hold"])
def test_redis_killed_in_the_middle_forgets_nothing(platform: Platform, client: Client, on_unknown: str) -> None:
    """kill -9 of Redis, twice, under load: what it had answered for is on the disk, and all goes on by itself."""
    job = client.post_job(people(60), on_unknown=on_unknown)
    for number in (10, 30):
        client.wait_sent(job, number)
        platform.kill("redis")
    [view] = client.wait_end(job)
    assert (view["state"], view["progress"]["sent"]) == ("DONE", 60)
    judge(platform, client, job)


def test_every_service_killed_in_turn_under_load(platform: Platform, client: Client) -> None:
    """kill -9 of one after the other while two jobs run and a third is posted: all of it ends as it should."""
    jobs = [client.post_job(people(80)), client.post_job(people(40), priority=2)]
    for number, service in enumerate(random.sample(SERVICES, len(SERVICES)), start=1):
        wait_for("a few more", lambda number=number: sum(sent_of(client, job) for job in jobs) >= 8 * number)  # type: ignore[misc]
        platform.kill(service)
    jobs.append(client.post_job(people(20)))
    client.wait_end(*jobs)
    judge(platform, client, *jobs)


@pytest.mark.parametrize("on_unknown", ["resend", "hold"])
def test_a_worker_frozen_for_longer_than_its_lease(platform: Platform, client: Client, on_unknown: str) -> None:
    """SIGSTOP while it holds a task, until the lease is over and longer: continued, it neither sends late nor twice."""
    job = client.post_job(people(24), on_unknown=on_unknown, sessionId="sim-1")
    client.wait_sent(job, 3)
    pid = platform.pid("worker-sim-1")

    def frozen_with_a_task() -> bool:
        os.kill(pid, signal.SIGSTOP)
        # What it said before it was frozen may still be on its way.
        platform.let_pass(200)
        if holds_a_task(platform, "sim-1"):
            return True
        os.kill(pid, signal.SIGCONT)
        return False

    wait_for("the worker to be frozen with a task in its hands", frozen_with_a_task)
    wait_for("the lease to end", lambda: client.job(job)["progress"]["unknown"] == 1)
    platform.let_pass(LEASE_MS // 2)
    os.kill(pid, signal.SIGCONT)
    client.wait_end(job)
    judge(platform, client, job)


def test_a_frozen_dispatcher_comes_back_with_old_news(platform: Platform, client: Client) -> None:
    """SIGSTOP of one dispatcher for longer than its hold on a phone: the other goes on, the late one does no harm."""
    job = client.post_job(people(120))
    client.wait_sent(job, 10)
    with platform.frozen("dispatcher"):
        before = sent_of(client, job)
        platform.let_pass(PACER_LEASE_MS + 500)
        wait_for("the other dispatcher to go on", lambda: sent_of(client, job) >= before + 20)
    with platform.frozen("dispatcher-2"):
        client.wait_end(job)
    judge(platform, client, job)


def test_a_frozen_orchestrator_comes_back_after_all_leases_have_ended(platform: Platform, client: Client) -> None:
    """SIGSTOP of the orchestrator for longer than a lease: the workers' words arrive late and count all the same."""
    job = client.post_job(people(60), on_unknown="hold")
    client.wait_sent(job, 10)
    with platform.frozen("orchestrator"):
        platform.let_pass(LEASE_MS + 1_000)
    [view] = client.wait_end(job)
    assert (view["state"], view["progress"]["sent"]) == ("DONE", 60)
    judge(platform, client, job)


def test_a_worker_that_comes_back_does_not_send_its_backlog_in_a_burst(platform: Platform, client: Client) -> None:
    """Killed and without a network for a while: its messages wait, and say why; back again, it keeps its pace."""
    job = client.post_job(people(25), sessionId="sim-2")
    client.wait_sent(job, 5)
    platform.simulate(sim_2={"offline": True})
    platform.kill("worker-sim-2")
    client.wait_reason(job.task(24), "NOT_CONNECTED")
    waiting = sent_of(client, job)
    platform.let_pass(20 * QUICK.delay_ms[1])
    assert sent_of(client, job) == waiting < 25
    platform.simulate()
    platform.kill("worker-sim-2")
    [view] = client.wait_end(job)
    assert view["progress"]["sent"] == 25
    judge(platform, client, job)


def test_people_who_say_stop_in_the_middle_get_nothing_more(platform: Platform, client: Client) -> None:
    """Suppressed after the job was accepted: whoever no worker had claimed by then ends `suppressed`."""
    job = client.post_job(people(60))
    client.wait_sent(job, 10)
    stopped = job.contacts[::2]
    client.suppress(*stopped)
    acknowledged_at = platform.now_ms()
    [view] = client.wait_end(job)
    judge(platform, client, job, stopped=dict.fromkeys(stopped, acknowledged_at))
    assert view["progress"]["suppressed"] > 0
    assert view["progress"]["sent"] + view["progress"]["suppressed"] == 60
    again = client.request("POST", "/api/v1/send", json={"to": stopped[0], "message": "once more"})
    assert (again.status_code, again.json()["error"]["code"]) == (422, "SUPPRESSED")
