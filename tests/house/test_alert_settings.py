"""Settings of alerts and of the audit trail: what is refused, and that a refusal tells no secret."""

from pathlib import Path

import pytest

from paceline.settings import Settings, SettingsError, load

TOKEN = "123456789:CanaryTokenOfTheBotAAAAAAAAAAAAAAA"


def faults(monkeypatch: pytest.MonkeyPatch, **environment: str) -> list[str]:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as found:
        load(Settings)
    assert "Canary" not in str(found.value)
    return found.value.faults


def test_both_halves_of_telegram_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    (fault,) = faults(monkeypatch, TELEGRAM_BOT_TOKEN=TOKEN)
    assert fault.startswith("TELEGRAM_CHAT_ID: and TELEGRAM_BOT_TOKEN go together")
    monkeypatch.delenv("TELEGRAM_BOT_TOKEN")
    (fault,) = faults(monkeypatch, TELEGRAM_CHAT_ID="42")
    assert fault.startswith("TELEGRAM_CHAT_ID: and TELEGRAM_BOT_TOKEN go together")


@pytest.mark.parametrize(
    "token",
    ["CanaryToken", "123:CanaryShort", f"{TOKEN}/../x", f"{TOKEN} "],
    ids=["no number", "too short", "a path", "a space behind it"],
)
def test_what_is_no_token_is_refused_and_not_repeated(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    (fault,) = faults(monkeypatch, TELEGRAM_BOT_TOKEN=token, TELEGRAM_CHAT_ID="42")
    assert fault.startswith("TELEGRAM_BOT_TOKEN: is not a bot token")


@pytest.mark.parametrize("chat", ["ops", "12x", "@a", "4 2"])
def test_what_is_no_chat_is_refused(monkeypatch: pytest.MonkeyPatch, chat: str) -> None:
    (fault,) = faults(monkeypatch, TELEGRAM_BOT_TOKEN=TOKEN, TELEGRAM_CHAT_ID=chat)
    assert fault.startswith("TELEGRAM_CHAT_ID: is neither a number nor @name")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TELEGRAM_API_URL", "ftp://x"),
        ("ALERT_LEVEL", "loud"),
        ("ALERT_WINDOW_MINUTES", "0"),
        ("ALERT_PER_MINUTE", "61"),
        ("ALERT_NAME", "x" * 65),
        ("AUDIT_KEPT_DAYS", "0"),
    ],
)
def test_bad_values_are_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    (fault,) = faults(monkeypatch, **{name: value})
    assert fault.startswith(f"{name}:")


@pytest.mark.parametrize("chat", ["42", "-1001234567890", "@our_alerts"])
def test_what_telegram_knows_is_taken(monkeypatch: pytest.MonkeyPatch, chat: str) -> None:
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", TOKEN)
    monkeypatch.setenv("TELEGRAM_CHAT_ID", chat)
    monkeypatch.setenv("ALERT_URLS", "json://user:Canary@host")
    monkeypatch.setenv("ALERT_LEVEL", "Warning")
    settings = load(Settings)
    assert (settings.telegram_chat_id, settings.alert_level) == (chat, "warning")
    assert "Canary" not in repr(settings)


def test_the_trail_lies_with_the_data_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load(Settings).audit_path == Path("data/orchestrator.sqlite")
    monkeypatch.setenv("PACELINE_DATA", "/srv/paceline")
    assert load(Settings).audit_path == Path("/srv/paceline/orchestrator.sqlite")
    monkeypatch.setenv("DB_PATH", "/var/lib/audit.sqlite")
    assert load(Settings).audit_path == Path("/var/lib/audit.sqlite")
