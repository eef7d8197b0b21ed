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
    assert SERVICES[service]["env_file"][0] == "${SETTINGS_FILE:-deploy/settings.env}"


def test_tokens_of_alerts_stand_in_a_file_that_git_ignores_and_the_orchestrator_alone_gets() -> None:
    """They belonged in settings.env: in git, and in the environment of every service."""
    more = {name: service["env_file"][1:] for name, service in SERVICES.items() if service.get("env_file")}
    alerts = {"path": "deploy/alerts.env", "required": False}
    assert more == {"gateway": [], "dispatcher": [], "orchestrator": [alerts]}
    assert "/deploy/alerts.env" in (ROOT / ".gitignore").read_text().splitlines()
    assert "TELEGRAM_BOT_TOKEN=" not in (ROOT / "deploy" / "settings.env").read_text()


@pytest.mark.parametrize("page", ["docs/alerts.md", "docs/docker.md", "deploy/settings.env"])
def test_the_pages_about_alerts_name_that_file(page: str) -> None:
    assert "deploy/alerts.env" in (ROOT / page).read_text()


def test_its_redis_keeps_messages_as_small_as_that_of_up() -> None:
    command = SERVICES["redis"]["command"]
    assert all(f"--{name} {value}" in command for name, value in SMALL_HASHES.items())
