"""`send`, `plan`, `jobs` and `messages`, on a running platform."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from paceline.cli.exits import Exit

from .conftest import Cli

TOMORROW = f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%d %H:%M}"
CSV = "to,name\n447700900301,Ada\n447700900302,Alan\nnobody,Nobody\n"


@pytest.fixture
def contacts(tmp_path: Path) -> str:
    path = tmp_path / "contacts.csv"
    path.write_text(CSV)
    return str(path)


def test_a_message_is_sent_and_its_id_is_alone_on_stdout(cli: Cli) -> None:
    result = cli.run("send", "+44 7700 900300", "Hello")
    assert result.exit_code == 0
    message_id = result.stdout.strip()
    assert result.stdout == f"{message_id}\n"
    assert f"paceline messages show {message_id}" in result.stderr
    cli.wait_for("it to be sent", "messages", "show", message_id, until=lambda m: m["state"] in ("sent", "delivered"))
    shown = cli.out("messages", "show", message_id)
    assert "447700900300" in shown
    assert message_id in cli.out("messages", "find", "447700900300")


def test_the_text_may_come_from_stdin_and_waiting_tells_the_end(cli: Cli) -> None:
    result = cli.run("send", "447700900303", "-", "--wait", stdin="Hello\nAda\n")
    assert result.exit_code == 0
    assert result.stderr.strip() in ("sent", "delivered", "read")
    (line,) = (line for line in cli.platform.ledger() if line["to"] == "447700900303")
    assert line["text"] == "Hello\nAda"


def test_waiting_for_one_that_fails_is_exit_code_1(cli: Cli) -> None:
    cli.platform.simulate({"not_on_whatsapp": ["447700900304"]})
    result = cli.run("send", "447700900304", "Hello", "--wait")
    assert (result.exit_code, result.stderr.split(":")[0]) == (Exit.FAILED, "failed")
    assert "NOT_ON_WHATSAPP" in result.stderr


def test_the_same_key_sends_once(cli: Cli) -> None:
    first, second = (cli.out("send", "447700900305", "Hello", "--idempotency-key", "k-305") for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("arguments", "exit_code", "words"),
    [
        pytest.param(("send", "nobody", "Hello"), Exit.REFUSED, "INVALID_NUMBER", id="no number"),
        pytest.param(("send", "447700900300", "Hello", "--at", "soon"), Exit.USAGE, "is no time", id="no time"),
        pytest.param(("send", "447700900300"), Exit.USAGE, "TEXT", id="no text"),
        pytest.param(("plan", "nowhere.csv", "Hello"), Exit.USAGE, "cannot read nowhere.csv", id="no file"),
        pytest.param(("plan", "-", "-"), Exit.USAGE, "only one of", id="stdin twice"),
        pytest.param(("jobs", "show", "01KKBK4FE0S7MP2BKPJTKCXK0V"), Exit.REFUSED, "UNKNOWN_JOB", id="no job"),
        pytest.param(("jobs", "cancel", "01KKBK4FE0S7MP2BKPJTKCXK0V"), Exit.USAGE, "--yes", id="nobody to ask"),
        pytest.param(("messages", "cancel", "01KKBK4FE0S7MP2BKPJTKCXK0V:0"), Exit.USAGE, "--yes", id="nobody, of one"),
        pytest.param(("keys", "revoke", "01KKBK4FE0S7MP2BKPJTKCXK0V"), Exit.USAGE, "--yes", id="nobody, of a key"),
        pytest.param(("messages", "show", "nothing"), Exit.REFUSED, "UNKNOWN_MESSAGE", id="no message"),
    ],
)
def test_refusals(cli: Cli, arguments: tuple[str, ...], exit_code: Exit, words: str) -> None:
    result = cli.run(*arguments)
    assert (result.exit_code, result.stdout) == (exit_code, "")
    assert words in result.stderr


def test_a_message_for_later_says_until_when_it_waits_and_can_be_canceled(cli: Cli) -> None:
    message = cli.out("send", "447700900306", "Hello", "--at", TOMORROW).strip()
    assert TOMORROW in cli.out("messages", "show", message)
    assert "canceled" in cli.said("messages", "cancel", message, "--yes")
    assert cli.json("messages", "show", message)["state"] == "canceled"


def test_a_plan_stores_nothing(cli: Cli, contacts: str) -> None:
    before = _job_ids(cli)
    result = cli.run("plan", contacts, "Hello {{name}}")
    assert result.exit_code == 0
    assert "447700900001" in result.stdout
    assert "contact 3 refused: nobody: INVALID_NUMBER" in result.stderr
    assert _job_ids(cli) == before


def _job_ids(cli: Cli) -> list[str]:
    """Without their progress: somebody may be reading a message of an earlier one just now."""
    return [job["jobId"] for job in cli.json("jobs", "list")["items"]]


def test_contacts_may_come_from_stdin(cli: Cli) -> None:
    assert "accepted" in cli.out("plan", "-", "Hello {{name}}", stdin=CSV)


def test_a_job_is_created_and_watched_to_its_end(cli: Cli, contacts: str) -> None:
    result = cli.run("jobs", "create", contacts, "Hello {{name}}", "--tag", "cli", "--watch")
    assert result.exit_code == 0
    job, *lines = result.stdout.splitlines()
    assert "2 of 3 contacts accepted" in result.stderr
    assert lines[-1].startswith("DONE 2/2 sent 2")
    assert job in cli.out("jobs", "list", "--tag", "cli")
    assert job not in cli.out("jobs", "list", "--single")
    assert "Ada" not in cli.out("jobs", "show", job)
    assert cli.out("jobs", "messages", job, "--state", "delivered,sent,read").count(f"{job}:") == 2
    # Nothing more happens to it, so it is the same whoever asks.
    assert json.loads(cli.out("jobs", "watch", job, "--json"))["state"] == "DONE"


def test_a_watched_job_that_fails_is_exit_code_1_and_one_that_takes_too_long_5(cli: Cli) -> None:
    cli.platform.simulate({"not_on_whatsapp": ["447700900307"]})
    failing = cli.out("jobs", "create", "-", "Hello", stdin="to\n447700900307\n").strip()
    assert "DONE_WITH_ERRORS" in cli.said("jobs", "watch", failing, exit_code=Exit.FAILED)
    later = cli.out("jobs", "create", "-", "Hello", "--at", TOMORROW, stdin="to\n447700900308\n").strip()
    assert "has not ended" in cli.said("jobs", "watch", later, "--timeout", "1", exit_code=Exit.TIMED_OUT)
    assert "waiting: 1 message" in cli.said("jobs", "pause", later)
    assert cli.json("jobs", "show", later)["state"] == "PAUSED"
    assert "released: " in cli.said("jobs", "resume", later)
    assert "1 message canceled" in cli.said("jobs", "cancel", later, "--yes")
    assert "CANCELED" in cli.said("jobs", "watch", later, exit_code=Exit.FAILED)
