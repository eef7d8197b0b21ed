"""`tools/compose-env` makes the .env of compose.yaml once: run again it keeps every key, because the numbers' logins
and the workers' secrets hang on them."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES = ["API_KEY", "WEBHOOK_SECRET", "AUTH_SECRET", "HOST_DATA", "DOCKER_SOCKET", "DOCKER_GID"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / ".env"


def run(file: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [str(ROOT / "tools" / "compose-env"), str(file)]
    environment = {"PATH": os.environ["PATH"], "DOCKER_SOCKET": str(file.parent / "no.sock"), **environment}
    return subprocess.run(command, env=environment, text=True, capture_output=True, timeout=30, check=False)


def settings(file: Path) -> dict[str, str]:
    lines = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
    assert len(lines) == len({line.partition("=")[0] for line in lines}), "a name stands there twice"
    return dict(line.split("=", 1) for line in lines)


def test_a_first_run_writes_it_for_this_user_alone_and_prints_no_key(file: Path) -> None:
    made = run(file, HOST_DATA="/srv/paceline")
    assert made.returncode == 0, made.stderr
    found = settings(file)
    assert list(found) == NAMES
    assert found["HOST_DATA"] == "/srv/paceline"
    assert len({found[name] for name in NAMES[:3]}) == 3
    assert all(len(found[name]) >= 48 for name in NAMES[:3])
    assert file.stat().st_mode & 0o777 == 0o600
    assert [name for name in NAMES[:3] if found[name] in made.stdout + made.stderr] == []
    assert list(file.parent.iterdir()) == [file]


def test_run_again_it_changes_nothing_but_who_may_read_it(file: Path) -> None:
    """It made new keys: all numbers had to be linked again."""
    run(file)
    file.write_text(file.read_text() + "# mine\nGATEWAY_BIND=0.0.0.0\n")
    file.chmod(0o644)
    before = file.read_text()
    assert run(file, HOST_DATA="/elsewhere").returncode == 0
    assert file.read_text() == before
    assert file.stat().st_mode & 0o777 == 0o600


def test_only_what_is_missing_is_added(file: Path) -> None:
    file.write_text("export API_KEY=mine\nHOST_DATA=/srv/mine\nAUTH_SECRET=\nLOG_LEVEL=debug")
    assert run(file).returncode == 0
    found = settings(file)
    assert (found.pop("export API_KEY"), found["HOST_DATA"], found["LOG_LEVEL"]) == ("mine", "/srv/mine", "debug")
    assert found.keys() == {*NAMES, "LOG_LEVEL"} - {"API_KEY"}
    assert found["AUTH_SECRET"]


@pytest.mark.parametrize("empty", ["API_KEY=", 'API_KEY=""', "API_KEY=''", 'export API_KEY = "" '])
def test_what_is_empty_is_missing_however_it_is_written(file: Path, empty: str) -> None:
    """Two quotes counted as a key, and no service started."""
    file.write_text(f"{empty}\n")
    assert run(file).returncode == 0
    assert settings(file)["API_KEY"].startswith("pk_")


@pytest.mark.parametrize("quote", ["", '"', "'"])
def test_a_value_in_quotes_counts_without_them(file: Path, quote: str) -> None:
    """The group of the socket was not found, and the orchestrator could not use it."""
    socket = file.with_name("docker socket")
    socket.touch()
    os.chown(socket, -1, os.getgroups()[-1] if os.getuid() else 4321)
    file.write_text(f"DOCKER_SOCKET={quote}{socket}{quote}\n")
    assert run(file).returncode == 0
    assert settings(file)["DOCKER_GID"] == str(socket.stat().st_gid)


def test_a_secret_in_quotes_is_taken_over_with_them(file: Path) -> None:
    """Without them compose.yaml would put a variable in the place of `$b`."""
    file.write_text("WEBHOOK_SECRET='a$b'\n")
    assert run(file).returncode == 0
    assert settings(file)["AUTH_SECRET"] == "'a$b'"


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_run_by_root_it_leaves_the_file_to_its_owner(file: Path) -> None:
    """Who had made it could no longer read it."""
    file.write_text("LOG_LEVEL=debug\n")
    os.chown(file, 4321, 4322)
    assert run(file).returncode == 0
    about = file.stat()
    assert (about.st_uid, about.st_gid, about.st_mode & 0o777) == (4321, 4322, 0o600)


def test_a_file_without_an_auth_secret_goes_on_with_what_its_logins_are_encrypted_with(file: Path) -> None:
    """Unset, that is WEBHOOK_SECRET; a new one would unlink every number."""
    file.write_text("WEBHOOK_SECRET=the-one-in-use\n")
    assert run(file).returncode == 0
    assert settings(file)["AUTH_SECRET"] == "the-one-in-use"


def test_tokens_of_alerts_that_reach_no_service_are_named_with_where_they_belong(file: Path) -> None:
    """They stood there, and alerts were off without a word."""
    file.write_text("TELEGRAM_BOT_TOKEN=1:secret\nexport ALERT_URLS=slack://secret\n# TELEGRAM_CHAT_ID=1\n")
    told = run(file).stderr.splitlines()
    assert [line.split()[0] for line in told] == ["ALERT_URLS", "TELEGRAM_BOT_TOKEN"]
    assert all("deploy/alerts.env" in line and "secret" not in line for line in told)
    assert run(file.with_name("other")).stderr == ""


def test_whoever_still_redirects_it_is_told_instead_of_given_new_keys(file: Path) -> None:
    with file.open("w") as emptied:
        told = subprocess.run(
            [str(ROOT / "tools" / "compose-env"), str(file)], stdout=emptied, stderr=subprocess.PIPE, text=True,
            timeout=30, check=False,
        )  # fmt: skip
    assert told.returncode == 2
    assert "without >" in told.stderr
    assert file.read_text() == ""
