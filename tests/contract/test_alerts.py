"""Alerts on their way out: Telegram against a stand-in of its Bot API, the loop across crashes, and what is never in
a log or an answer."""

import io
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
import structlog

from lua.servers import LiveServer
from paceline.alerts import channels as channels_module
from paceline.alerts import telegram as telegram_module
from paceline.alerts.channels import DELIVERED, Channel, Outcome
from paceline.alerts.loop import Alerts
from paceline.alerts.others import other_channels, split_urls
from paceline.alerts.telegram import TEXT_MAX, Telegram
from paceline.alerts.wiring import channels_of
from paceline.domain.errors import ConfigError
from paceline.kits import failpoint
from paceline.kits.logging import configure_logging
from paceline.policy.alert_kinds import Severity
from paceline.policy.alerts import AlertRules
from paceline.settings import Settings

from .bot_api import BotApi, bot_api
from .platform import PHONE, READ_KEY, SEND_KEY, Platform, refused

TOKEN = "123456789:CanaryTokenOfTheBotAAAAAAAAAAAAAAA"
CHAT = "-100200300"


@pytest.fixture
async def api() -> AsyncIterator[BotApi]:
    async with bot_api() as found:
        yield found


@pytest.fixture
async def telegram(api: BotApi) -> AsyncIterator[Telegram]:
    async with httpx.AsyncClient() as client:
        yield Telegram(TOKEN, CHAT, api_url=api.url, client=client)


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Everything that is logged, at the most talkative level; without the net that knows the token by its value."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    configure_logging("contract", "debug", stream=stream)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


class Recorder:
    """A channel that does what it is told."""

    def __init__(self, name: str = "recorder") -> None:
        self.name = name
        self.texts: list[str] = []
        self.outcomes: list[Outcome] = []

    async def send(self, text: str, severity: Severity) -> Outcome:
        self.texts.append(text)
        return self.outcomes.pop(0) if self.outcomes else DELIVERED


class Crash(Exception):
    pass


def dies_at(name: str) -> None:
    def hook(passed: str) -> None:
        if passed == name:
            failpoint.set_hook(None)
            raise Crash

    failpoint.set_hook(hook)


async def rounds(alerts: Alerts, platform: Platform) -> None:
    """Steps until there is nothing to do now."""
    for _ in range(100):
        due_ms = await alerts.step(platform.clock.now_ms())
        if due_ms is None or due_ms > platform.clock.now_ms():
            return
    raise AssertionError("it never comes to an end")


async def note(platform: Platform, kind: str = "SESSION_FAILED", session: str = "s1", **fields: Any) -> None:
    said = {"sessionId": session, "phone": PHONE, **fields}
    await platform.store.alerts.note(kind, said, now_ms=platform.clock.now_ms())


def alerts_on(platform: Platform, *channels: Channel, holder: str = "a") -> Alerts:
    return Alerts(platform.store.alerts, channels, AlertRules(), holder=holder)


