"""What `/metrics` tells: promtool finds no fault in it, all of it is in the catalogue, each value is what happened."""

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from metrics.prometheus import need_prometheus, promtool
from paceline.domain.errors import Unavailable
from paceline.telemetry import catalogue

from .platform import FRIEND, OTHER_PHONE, PHONE, READ_KEY, SEND_KEY, Platform, refused

SERVICES = ("gateway", "dispatcher", "orchestrator")


async def page(platform: Platform, service: str) -> str:
    # What was read a moment ago would be told again.
    platform.metrics[service]._read_at_ms = -10_000
    answer = await platform.client(service).get("/metrics", headers={"X-API-KEY": READ_KEY})
    assert answer.status_code == 200, answer.text
    return answer.text


async def value(platform: Platform, service: str, name: str, **labels: str) -> float:
    """Of one series; 0 if it is not told yet."""
    families = text_string_to_metric_families(await page(platform, service))
    samples = [sample for family in families for sample in family.samples if sample.name == name]
    return sum(sample.value for sample in samples if labels.items() <= sample.labels.items())


async def one_sent(platform: Platform) -> dict[str, str]:
    """A message that took a second for each stage that takes time here."""
    claim = await platform.claimed()
    platform.clock.forward(3_000)
    body = {"raw": claim["raw"], "epoch": 1, "whatsappId": claim["task"]["whatsappId"]}
    assert (await platform.outbox("ack", body)).status_code == 200
    told = {"messageId": claim["task"]["taskId"], "to": FRIEND, "whatsappId": claim["task"]["whatsappId"]}
    platform.clock.forward(7_000)
    assert (await platform.webhook("MESSAGE_DELIVERED", told)).status_code == 200
    return told


@pytest.mark.parametrize("service", SERVICES)
async def test_it_is_for_keys_that_may_read(platform: Platform, service: str) -> None:
    client = platform.client(service)
    refused(await client.get("/metrics", headers={"X-API-KEY": SEND_KEY}), 403, "FORBIDDEN")
    shown = await client.get("/metrics", headers={"X-API-KEY": "", "Authorization": f"Bearer {READ_KEY}"})
    assert shown.status_code == 200
    assert shown.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"


@pytest.mark.parametrize("service", SERVICES)
async def test_promtool_finds_no_fault(platform: Platform, service: str) -> None:
    need_prometheus()
    await one_sent(platform)
    checked = promtool("check", "metrics", given=await page(platform, service))
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


@pytest.mark.parametrize("service", SERVICES)
async def test_everything_told_is_in_the_catalogue(platform: Platform, service: str) -> None:
    await one_sent(platform)
    listed = {metric.name: metric for metric in catalogue.ALL}
    for family in text_string_to_metric_families(await page(platform, service)):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        assert family.documentation == listed[name].help
        assert family.type == listed[name].kind
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        assert labels <= set(listed[name].labels)


def test_names_follow_the_conventions() -> None:
    for metric in catalogue.ALL:
        assert re.fullmatch(r"paceline_[a-z_]+", metric.name)
        assert metric.name.endswith("_total") == (metric.kind == "counter"), metric.name
        assert not re.search(r"_(ms|mb|kb|minutes|hours)\b", metric.name)
        assert metric.help.endswith("."), metric.name
        assert bool(metric.buckets) == (metric.kind == "histogram"), metric.name
    assert len({metric.name for metric in catalogue.ALL}) == len(catalogue.ALL)


