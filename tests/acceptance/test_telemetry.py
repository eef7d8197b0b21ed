"""A real Prometheus scrapes a running platform, and every query of the dashboard and the rules finds something there.
And one message is followed through the logs of all processes by the id of the request it came with."""

import json
import math
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from metrics.boards import panel_queries, rules
from metrics.prometheus import Prometheus, need_prometheus

from .api import Client, people
from .platform import API_KEY, Platform, free_ports, policy_toml, wait_for
from .receiver import Receiver

PLATFORM: dict[str, Any] = {
    "sessions": 2,
    "env": {"WEBHOOK_ALLOW_PRIVATE": "true", "MONITOR_INTERVAL_MS": "500"},
    "policy": policy_toml().replace("max_age_days", "daily_cap = 100000\nmax_age_days"),
}
MESSAGES = 12
# Nothing of the kind happened, so nothing was measured: these are no number yet.
NEVER_YET = {"Redis latency"}


@pytest.fixture(scope="module")
def prometheus(platform: Platform, client: Client) -> Iterator[Prometheus]:
    """On a platform where a message was sent, one failed for good, and a customer was told."""
    need_prometheus()
    targets = [
        address.removeprefix("http://") for address in (platform.gateway, platform.dispatcher, platform.orchestrator)
    ]
    receiver = Receiver()
    with tempfile.TemporaryDirectory(prefix="paceline-prometheus-") as folder:
        scraping = Prometheus(Path(folder), targets, key=API_KEY, port=free_ports(1))
        try:
            receiver.secret = client.ask("POST", "/v1/webhooks", json={"url": receiver.url, "events": ["*"]})["secret"]
            wait_for("Prometheus to scrape all services", scraping.is_scraping)
            client.wait_end(client.post_job(people(MESSAGES)))
            platform.simulate({"not_registered": 1.0})
            client.wait_end(client.post_job(people(1)))
            wait_for("the failure to be scraped", lambda: _value(scraping, "sum(paceline_send_failures_total)") >= 1)
            wait_for("receipts to be scraped", lambda: _value(scraping, _settled("delivered")) >= MESSAGES)
            wait_for("webhooks to be told", lambda: _value(scraping, "sum(paceline_webhook_posts_total)") >= MESSAGES)
            yield scraping
        finally:
            scraping.close()
            receiver.close()


def _settled(outcome: str) -> str:
    return f'sum(paceline_messages_settled_total{{outcome="{outcome}"}})'


def _value(prometheus: Prometheus, expression: str) -> float:
    found = prometheus.query(expression)
    return float(found[0]["value"][1]) if found else 0.0


@pytest.mark.parametrize(("title", "query"), panel_queries(), ids=lambda value: value if len(value) < 40 else "")
def test_every_panel_has_something_to_show(prometheus: Prometheus, title: str, query: str) -> None:
    found = prometheus.query(query)
    assert found, query
    values = [float(one["value"][1]) for one in found]
    assert title in NEVER_YET or not all(math.isnan(value) for value in values), query


@pytest.mark.parametrize("rule", [rule for rule in rules() if "alert" in rule], ids=lambda rule: rule["alert"])
def test_every_alert_looks_at_what_is_told(
    prometheus: Prometheus, platform: Platform, client: Client, rule: dict[str, Any]
) -> None:
    """promtool proves that it fires (tests/metrics); here each part of it finds series on a real platform, without its
    comparison. Some tell of the last minute, and more than that may have passed since the last failure."""
    for part in rule["expr"].split(" and on "):
        bare = part.removeprefix("() ").removeprefix("(session) ")
        bare = bare.replace('{status=~"5.."}', "").replace("== 0", "").replace("== 1", "")
        for comparison in (" > ", " >= "):
            head, _, tail = bare.rpartition(comparison)
            bare = head if head and tail.strip().replace(".", "").isdigit() else bare
        query = bare.replace("> 0)", ")")
        if not prometheus.query(query):
            platform.simulate({"not_registered": 1.0})
            client.post_job(people(1))
            wait_for(bare, lambda query=query: prometheus.query(query))


def test_a_healthy_platform_rings_no_alarm(prometheus: Prometheus) -> None:
    assert _value(prometheus, 'count(ALERTS{alertstate="firing"})') == 0


def test_the_sums_agree_with_what_was_sent(prometheus: Prometheus, platform: Platform) -> None:
    sent = len(platform.ledger())
    assert _value(prometheus, _settled("sent")) == sent
    stages = 'paceline_message_stage_seconds_count{stage="%s"}'
    assert _value(prometheus, stages % "sent") == sent
    for stage in ("routed", "handed_off", "claimed"):
        assert _value(prometheus, stages % stage) == sent + 1, stage
    assert _value(prometheus, "sum(paceline_messages_accepted_total)") == sent + 1
    assert _value(prometheus, "max(paceline_worker_memory_max_bytes)") > 1_000_000


class TestTrail:
    """From the accepting request to the receipt by one id."""

    STEPS = [
        ("gateway", "accepted"),
        ("dispatcher", "handed off"),
        ("orchestrator", "claimed"),
        ("worker", "sending"),
        ("worker", "sending ended"),
        ("orchestrator", "sent"),
        ("worker", "receipt"),
        ("orchestrator", "delivered"),
    ]

    @pytest.mark.parametrize("kind", ["job", "single"])
    def test_one_message_is_followed_through_all_processes(self, platform: Platform, client: Client, kind: str) -> None:
        asked, [to] = f"crm-{uuid.uuid4().hex[:8]}", people(1)
        headers = {"X-Request-Id": asked}
        if kind == "job":
            answer = client.ask("POST", "/v1/jobs", json={"contacts": [to], "text": "hello"}, headers=headers)
            task = f"{answer['jobId']}:0"
        else:
            answer = client.ask("POST", "/api/v1/send", json={"to": to, "message": "hello"}, headers=headers)
            task = answer["messageId"]
        job = task.partition(":")[0]
        wait_for("the receipt in the logs", lambda: ("orchestrator", "delivered") in _steps(platform, asked))
        about = [line for line in _lines(platform) if job in json.dumps(line)]
        assert {line.get("request_id") for line in about} == {asked}, about
        steps = _steps(platform, asked)
        # Each once. A process may write its line after the next one has begun, so their order is only nearly this one.
        assert [steps.count(step) for step in self.STEPS] == [1] * len(self.STEPS), steps
        assert not [line for line in about if to in json.dumps(line)]

    def test_a_message_that_fails_says_so_under_the_same_id(self, platform: Platform, client: Client) -> None:
        platform.simulate({"not_registered": 1.0})
        asked, [to] = f"crm-{uuid.uuid4().hex[:8]}", people(1)
        client.ask("POST", "/api/v1/send", json={"to": to, "message": "hello"}, headers={"X-Request-Id": asked})
        failed = wait_for(
            "the failure in the logs", lambda: [line for line in _of(platform, asked) if line["event"] == "failed"]
        )
        assert failed[0]["code"] == "NOT_ON_WHATSAPP"


def _lines(platform: Platform) -> list[dict[str, Any]]:
    """Every line of every process, in the order of their times."""
    found = [line for text in platform.logs().values() for line in text.splitlines() if line.startswith("{")]
    return sorted((json.loads(line) for line in found if line.endswith("}")), key=lambda line: str(line.get("at")))


def _of(platform: Platform, request: str) -> list[dict[str, Any]]:
    return [line for line in _lines(platform) if line.get("request_id") == request]


def _steps(platform: Platform, request: str) -> list[tuple[str, str]]:
    return [(line["service"], line["event"]) for line in _of(platform, request)]
