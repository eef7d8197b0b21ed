"""From settings to parts: what must agree agrees, and a service that cannot start says why."""

from types import ModuleType

import pytest

from paceline import compose
from paceline.dispatcher import main as dispatcher
from paceline.domain.errors import ConfigError
from paceline.gateway import main as gateway
from paceline.orchestrator import main as orchestrator
from paceline.settings import Settings


@pytest.mark.parametrize("policy", ["default", "distribution", "demo"])
def test_the_scripts_score_a_phone_as_early_as_the_policy_hands_over(policy: str) -> None:
    parts = compose.build(Settings(policy=policy))
    source = parts.store.pacers._caller._scripts["settle_task"].source
    assert f"lead_ms = {parts.rules.lead_ms}," in source


def test_the_scripts_keep_messages_and_jobs_as_long_as_the_settings_say() -> None:
    parts = compose.build(Settings(messages_kept_days=7, jobs_kept_days=14))
    source = parts.store.pacers._caller._scripts["settle_task"].source
    assert f"message_ttl = '{7 * 86_400}'," in source
    assert f"job_ttl = '{14 * 86_400}'," in source
    # What a session did on a day is no message.
    assert f"session_days_ttl = '{30 * 86_400}'," in source


def test_the_rules_are_those_of_the_settings() -> None:
    given = Settings(burst_limit=7, burst_cooldown_ms=1_000, liveness_ms=5_000, global_rpm=9, retry_delay_ms=4_000)
    rules = compose.rules_of(given)
    assert (rules.global_rpm, rules.retry_delay_ms) == (9, 4_000)
    assert (rules.pace_defaults.burst_limit, rules.pace_defaults.burst_cooldown_ms, rules.liveness_ms) == (
        7,
        1_000,
        5_000,
    )


async def test_a_redis_that_never_comes_ends_the_start_with_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounded, and the message names the setting."""
    monkeypatch.setattr(compose, "REDIS_PATIENCE_MS", -1)
    parts = compose.build(Settings(redis_url="unix:///nowhere/redis.sock"))
    with pytest.raises(ConfigError, match="REDIS_URL"):
        await compose.wait_for_redis(parts)
    await parts.link.close()


@pytest.mark.parametrize(
    ("service", "named"),
    [
        pytest.param(gateway, ["API_KEY", "LEASE_MS"], id="gateway"),
        pytest.param(dispatcher, ["API_KEY", "LEASE_MS"], id="dispatcher"),
        pytest.param(orchestrator, ["API_KEY", "WEBHOOK_SECRET", "LEASE_MS"], id="orchestrator"),
    ],
)
def test_no_service_starts_beyond_loopback_without_its_keys_and_each_names_all_that_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], service: ModuleType, named: list[str]
) -> None:
    for name in ("API_KEY", "WEBHOOK_SECRET", "ORCHESTRATOR_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOST", "0.0.0.0")
    monkeypatch.setenv("LEASE_MS", "soon")
    with pytest.raises(SystemExit) as stop:
        service.main()
    assert stop.value.code == 2
    told = capsys.readouterr().err
    assert [line.strip().partition(":")[0] for line in told.splitlines()[1:]] == named


def test_the_orchestrator_does_not_start_without_a_webhook_secret(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("WEBHOOK_SECRET", raising=False)
    with pytest.raises(SystemExit) as stop:
        orchestrator.main()
    assert stop.value.code == 2
    assert "WEBHOOK_SECRET" in capsys.readouterr().err