class TestMessages:
    async def test_each_stage_is_measured_once(self, platform: Platform) -> None:
        told = await one_sent(platform)
        for stage in ("routed", "handed_off", "claimed", "sent", "delivered"):
            name = "paceline_message_stage_seconds_count"
            assert await value(platform, "orchestrator", name, stage=stage) == 1, stage
        total = "paceline_message_stage_seconds_sum"
        assert await value(platform, "orchestrator", total, stage="sent") == 3
        assert await value(platform, "orchestrator", total, stage="delivered") == 7
        await platform.webhook("MESSAGE_DELIVERED", told)
        await platform.webhook("MESSAGE_SENT", told)
        assert await value(platform, "orchestrator", "paceline_messages_settled_total", outcome="sent") == 1
        assert await value(platform, "orchestrator", "paceline_messages_settled_total", outcome="delivered") == 1

    async def test_a_receipt_that_is_the_first_word_counts_for_all_before_it(self, platform: Platform) -> None:
        claim = await platform.claimed()
        told = {"messageId": claim["task"]["taskId"], "to": FRIEND, "whatsappId": claim["task"]["whatsappId"]}
        await platform.webhook("MESSAGE_READ", told)
        for outcome in ("sent", "delivered", "read"):
            assert await value(platform, "orchestrator", "paceline_messages_settled_total", outcome=outcome) == 1

    async def test_what_was_accepted_routed_and_handed_off_is_counted(self, platform: Platform) -> None:
        await platform.connect()
        await platform.post_job(contacts=[FRIEND, OTHER_PHONE])
        platform.clock.forward(2_000)
        await platform.dispatch()
        assert await value(platform, "gateway", "paceline_jobs_accepted_total") == 1
        assert await value(platform, "gateway", "paceline_messages_accepted_total") == 2
        assert await value(platform, "dispatcher", "paceline_messages_routed_total") == 2
        assert await value(platform, "dispatcher", "paceline_messages_handed_off_total") == 1
        assert await value(platform, "dispatcher", "paceline_dispatch_lateness_seconds_count") == 1

    async def test_a_job_under_the_same_idempotency_key_counts_once(self, platform: Platform) -> None:
        await platform.connect()
        for _ in range(2):
            body = {"to": FRIEND, "message": "hello"}
            answer = await platform.gateway.post("/api/v1/send", json=body, headers={"Idempotency-Key": "k"})
            assert answer.status_code == 200
        assert await value(platform, "gateway", "paceline_jobs_accepted_total") == 1

    @pytest.mark.parametrize(
        ("code", "kind", "told"),
        [
            ("NOT_ON_WHATSAPP", "recipient", "NOT_ON_WHATSAPP"),
            ("463", "platform", "other"),
            ("MADE_UP", "transient", "other"),
        ],
    )
    async def test_a_failure_has_its_class_and_a_code_from_a_closed_list(
        self, platform: Platform, code: str, kind: str, told: str
    ) -> None:
        claim = await platform.claimed()
        error = {"code": code, "message": "no"}
        await platform.outbox("nack", {"raw": claim["raw"], "epoch": 1, "notSent": True, "error": error})
        failed = "paceline_send_failures_total"
        assert await value(platform, "orchestrator", failed, **{"class": kind, "code": told}) == 1

    async def test_a_lease_that_ends_without_a_word_is_counted(self, platform: Platform) -> None:
        await platform.claimed()
        platform.clock.forward(600_000)
        await platform.settling.sweep(platform.clock.at_ms)
        assert await value(platform, "orchestrator", "paceline_leases_ended_total", what="lease_ended") == 1


