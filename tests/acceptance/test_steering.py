"""The dispatcher's buttons and limits on the running platform, with `SEND_MODE=api` and two dispatchers.

Each test has a number of its own; what concerns the whole fleet comes last and puts it right again.
"""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from .api import Asked, Client, people
from .checkers import judge
from .platform import Platform, wait_for

SESSIONS = 8


class Listener:
    """A Session Brain: remembers what it is told."""

    def __init__(self) -> None:
        told: list[dict[str, Any]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.told = told
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


BRAIN = Listener()
PLATFORM = {
    "sessions": SESSIONS,
    "dispatchers": 2,
    "env": {
        "SEND_MODE": "api",
        "SESSION_BRAIN_URL": f"http://127.0.0.1:{BRAIN.server.server_port}",
        "SMART_GUARD_TICK_MS": "1000",
        "RECIPIENT_CAP": "2",
    },
}


@pytest.fixture(scope="module", autouse=True)
def brain() -> Iterator[Listener]:
    yield BRAIN
    BRAIN.server.shutdown()


def ask(client: Client, platform: Platform, method: str, path: str, **more: Any) -> Any:
    return client.ask(method, platform.dispatcher + path, **more)


def test_a_job_by_http_survives_whoever_carries_it(platform: Platform, client: Client) -> None:
    """Killing the dispatchers and the orchestrator between a task's two steps neither loses nor repeats it."""
    job = client.post_job(people(60), sessionId="sim-1", strategy="round_robin")
    for number, victim in enumerate(("orchestrator", "dispatcher", "dispatcher-2", "worker-sim-1", "orchestrator"), 1):
        client.wait_sent(job, number * 8)
        platform.kill(victim)
    armed = [platform.arm("enqueued-not-answered"), platform.arm("handed-off")]
    client.wait_end(job)
    assert all(struck() for struck in armed)
    judge(platform, client, job)


def test_a_paused_job_waits_and_goes_on(platform: Platform, client: Client) -> None:
    """Paused: what no worker had claimed stays where it is and says why. Resumed: it is finished."""
    job = client.post_job(people(30), sessionId="sim-2")
    client.wait_sent(job, 3)
    client.ask("POST", f"/v1/jobs/{job.job_id}/pause")
    view = client.wait_reason(job.task(29), "JOB_PAUSED")
    assert "paused" in view["waiting"]["text"].lower()
    platform.let_pass(1_000)
    held = len(client.lines_of(job))
    platform.let_pass(1_500)
    assert (len(client.lines_of(job)), client.job(job)["state"]) == (held, "PAUSED")
    client.ask("POST", f"/v1/jobs/{job.job_id}/resume")
    client.wait_end(job)
    judge(platform, client, job)


def test_one_message_of_a_queue_is_canceled(platform: Platform, client: Client) -> None:
    """The queue is shown in order; the message taken out of it ends canceled, the others go."""
    job = client.post_job(people(12), sessionId="sim-3")
    chosen = job.task(11)

    def queued() -> list[str]:
        return [item["messageId"] for item in client.ask("GET", "/api/v1/queue/sim-3")["items"]]

    wait_for("the last one to be queued", lambda: chosen in queued())
    assert client.ask("DELETE", f"/api/v1/queue/sim-3/{chosen}")["state"] == "canceled"
    client.wait_end(job)
    assert client.message(chosen)["state"] == "canceled"
    assert len(client.lines_of(job)) == 11
    stats = client.ask("GET", "/api/v1/stats/sim-3")
    assert (stats["sent"], stats["failed"]) == (11, 0)


def test_a_restricted_number_goes_on_with_people_it_knows(platform: Platform, client: Client) -> None:
    """After a 463 new chats are parked and known ones go out; the refused message is not tried again."""
    friend = people(1)
    known = client.post_job(friend, sessionId="sim-4")
    client.wait_end(known)
    platform.simulate(sim_4={"time_lock": 1.0})
    refused = client.post_job(people(1), sessionId="sim-4")
    client.wait_end(refused)
    assert client.message(refused.task(0))["lastError"]["code"] == "RESTRICTED_463"
    stranger = client.post_job(people(1), sessionId="sim-4")
    view = client.wait_reason(stranger.task(0), "TIME_LOCKED")
    assert view["state"] == "parked"
    again = client.post_job(friend, sessionId="sim-4")
    client.wait_end(again)
    assert client.message(again.task(0))["state"] in ("sent", "delivered", "read")
    metrics = {item["sessionId"]: item for item in ask(client, platform, "GET", "/sessions/metrics")["items"]}
    assert metrics["sim-4"]["restriction"]["kind"] == "TIME_LOCKED"
    assert ask(client, platform, "GET", "/incidents", params={"kind": "PHONE_RESTRICTED"})["items"]
    client.cancel(stranger)
    judge(platform, client, known, refused, again)


def test_a_person_who_had_enough_gets_the_rest_later(platform: Platform, client: Client) -> None:
    """The cap per recipient holds over all numbers and jobs; what exceeds it waits."""
    somebody = people(1)
    jobs = [client.post_job(somebody, sessionId=f"sim-{number}") for number in (1, 2)]
    client.wait_end(*jobs)
    third = client.post_job(somebody)
    view = client.wait_reason(third.task(0), "FREQUENCY_CAP")
    assert view["waiting"]["until"] > platform.now_ms() + 20 * 3_600_000
    client.cancel(third)
    judge(platform, client, *jobs)


def test_smartguard_slows_a_failing_number_and_an_operator_overrules_it(platform: Platform, client: Client) -> None:
    """Three failures in a minute: a step down, written down with its reason; a manual rate is then left alone."""
    platform.simulate(sim_5={"disconnect_before": 1.0})
    job = client.post_job(people(3), sessionId="sim-5")

    def incidents(kind: str) -> list[dict[str, Any]]:
        found = ask(client, platform, "GET", "/incidents", params={"kind": kind})["items"]
        return [incident for incident in found if incident.get("sessionId") == "sim-5"]

    change = wait_for("SmartGuard to act", lambda: incidents("SMART_GUARD_RPM_CHANGE"))[0]
    assert change["to"] == 20
    platform.simulate()
    answer = ask(client, platform, "POST", "/sessions/sim-5/rpm", json={"rpm": 10})
    assert (answer["rpm"], answer["source"], answer["effectiveRpm"]) == (10, "manual", 10)
    assert incidents("RPM_OVERRIDE")[0]["to"] == 10
    assert ask(client, platform, "POST", "/sessions/sim-5/rpm", json={"rpm": None})["rpm"] is None
    client.wait_end(job)
    judge(platform, client, job)
    assert "sim-5" in {event["sessionId"] for event in BRAIN.told if event["event"] == "SEND_FAILED"}


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        pytest.param("/sessions/sim-1/rpm", {"rpm": 7}, (400, "rpm"), id="a rate that is not allowed"),
        pytest.param("/sessions/nobody/rpm", {"rpm": 5}, (404, "sessionId"), id="an unknown session"),
        pytest.param("/pacers/sim-1", {"minDelayMs": -1}, (400, "minDelayMs"), id="a negative delay"),
        pytest.param("/smartguard/enable", {"enabled": "yes"}, (400, "enabled"), id="a word for a boolean"),
    ],
)
def test_bad_input_is_named(
    platform: Platform, client: Client, path: str, body: Any, expected: tuple[int, str]
) -> None:
    """A clear 4xx that names the field."""
    answer = client.request("POST", platform.dispatcher + path, json=body)
    assert (answer.status_code, answer.json()["error"]["details"]["field"]) == expected


