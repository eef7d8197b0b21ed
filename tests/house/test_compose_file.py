"""compose.yaml and the pages about it agree on where a setting stands."""

from pathlib import Path

import pytest
import yaml

from paceline.launcher.redis_server import SMALL_HASHES
from paceline.settings import Settings, env_name

ROOT = Path(__file__).parents[2]
SERVICES = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
FROM_ENV = {"API_KEY", "WEBHOOK_SECRET", "AUTH_SECRET", "PACELINE_POLICY", "LOG_LEVEL", "WORKER_IMAGE"}
FROM_ENV |= {"BAILEYS_WORKER_IMAGE", "WORKER_NETWORK", "WORKER_DATA_PATH"}
"""Settings that compose.yaml takes from .env: keys, and what it needs to know itself."""


@pytest.mark.parametrize("service", ["gateway", "dispatcher", "orchestrator"])
def test_every_other_setting_stands_in_settings_env_and_nowhere_else(service: str) -> None:
    """Telegram was off: what compose.yaml sets counts before that file, and it set the token to nothing."""
    known = {env_name(name) for name in Settings.model_fields}
    given = {name for name, value in SERVICES[service]["environment"].items() if "${" in str(value)}
    assert given & known <= FROM_ENV
    assert SERVICES[service]["env_file"] == ["${SETTINGS_FILE:-deploy/settings.env}"]


def test_the_pages_about_alerts_name_that_file() -> None:
    assert "deploy/settings.env" in (ROOT / "docs" / "alerts.md").read_text()
    shown = (ROOT / "deploy" / "settings.env").read_text()
    assert [name for name in ("TELEGRAM_BOT_TOKEN", "TELEGRAM_CHAT_ID") if f"# {name}=" not in shown] == []


def test_its_redis_keeps_messages_as_small_as_that_of_up() -> None:
    command = SERVICES["redis"]["command"]
    assert [f"--{name} {value}" in command for name, value in SMALL_HASHES.items()] == [True]