class TestTelegram:
    async def test_the_text_goes_to_the_chat_as_it_is(self, api: BotApi, telegram: Telegram) -> None:
        text = "Paceline · WARNING\n<b>no</b> _markup_ *here* עברית"
        assert await telegram.send(text, Severity.WARNING) == DELIVERED
        assert api.paths == [f"/bot{TOKEN}/sendMessage"]
        (body,) = api.bodies
        assert (body["chat_id"], body["text"]) == (CHAT, text)
        assert "parse_mode" not in body
        assert body["disable_notification"] is False

    async def test_a_note_makes_no_noise(self, api: BotApi, telegram: Telegram) -> None:
        await telegram.send("well again", Severity.INFO)
        assert api.bodies[0]["disable_notification"] is True

    async def test_a_text_that_is_too_long_is_cut(self, api: BotApi, telegram: Telegram) -> None:
        await telegram.send("x" * 9_000, Severity.INFO)
        assert len(api.texts[0]) == TEXT_MAX

    @pytest.mark.parametrize(
        ("answer", "expected"),
        [
            pytest.param((429, {"ok": False, "parameters": {"retry_after": 17}}, {}), 17_000, id="in the body"),
            pytest.param((429, {"ok": False}, {"Retry_After": "9"}), 9_000, id="in the header"),
            pytest.param((429, b"<html>slow down</html>", {"Retry_After": "9"}), 9_000, id="from a proxy before it"),
            pytest.param((429, {"ok": False}, {}), 30_000, id="it does not say when"),
            pytest.param((429, {"ok": False}, {"Retry_After": "Tue, 10 Mar"}), 30_000, id="a date"),
            pytest.param((503, {"ok": False}, {"Retry_After": "9"}), None, id="only a 429 says when"),
        ],
    )
    async def test_when_it_wants_to_be_asked_again(
        self, api: BotApi, telegram: Telegram, answer: tuple[int, Any, dict[str, str]], expected: int | None
    ) -> None:
        api.answers.append(answer)
        outcome = await telegram.send("x", Severity.INFO)
        assert (outcome.ok, outcome.retry_after_ms) == (False, expected)

    @pytest.mark.parametrize(
        ("status", "body", "reason"),
        [
            pytest.param(500, {"ok": False, "description": "Internal"}, "HTTP 500: Internal", id="5xx"),
            pytest.param(502, b"<html>Bad Gateway</html>", "HTTP 502 with an answer that is none", id="a proxy's page"),
            pytest.param(200, b'{"ok": tr', "HTTP 200 with an answer that is none", id="broken JSON"),
            pytest.param(200, b"[]", "HTTP 200 with an answer that is none", id="another shape"),
            pytest.param(200, {"ok": False, "description": "no"}, "HTTP 200: no", id="200 that says no"),
            pytest.param(302, b"", "HTTP 302 with an answer that is none", id="a redirect is not followed"),
            pytest.param(
                400, {"ok": False, "description": "Bad Request: chat not found"},
                "HTTP 400: Bad Request: chat not found", id="no such chat",
            ),
            pytest.param(
                401, {"ok": False, "description": f"Unauthorized {TOKEN}"}, "HTTP 401: Unauthorized [token]",
                id="it repeats the token",
            ),
            pytest.param(
                400,
                {"ok": False, "description": "upgraded", "parameters": {"migrate_to_chat_id": -100999}},
                "HTTP 400: upgraded; the group has a new id, set TELEGRAM_CHAT_ID=-100999", id="the group moved",
            ),
        ],
    )  # fmt: skip
    async def test_why_it_was_not_taken(
        self, api: BotApi, telegram: Telegram, status: int, body: Any, reason: str
    ) -> None:
        api.then(status, body)
        assert await telegram.send("x", Severity.INFO) == Outcome(ok=False, reason=reason)

    async def test_no_answer_in_time(self, api: BotApi, telegram: Telegram, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(telegram_module, "TIMEOUT_S", 0.05)
        api.silent = True
        outcome = await telegram.send("x", Severity.INFO)
        assert (outcome.ok, outcome.reason) == (False, "no answer within 0 s")

    async def test_somebody_who_hangs_up(self, api: BotApi, telegram: Telegram) -> None:
        api.rude = True
        outcome = await telegram.send("x", Severity.INFO)
        assert not outcome.ok
        assert outcome.reason.startswith("no connection (")

    async def test_nobody_is_there(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            async with httpx.AsyncClient() as client:
                url = f"http://127.0.0.1:{free.getsockname()[1]}"
                outcome = await Telegram(TOKEN, CHAT, api_url=url, client=client).send("x", Severity.INFO)
        assert outcome == Outcome(ok=False, reason="no connection (ConnectError)")


class TestLoop:
    async def test_what_happens_is_told_once(self, platform: Platform) -> None:
        channel = Recorder()
        alerts = alerts_on(platform, channel)
        await note(platform)
        await note(platform, kind="SEND_FAILED")
        await rounds(alerts, platform)
        await rounds(alerts, platform)
        assert len(channel.texts) == 1
        assert channel.texts[0].startswith("Paceline · CRITICAL\n")
        assert "Session s1 (number …4567) has failed" in channel.texts[0]

    async def test_a_real_failure_comes_all_the_way(self, platform: Platform, api: BotApi, telegram: Telegram) -> None:
        """A message is refused for good; the operator reads it on Telegram, without the text and the person."""
        claim = await platform.claimed()
        error = {"code": "NOT_ON_WHATSAPP", "message": "no account"}
        await platform.outbox("nack", {"raw": claim["raw"], "epoch": 1, "notSent": True, "error": error})
        await rounds(alerts_on(platform, telegram), platform)
        assert len(api.texts) == 1
        assert "A message of number …4567 was given up: NOT_ON_WHATSAPP" in api.texts[0]
        assert claim["task"]["to"] not in str(api.bodies)
        assert claim["task"]["text"] not in api.texts[0]

    async def test_of_two_orchestrators_one_alerts_and_the_other_takes_over(self, platform: Platform) -> None:
        channel = Recorder()
        first, second = alerts_on(platform, channel, holder="a"), alerts_on(platform, channel, holder="b")
        await rounds(first, platform)
        await note(platform)
        await rounds(second, platform)
        assert channel.texts == []
        await rounds(first, platform)
        assert len(channel.texts) == 1
        platform.clock.forward(60_000)
        await note(platform, session="s2")
        await rounds(second, platform)
        assert len(channel.texts) == 2
        await note(platform, session="s3")
        await rounds(first, platform)
        assert len(channel.texts) == 2, "the first one is out"

    async def test_who_lost_the_lease_while_delivering_keeps_nothing(self, platform: Platform) -> None:
        """A process that was stopped for a while must not undo what the other one did meanwhile."""
        channel = Recorder()
        await note(platform)

        class Slow(Recorder):
            async def send(self, text: str, severity: Severity) -> Outcome:
                platform.clock.forward(120_000)
                await rounds(alerts_on(platform, channel, holder="b"), platform)
                return await super().send(text, severity)

        slow = Slow()
        await alerts_on(platform, slow, holder="a").step(platform.clock.now_ms())
        kept = await platform.store.alerts.kept()
        assert kept.memory is not None
        assert b'"recorder"' in kept.memory
        assert b'"left"' not in kept.memory, "what the other one delivered stays delivered"

    @pytest.mark.parametrize(("point", "times"), [("alerts-taken", 1), ("alerts-sent", 2)])
    async def test_a_crash_costs_at_most_one_repeated_alert(self, platform: Platform, point: str, times: int) -> None:
        channel = Recorder()
        for number in range(3):
            await note(platform, session=f"s{number}")
        dies_at(point)
        with pytest.raises(Crash):
            await rounds(alerts_on(platform, channel), platform)
        await rounds(alerts_on(platform, channel), platform)
        told = [text.split("Session ")[1].split(" ")[0] for text in channel.texts]
        assert sorted(set(told)) == ["s0", "s1", "s2"]
        assert len(told) == 3 + times - 1

    async def test_telegrams_word_on_when_is_obeyed(self, platform: Platform, api: BotApi, telegram: Telegram) -> None:
        alerts = alerts_on(platform, telegram)
        await note(platform)
        api.then_too_many(40)
        await rounds(alerts, platform)
        platform.clock.forward(39_000)
        await rounds(alerts, platform)
        assert len(api.texts) == 1
        platform.clock.forward(1_000)
        await rounds(alerts, platform)
        assert len(api.texts) == 2
        assert api.texts[0] == api.texts[1]
        await rounds(alerts, platform)
        assert len(api.texts) == 2

    async def test_a_channel_that_fails_holds_up_no_other(self, platform: Platform) -> None:
        bad, good = Recorder("bad"), Recorder("good")
        bad.outcomes = [Outcome(ok=False, reason="no")] * 3
        alerts = alerts_on(platform, bad, good)
        for number in range(3):
            await note(platform, session=f"s{number}")
            await rounds(alerts, platform)
        assert len(good.texts) == 3
        assert len(bad.texts) == 1
        for _ in range(10):
            platform.clock.forward(60_000)
            await rounds(alerts, platform)
        assert len(good.texts) == 3
        assert len(bad.texts) == 3 + 3, "three tries that failed, then each alert once"

    async def test_a_channel_with_a_fault_of_ours_silences_no_other(self, platform: Platform, log: io.StringIO) -> None:
        class Broken(Recorder):
            async def send(self, text: str, severity: Severity) -> Outcome:
                raise ValueError(f"https://host/bot{TOKEN}")

        good = Recorder("good")
        alerts = alerts_on(platform, Broken("broken"), good)
        await note(platform)
        await rounds(alerts, platform)
        assert len(good.texts) == 1
        assert [outcome.ok for _, outcome in await alerts.test()] == [False, True]
        assert "ValueError" in log.getvalue()
        assert TOKEN not in log.getvalue()

    async def test_without_a_channel_the_place_moves_on(self, platform: Platform) -> None:
        """Whoever sets up Telegram later is not told of last year."""
        await note(platform)
        await rounds(alerts_on(platform), platform)
        channel = Recorder()
        await rounds(alerts_on(platform, channel), platform)
        assert channel.texts == []

    async def test_a_memory_that_cannot_be_read_is_begun_anew(self, platform: Platform) -> None:
        await platform.store.alerts.hold("a", now_ms=platform.clock.now_ms(), ttl_ms=1_000)
        await platform.store.alerts.save("a", "0-0", b'{"windows": 5}', now_ms=platform.clock.now_ms(), ttl_ms=1_000)
        channel = Recorder()
        await note(platform)
        await rounds(alerts_on(platform, channel), platform)
        assert len(channel.texts) == 1

    async def test_a_thousand_failures_are_two_alerts(
        self, platform: Platform, api: BotApi, telegram: Telegram
    ) -> None:
        alerts = alerts_on(platform, telegram)
        for number in range(1_000):
            await note(platform, kind="MESSAGE_GIVEN_UP", phone=f"97254000000{number % 5}", code="NO_ACK")
        await rounds(alerts, platform)
        platform.clock.forward(600_000)
        await rounds(alerts, platform)
        assert len(api.texts) == 2
        assert "999 more messages were given up in the last 10 minutes, on 5 numbers" in api.texts[1]


class TestRoute:
    @pytest.fixture
    async def wired(self, contract_redis: LiveServer, telegram: Telegram) -> AsyncIterator[tuple[Platform, Recorder]]:
        contract_redis.client.flushall()
        recorder = Recorder("slack#1")
        stage = Platform(contract_redis.url, channels=[telegram, recorder])
        await stage.open()
        yield stage, recorder
        await stage.close()

    async def test_every_channel_gets_it_and_says_so(self, wired: tuple[Platform, Recorder], api: BotApi) -> None:
        platform, recorder = wired
        answer = await platform.orchestrator.post("/api/alerts/test")
        assert answer.status_code == 200
        assert answer.json() == {
            "ok": True,
            "channels": [{"channel": "telegram", "ok": True}, {"channel": "slack#1", "ok": True}],
        }
        assert "This is a test." in api.texts[0]
        assert recorder.texts == api.texts

    async def test_the_channels_are_named_to_whoever_may_read(self, wired: tuple[Platform, Recorder]) -> None:
        platform, _ = wired
        answer = await platform.orchestrator.get("/api/alerts", headers={"X-API-KEY": READ_KEY})
        assert answer.json() == {"channels": ["telegram", "slack#1"]}

    async def test_what_fails_says_why_without_the_token(
        self, wired: tuple[Platform, Recorder], api: BotApi, log: io.StringIO
    ) -> None:
        platform, _ = wired
        api.then(404, {"ok": False, "description": f"Not Found: {TOKEN}"})
        answer = await platform.orchestrator.post("/api/alerts/test")
        assert answer.json()["ok"] is False
        assert answer.json()["channels"][0] == {
            "channel": "telegram", "ok": False, "reason": "HTTP 404: Not Found: [token]",
        }  # fmt: skip
        assert TOKEN not in answer.text
        assert TOKEN not in log.getvalue()

    async def test_without_a_channel_it_is_a_conflict(self, platform: Platform) -> None:
        refused(await platform.orchestrator.post("/api/alerts/test"), 409, "NO_ALERT_CHANNEL")

    async def test_it_needs_the_admin_scope(self, platform: Platform) -> None:
        answer = await platform.orchestrator.post("/api/alerts/test", headers={"X-API-KEY": SEND_KEY})
        refused(answer, 403, "FORBIDDEN")
        assert (await platform.orchestrator.get("/api/alerts/test")).status_code == 405


async def test_the_token_is_in_no_log_and_no_reason_whatever_goes_wrong(
    platform: Platform, api: BotApi, log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every failure there is, at the most talkative level, with a real client."""
    monkeypatch.setattr(telegram_module, "TIMEOUT_S", 0.05)
    reasons: list[str] = []
    async with httpx.AsyncClient() as client:
        telegram = Telegram(TOKEN, CHAT, api_url=api.url, client=client)
        gone = Telegram(TOKEN, CHAT, api_url="http://127.0.0.1:1", client=client)
        odd = Telegram(TOKEN, CHAT, api_url="http://[", client=client)
        for status in (200, 401, 404, 429, 500):
            api.then(status, {"ok": status == 200, "description": f"https://host/bot{TOKEN}/sendMessage"})
            reasons.append((await telegram.send("x", Severity.INFO)).reason)
        api.silent = True
        for channel in (telegram, gone, odd):
            reasons.append((await channel.send("x", Severity.INFO)).reason)
        await note(platform)
        await rounds(alerts_on(platform, gone), platform)
    assert "an alert could not be delivered" in log.getvalue()
    assert TOKEN not in log.getvalue()
    assert TOKEN not in " ".join(reasons)
    assert len([reason for reason in reasons if reason]) == 7, "the first was taken"


class TestOthers:
    def test_addresses_are_told_apart(self) -> None:
        text = "slack://a/b/c, mailtos://u:p@host?to=x@y,z@y\n json://h,\txml://h/ "
        assert split_urls(text) == ["slack://a/b/c", "mailtos://u:p@host?to=x@y,z@y", "json://h", "xml://h/"]

    async def test_apprise_carries_it_to_a_real_server(self, api: BotApi) -> None:
        (channel,) = other_channels(f"json://127.0.0.1:{api.port}/hook")
        assert channel.name == "json#1"
        assert await channel.send("Paceline · WARNING\n<b>it</b> *happened*", Severity.WARNING) == DELIVERED
        (body,) = api.bodies
        assert (body["title"], body["message"]) == ("Paceline · WARNING", "<b>it</b> *happened*")
        assert (body["type"], api.paths) == ("warning", ["/hook"])

    async def test_what_it_refuses_is_an_answer_with_the_status_alone(self, api: BotApi, log: io.StringIO) -> None:
        (channel,) = other_channels(f"json://user:canary-password@127.0.0.1:{api.port}/canary-path")
        api.then(403, b"canary-answer")
        assert await channel.send("t\nb", Severity.INFO) == Outcome(ok=False, reason="HTTP 403")
        (gone,) = other_channels("json://user:canary-password@127.0.0.1:1/hook")
        outcome = await gone.send("t\nb", Severity.INFO)
        assert (outcome.ok, outcome.reason) == (False, "the service did not take it")
        assert "canary" not in log.getvalue()

    async def test_one_that_never_answers_is_cut_off(self, api: BotApi, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("paceline.alerts.others.TIMEOUT_S", 0.05)
        api.silent = True
        (channel,) = other_channels(f"json://127.0.0.1:{api.port}/hook?rto=0.2")
        outcome = await channel.send("t\nb", Severity.INFO)
        assert (outcome.ok, outcome.reason) == (False, "no answer within 0 s")

    def test_what_is_no_address_is_named_by_its_place(self) -> None:
        with pytest.raises(ConfigError) as found:
            other_channels("json://host nosuchservice://canary-token alsonone://x")
        assert found.value.faults == [
            "ALERT_URLS: entry 2 is no address that apprise knows",
            "ALERT_URLS: entry 3 is no address that apprise knows",
        ]


def test_settings_make_the_channels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", TOKEN)
    monkeypatch.setenv("TELEGRAM_CHAT_ID", CHAT)
    monkeypatch.setenv("ALERT_URLS", "json://host")
    assert [channel.name for channel in channels_of(Settings())] == ["telegram", "json#1"]
    assert channels_module.TIMEOUT_S > 0
