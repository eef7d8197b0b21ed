"""What `webhooks` and `people` ask and show, of answers that a running platform would not give at will."""

import json

import pytest

from paceline.cli.exits import Exit

from .conftest import Standin, run

WEBHOOK = {
    "webhookId": "01W",
    "url": "https://crm.example.com/paceline",
    "events": ["message.failed", "job.done"],
    "description": "",
    "state": "active",
    "createdAt": 1_773_136_800_000,
    "createdBy": "bootstrap",
    "pending": 3,
    "failingSince": None,
    "disabledAt": None,
    "disabledReason": None,
}
ERASED = {"to": "447700900300", "canceled": 1, "erased": 4, "open": 0, "suppressed": False}


def test_the_secret_of_a_new_one_is_alone_on_stdout(standin: Standin) -> None:
    standin.says(201, {**WEBHOOK, "secret": "whsec_canary"})
    result = run("webhooks", "create", WEBHOOK["url"], "--event", "message.failed", "--event", "job.done")
    assert (result.exit_code, result.stdout) == (0, "whsec_canary\n")
    assert "whsec_canary" not in result.stderr
    assert json.loads(standin.asked[0].content) == {
        "url": WEBHOOK["url"],
        "events": ["message.failed", "job.done"],
        "description": "",
    }


def test_without_a_type_it_is_all_of_them(standin: Standin) -> None:
    standin.says(201, {**WEBHOOK, "secret": "s"})
    run("webhooks", "create", WEBHOOK["url"])
    assert json.loads(standin.asked[0].content)["events"] == ["*"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        pytest.param({}, "3  —", id="well"),
        pytest.param({"failingSince": 1_773_136_800_000}, "failing since 2026-03-10 10:00:00Z", id="failing"),
        pytest.param(
            {"state": "disabled", "disabledAt": 1_773_136_800_000, "disabledReason": "FAILING"},
            "disabled 2026-03-10 10:00:00Z: FAILING",
            id="disabled",
        ),
    ],
)
def test_the_list_says_what_is_wrong(standin: Standin, more: dict[str, object], words: str) -> None:
    standin.says(200, {"items": [{**WEBHOOK, **more}], "nextCursor": None})
    line = run("webhooks", "list").stdout.splitlines()[1]
    assert line.startswith("01W")
    assert line.rstrip().endswith(words)


def test_deliveries_and_redrive_say_which(standin: Standin) -> None:
    delivery = {
        "deliveryId": "01D", "type": "job.done", "at": 1_773_136_800_000, "state": "failed", "tries": 7,
        "createdAt": 1_773_136_800_000, "lastTryAt": None, "nextTryAt": None, "endedAt": None, "status": 500,
        "error": None,
    }  # fmt: skip
    standin.says(200, {"items": [delivery], "nextCursor": None})
    assert "500" in run("webhooks", "deliveries", "01W", "--state", "failed").stdout
    assert dict(standin.asked[0].url.params) == {"state": "failed", "limit": "50"}
    standin.says(200, {"redriven": 1, "pulled": 2})
    result = run("webhooks", "redrive", "01W", "--from", "2026-03-10 10:00")
    assert "1 failed event again, 2 that waited now" in result.stderr
    assert json.loads(standin.asked[1].content) == {"from": 1_773_136_800_000}


@pytest.mark.parametrize("arguments", [("webhooks", "remove", "01W"), ("people", "erase", "447700900300")])
def test_what_cannot_be_taken_back_wants_a_yes(standin: Standin, arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert (result.exit_code, standin.asked) == (Exit.USAGE, [])
    assert "--yes" in result.stderr


@pytest.mark.parametrize("more", [(), ("--json",)])
@pytest.mark.parametrize(("still_open", "exit_code"), [(0, Exit.DONE), (2, Exit.FAILED)])
def test_erasing_fails_while_a_worker_holds_some(
    standin: Standin, still_open: int, exit_code: Exit, more: tuple[str, ...]
) -> None:
    standin.says(200, {**ERASED, "open": still_open, "suppressed": True})
    result = run("people", "erase", "+44 7700 900300", "--yes", *more)
    assert result.exit_code == exit_code
    assert standin.asked[0].method == "DELETE"
    if not more:
        assert "447700900300: 1 message canceled, 4 records erased" in result.stderr
        assert "still on the suppression list" in result.stderr
        assert ("2 messages in a worker's hands" in result.stderr) is bool(still_open)