class TestFleet:
    async def test_it_is_read_when_asked(self, platform: Platform) -> None:
        await platform.connect()
        await platform.register("s2", OTHER_PHONE, age_days=1)
        await platform.post_job(contacts=[FRIEND], sessionId="s2")
        await platform.dispatch()

        async def of(name: str, **labels: str) -> float:
            return await value(platform, "orchestrator", name, **labels)

        assert await of("paceline_sessions", connection="CONNECTED") == 1
        assert await of("paceline_sessions", connection="STARTING") == 1
        assert await of("paceline_phones", level="hot") == 1
        assert await of("paceline_phones", level="cold") == 1
        assert await of("paceline_daily_limit_messages", level="cold") == 20
        assert (
            await of("paceline_queue_messages", queue="phones") + await of("paceline_queue_messages", queue="unrouted")
            == 1
        )
        assert await of("paceline_phones_restricted", restriction="NONE") == 2

    async def test_a_day_that_is_over_in_its_timezone_is_not_counted(self, platform: Platform) -> None:
        await platform.claimed()
        assert await value(platform, "orchestrator", "paceline_daily_used_messages", level="hot") == 1
        platform.clock.forward(86_400_000)
        assert await value(platform, "orchestrator", "paceline_daily_used_messages", level="hot") == 0

    async def test_at_most_so_many_sessions_have_a_name_and_nothing_is_lost(self, platform: Platform) -> None:
        many = catalogue.WORST + 5
        for place in range(many):
            await platform.register(f"s{place:02}", str(int(PHONE) + place))
            failures = ",".join([str(platform.clock.at_ms)] * (place + 1))
            await platform.link.read(("HSET", f"pacer:{int(PHONE) + place}", f"failed:s{place:02}", failures))
        text = await page(platform, "orchestrator")
        named = set(re.findall(r'paceline_session_last_minute_messages\{outcome="failed",session="([^"]*)"\}', text))
        assert len(named) == catalogue.WORST + 1
        assert f"s{many - 1:02}" in named
        assert "s00" not in named
        assert catalogue.OTHERS in named
        total = await value(platform, "orchestrator", "paceline_session_last_minute_messages", outcome="failed")
        assert total == many * (many + 1) / 2

    async def test_a_paused_fleet_and_an_overdue_number_show(self, platform: Platform) -> None:
        await platform.connect()
        await platform.post_job()
        await platform.engine.routers[0].step(platform.clock.at_ms)
        platform.clock.forward(30_000)
        assert await value(platform, "orchestrator", "paceline_dispatch_overdue_seconds") == 30
        await platform.dispatcher.post("/fleet/pause")
        assert await value(platform, "orchestrator", "paceline_fleet_paused") == 1


class TestEdges:
    async def test_requests_are_counted_by_template_and_status_never_by_path(self, platform: Platform) -> None:
        await platform.gateway.get("/api/v1/messages/no-such-message/status")
        await platform.gateway.get("/nowhere/972541234567")
        text = await page(platform, "gateway")
        assert 'method="GET",route="/api/v1/messages/{message_id}/status",status="404"' in text
        assert 'method="GET",route="other",status="404"' in text
        assert "no-such-message" not in text
        assert "972541234567" not in text

    async def test_several_who_ask_at_once_cost_one_reading(self, platform: Platform) -> None:
        await page(platform, "orchestrator")
        await platform.register()
        again = await platform.orchestrator.get("/metrics")
        assert 'paceline_sessions{connection="STARTING"} 0.0' in again.text
        assert 'paceline_sessions{connection="STARTING"} 1.0' in await page(platform, "orchestrator")

    async def test_a_webhook_that_waits_shows(self, platform: Platform) -> None:
        body = {"url": "http://127.0.0.1:9191/hook", "events": ["message.sent"]}
        made = await platform.gateway.post("/v1/webhooks", json=body)
        assert made.status_code == 201, made.text
        await one_sent(platform)
        await platform.outlets.feeder.step(platform.clock.at_ms)
        assert await value(platform, "gateway", "paceline_webhook_pending_events") == 1
        await platform.outlets.poster.step(platform.clock.at_ms)
        assert await value(platform, "gateway", "paceline_webhook_posts_total", outcome="retry") == 1
        assert await value(platform, "gateway", "paceline_webhooks", state="failing") == 1

    async def test_no_number_and_no_secret_is_told(self, platform: Platform) -> None:
        await one_sent(platform)
        for service in SERVICES:
            text = await page(platform, service)
            for canary in (PHONE, FRIEND, "canary"):
                assert canary not in text

    async def test_it_tells_what_it_counted_while_the_fleet_cannot_be_read(
        self, platform: Platform, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def away(**_: object) -> None:
            raise Unavailable("away")

        await one_sent(platform)
        monkeypatch.setattr(platform.store.measure, "fleet", away)
        text = await page(platform, "orchestrator")
        assert "paceline_messages_settled_total" in text
        assert "paceline_sessions{" not in text
