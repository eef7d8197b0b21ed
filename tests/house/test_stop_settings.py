"""The settings about stop words: what is told by default, how nothing is told, and what cannot be told."""

import pytest

from paceline.settings import SettingsError, load_settings


@pytest.mark.parametrize(
    ("given", "told"),
    [
        pytest.param("", "You are unsubscribed and will get no more messages from us.", id="unset"),
        pytest.param("none", "", id="none"),
        pytest.param(" None ", "", id="none, however written"),
        pytest.param("   ", "", id="blank"),
        pytest.param(" Bye. ", "Bye.", id="a text"),
    ],
)
def test_what_somebody_who_says_stop_is_told(monkeypatch: pytest.MonkeyPatch, given: str, told: str) -> None:
    monkeypatch.setenv("STOP_CONFIRMATION", given)
    assert load_settings().stop_confirmation == told


@pytest.mark.parametrize("text", ["Bye {{name}}", "x" * 1_001])
def test_a_text_that_cannot_be_told_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("STOP_CONFIRMATION", text)
    with pytest.raises(SettingsError, match="STOP_CONFIRMATION"):
        load_settings()