def _stands_still(platform: Platform, client: Client, job: Asked) -> int:
    """Nothing of it goes out for a while; how much has."""
    platform.let_pass(1_000)
    before = len(client.lines_of(job))
    platform.let_pass(1_500)
    assert len(client.lines_of(job)) == before
    return before


def test_the_fleet_is_stopped_paused_and_started_again(platform: Platform, client: Client) -> None:
    """/stop lasts over a restart of the dispatchers, /fleet/pause holds at the last gate; both say so in the status."""
    job = client.post_job(people(200))
    client.wait_sent(job, 5)
    assert ask(client, platform, "POST", "/stop") == {"running": False}
    platform.kill("dispatcher")
    platform.kill("dispatcher-2")
    _stands_still(platform, client, job)
    assert ask(client, platform, "GET", "/health")["running"] is False
    ask(client, platform, "POST", "/fleet/pause")
    assert ask(client, platform, "POST", "/start") == {"running": True}
    _stands_still(platform, client, job)
    client.wait_reason(job.task(199), "FLEET_PAUSED")
    explained = ask(client, platform, "GET", "/sessions/sim-1/explain")
    assert (explained["rule"], explained["decision"]) == ("FLEET_PAUSED", "wait") or not explained["queueLen"]
    assert client.job(job)["estimatedCompletion"] is None
    assert ask(client, platform, "POST", "/fleet/resume")["paused"] is False
    client.wait_end(job)
    judge(platform, client, job)


def test_three_restricted_numbers_stop_everything(platform: Platform, client: Client) -> None:
    """The breaker: sending stops until an operator resumes it, and a banned number's queue stays with that number."""
    banned = ("sim-6", "sim-7", "sim-8")
    platform.simulate(**{name.replace("-", "_"): {"banned": True} for name in banned})
    wait_for("the breaker", lambda: ask(client, platform, "GET", "/fleet")["pausedReason"] == "BREAKER")
    job = client.post_job(people(10), sessionId="sim-1")
    stays = client.post_job(people(2), sessionId="sim-6")
    assert _stands_still(platform, client, job) == 0
    ask(client, platform, "POST", "/fleet/resume")
    client.wait_end(job)
    client.wait_reason(stays.task(0), "QUARANTINED")
    assert client.request("POST", f"{platform.dispatcher}/sessions/sim-6/queue/requeue").status_code == 409
    answer = ask(client, platform, "POST", "/sessions/sim-6/queue/cancel")
    assert answer["canceled"] == 2
    client.wait_end(stays)
    assert client.lines_of(stays) == []
    judge(platform, client, job)
