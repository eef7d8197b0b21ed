"""Where a command asks, with which key, and what its exit code tells; shown on `paceline keys`, true of all."""

import json
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner, Result

from paceline.cli import app, paging
from paceline.cli.exits import Exit
from paceline.launcher.data import DataDirectory

from .conftest import Answer, Standin, run

KEY = {
    "keyId": "01K",
    "name": "CRM [red]",
    "scopes": ["send", "read"],
    "state": "live",
    "createdAt": 1_773_136_800_000,
    "createdBy": "bootstrap",
    "expiresAt": None,
    "ratePerMinute": None,
    "revokedAt": None,
    "revokedBy": None,
}


def keys(*arguments: str) -> Result:
    return run("keys", *arguments)


def test_a_new_key_is_alone_on_stdout(standin: Standin) -> None:
    standin.says(201, {**KEY, "key": "pk_secret", "expiresAt": 1_773_136_800_000})
    result = keys(
        "create", "--name", "CRM", "--scope", "send", "--scope", "read", "--expires-days", "9", "--rate", "60"
    )
    assert (result.exit_code, result.stdout) == (0, "pk_secret\n")
    assert "pk_secret" not in result.stderr
    assert "01K" in result.stderr
    assert "until 2026-03-10 10:00:00Z" in result.stderr
    (request,) = standin.asked
    assert (request.method, str(request.url)) == ("POST", "http://127.0.0.1:4000/v1/keys")
    assert json.loads(request.content) == {
        "name": "CRM",
        "scopes": ["send", "read"],
        "expiresInDays": 9,
        "ratePerMinute": 60,
    }


def test_what_is_left_out_is_left_to_the_gateway(standin: Standin) -> None:
    standin.says(201, {**KEY, "key": "pk_secret"})
    assert "until it is revoked" in keys("create", "--name", "CRM", "--scope", "send").stderr
    body = json.loads(standin.asked[0].content)
    assert body == {"name": "CRM", "scopes": ["send"]}


@pytest.mark.parametrize(
    ("arguments", "environment", "expected"),
    [
        pytest.param((), {}, ("http://127.0.0.1:4000", "key-of-the-data-directory"), id="as paceline up left it"),
        pytest.param((), {"API_KEY": "k2"}, ("http://127.0.0.1:4000", "k2"), id="from the environment"),
        pytest.param((), {"API_KEY": ""}, ("http://127.0.0.1:4000", "key-of-the-data-directory"), id="empty is unset"),
        pytest.param((), {"PACELINE_URL": "https://gw/", "API_KEY": "k2"}, ("https://gw", "k2"), id="another host"),
        pytest.param(
            ("--url", "http://localhost:4400"), {}, ("http://localhost:4400", "key-of-the-data-directory"), id="here"
        ),
        pytest.param((), {"GATEWAY_PORT": "4400", "API_KEY": "k2"}, ("http://127.0.0.1:4400", "k2"), id="another port"),
        pytest.param(
            ("--key", "k3", "--url", "http://other:1"),
            {"API_KEY": "k2", "PACELINE_URL": "https://gw"},
            ("http://other:1", "k3"),
            id="options win",
        ),
    ],
)
def test_where_it_asks_and_with_which_key(
    standin: Standin,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    environment: dict[str, str],
    expected: tuple[str, str],
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    standin.says(200, KEY)
    assert keys("revoke", "01K", "--yes", *arguments).exit_code == 0
    (request,) = standin.asked
    assert (str(request.url), request.headers["X-API-KEY"]) == (f"{expected[0]}/v1/keys/01K", expected[1])


@pytest.mark.parametrize(("made", "key"), [(("demo",), "demo-key"), (("demo", "."), "up-key")])
def test_the_demos_key_is_found_where_there_is_no_other(
    standin: Standin, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, made: tuple[str, ...], key: str
) -> None:
    monkeypatch.delenv("PACELINE_DATA")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data" / "demo").mkdir(parents=True)
    for folder in made:
        (tmp_path / "data" / folder / "api-key").write_text("demo-key" if folder == "demo" else "up-key")
    standin.says(200, KEY)
    assert keys("self").exit_code == 0
    assert standin.asked[0].headers["X-API-KEY"] == key


@pytest.mark.parametrize(
    ("variable", "url", "host"),
    [
        ("PACELINE_URL", "https://gw.example", "gw.example"),
        ("GATEWAY_URL", "http://192.0.2.7:4000", "192.0.2.7"),
        ("GATEWAY_URL", "http://127.0.0.1.example:4000", "127.0.0.1.example"),
        ("GATEWAY_URL", "http://127.0.0.1@gw.example", "gw.example"),
        ("GATEWAY_URL", "http://[::1", "http://[::1"),
        ("ORCHESTRATOR_URL", "http://192.0.2.7:3000", "192.0.2.7"),
        ("DISPATCHER_URL", "http://192.0.2.7:4001", "192.0.2.7"),
    ],
)
def test_the_key_of_this_machine_is_not_sent_to_another(
    standin: Standin, monkeypatch: pytest.MonkeyPatch, variable: str, url: str, host: str
) -> None:
    """It is the admin key of another installation than the one that is asked."""
    monkeypatch.setenv(variable, url)
    result = run("sessions", "show", "s1")
    assert (result.exit_code, standin.asked) == (Exit.USAGE, [])
    assert f"is not sent to {host}:" in " ".join(result.stderr.split())
    assert "API_KEY" in result.stderr


@pytest.mark.parametrize("variable", ["ORCHESTRATOR_URL", "DISPATCHER_URL"])
def test_a_command_that_asks_the_gateway_alone_does_not_care_where_the_others_are(
    standin: Standin, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "http://192.0.2.7:4001")
    standin.says(200, KEY)
    assert keys("self").exit_code == 0
    assert standin.asked[0].headers["X-API-KEY"] == "key-of-the-data-directory"


@pytest.mark.parametrize(
    ("environment", "host"),
    [
        pytest.param({"HOST": "192.0.2.7"}, "192.0.2.7", id="where its services listen"),
        pytest.param({"HOST": "2001:DB8::7"}, "[2001:db8::7]", id="the same, IPv6"),
        pytest.param({}, "0.0.0.0", id="everywhere"),
        pytest.param({}, "[::]", id="everywhere, IPv6"),
        pytest.param({}, "Box-7", id="its name"),
    ],
)
def test_this_machine_has_more_addresses_than_loopback(
    standin: Standin, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], host: str
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "box-7")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    standin.says(200, KEY)
    assert keys("self", "--url", f"http://{host}:4000").exit_code == 0
    assert standin.asked[0].headers["X-API-KEY"] == "key-of-the-data-directory"


@pytest.mark.parametrize(
    ("given", "left_out"),
    [
        pytest.param((), "without DISPATCHER_URL and ORCHESTRATOR_URL this", id="both"),
        pytest.param(("--orchestrator-url", "http://192.0.2.7:3000"), "without DISPATCHER_URL this", id="one"),
    ],
)
def test_with_a_gateway_elsewhere_this_machines_fleet_is_not_acted_on(
    standin: Standin, monkeypatch: pytest.MonkeyPatch, given: tuple[str, ...], left_out: str
) -> None:
    """`fleet pause` paused the wrong fleet, and told it the other's key."""
    monkeypatch.setenv("GATEWAY_URL", "http://192.0.2.7:4000")
    monkeypatch.setenv("API_KEY", "key-of-the-other")
    result = run("fleet", "pause", *given)
    assert (result.exit_code, standin.asked) == (Exit.USAGE, [])
    assert left_out in " ".join(result.stderr.split())
    standin.says(200, KEY)
    assert keys("self").exit_code == 0


def test_a_tunnel_is_taken_at_its_word(standin: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_URL", "https://gw.example")
    monkeypatch.setenv("API_KEY", "key-of-the-other")
    standin.says(404, error("UNKNOWN_SESSION"))
    at = ("--dispatcher-url", "http://127.0.0.1:4001", "--orchestrator-url", "http://127.0.0.1:3000")
    assert run("sessions", "show", "s1", *at).exit_code == Exit.REFUSED
    assert [request.url.port for request in standin.asked] == [3000]


@pytest.mark.parametrize(("words", "asked"), [("jobs show j", 1), ("sessions show s", 0)])
def test_what_a_shell_completes_is_not_asked_of_the_wrong_fleet_either(
    standin: Standin, monkeypatch: pytest.MonkeyPatch, words: str, asked: int
) -> None:
    monkeypatch.setenv("GATEWAY_URL", "https://gw.example")
    monkeypatch.setenv("API_KEY", "key-of-the-other")
    standin.says(404, error("UNKNOWN"))
    shell = {"_PACELINE_COMPLETE": "complete_bash", "COMP_CWORD": "3", "COMP_WORDS": f"paceline {words}"}
    assert CliRunner().invoke(app, [], env=shell, prog_name="paceline").output.strip() == ""
    assert len(standin.asked) == asked


@pytest.mark.parametrize("running", ["demo", "."])
def test_of_two_data_directories_it_takes_the_key_of_the_one_that_runs(
    standin: Standin, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, running: str
) -> None:
    """With a demo up beside data of an earlier `paceline up`, the key of the latter was refused."""
    monkeypatch.delenv("PACELINE_DATA")
    monkeypatch.chdir(tmp_path)
    for folder in ("demo", "."):
        data = DataDirectory(Path("data") / folder)
        data.create()
        data.api_key.write_text(f"key of {folder}")
    standin.says(200, KEY)
    with DataDirectory(Path("data") / running).locked():
        assert keys("self").exit_code == 0
    assert standin.asked[0].headers["X-API-KEY"] == f"key of {running}"


@pytest.mark.parametrize("given", [True, False], ids=["given", "found"])
def test_a_key_that_is_refused_is_named_by_where_it_came_from(
    standin: Standin, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: bool
) -> None:
    monkeypatch.setenv("PACELINE_DATA", str(tmp_path))
    (tmp_path / "api-key").write_text("key-in-a-file")
    standin.says(401, {"error": {"code": "UNAUTHORIZED", "message": "no", "details": {}}})
    result = keys("self", *(("--key", "k3") if given else ()))
    assert result.exit_code == Exit.REFUSED
    told = "".join(result.stderr.split())
    assert ("that of --key or API_KEY".replace(" ", "") in told, f"{tmp_path}/api-key" in told) == (given, not given)


def test_revoking_says_so_to_people_only_and_an_id_cannot_leave_its_path(standin: Standin) -> None:
    standin.says(200, {**KEY, "state": "revoked", "revokedAt": 1_773_136_800_000})
    result = keys("revoke", "../jobs?x=1", "--yes")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "revoked since 2026-03-10 10:00:00Z" in result.stderr
    assert standin.asked[0].url.raw_path == b"/v1/keys/..%2Fjobs%3Fx%3D1"


def pages(request: httpx.Request) -> httpx.Response:
    first = "cursor" not in request.url.params
    item = {**KEY, "keyId": "01A" if first else "01B", "ratePerMinute": 0 if first else 90}
    return httpx.Response(200, json={"items": [item], "nextCursor": "01A" if first else None})


def test_a_list_shows_a_page_and_says_how_to_go_on(standin: Standin) -> None:
    standin.answer = pages
    result = keys("list", "--limit", "1")
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["ID", "01A"]
    assert "--cursor 01A" in result.stderr
    assert keys("list", "--cursor", "01A").stdout.splitlines()[1].startswith("01B")
    assert [request.url.params["limit"] for request in standin.asked] == ["1", "50"]


def test_all_shows_every_page_and_names_as_they_are(standin: Standin) -> None:
    standin.answer = pages
    lines = [line.split() for line in keys("list", "--all").stdout.splitlines()]
    assert [line[:5] for line in lines[1:]] == [[name, "CRM", "[red]", "send,", "read"] for name in ("01A", "01B")]
    assert [line[-1] for line in lines[1:]] == ["limit", "90"]


def test_all_pages_as_json_are_a_line_each(standin: Standin) -> None:
    standin.answer = pages
    lines = keys("list", "--json", "--all").stdout.splitlines()
    assert [json.loads(line)["items"][0]["keyId"] for line in lines] == ["01A", "01B"]


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_list_without_end_ends(standin: Standin, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]) -> None:
    monkeypatch.setattr(paging, "MAX_PAGES", 3)
    standin.says(200, {"items": [KEY], "nextCursor": "again"})
    assert (keys("list", "--all", *more).exit_code, len(standin.asked)) == (Exit.FAILED, 3)


def error(code: str, **details: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": "in words", "details": details}}


@pytest.mark.parametrize(
    ("status", "body", "exit_code", "words"),
    [
        pytest.param(401, error("UNAUTHORIZED"), 4, "401: UNAUTHORIZED: in words", id="no valid key"),
        pytest.param(403, error("FORBIDDEN"), 4, "403", id="no admin"),
        pytest.param(400, error("INVALID_REQUEST", field="name"), 4, "in words (name)", id="a bad field"),
        pytest.param(409, error("BOOTSTRAP_KEY"), 4, "BOOTSTRAP_KEY", id="the bootstrap key"),
        pytest.param(429, error("RATE_LIMITED"), 4, "RATE_LIMITED", id="too fast"),
        pytest.param(500, error("INTERNAL"), 1, "500", id="broken"),
        pytest.param(503, error("UNAVAILABLE"), 3, "503: UNAVAILABLE", id="its store is away"),
        pytest.param(502, "a page of a proxy", 3, "502", id="a proxy without a gateway"),
        pytest.param(404, "a page of somebody else", 1, "not in the words", id="something else listens there"),
        pytest.param(302, {}, 1, "302", id="a redirect is not followed"),
        pytest.param(200, [], 1, "not answer like", id="another JSON"),
        pytest.param(200, {"status": "ok"}, 1, "not answer like", id="another service"),
    ],
)
def test_exit_codes(standin: Standin, status: int, body: Any, exit_code: int, words: str) -> None:
    standin.says(status, body)
    for arguments in (("revoke", "01K", "--yes"), ("create", "--name", "x", "--scope", "send"), ("list",)):
        result = keys(*arguments)
        assert (result.exit_code, result.stdout) == (exit_code, ""), arguments
        assert words in result.stderr
        assert "key-of-the-data-directory" not in result.stderr


def fails(fault: Exception) -> Answer:
    def answer(_request: httpx.Request) -> httpx.Response:
        raise fault

    return answer


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("send", "447700900300", "Hello"), id="send"),
        pytest.param(("jobs", "create", "-", "Hello"), id="jobs create"),
        pytest.param(("dead-letters", "replay", "01K:0"), id="replay"),
        pytest.param(("dead-letters", "replay-all", "--yes"), id="replay-all"),
    ],
)
@pytest.mark.parametrize(
    ("answer", "exit_code"),
    [
        pytest.param(fails(httpx.ReadTimeout("slow")), 3, id="no answer in time"),
        pytest.param(fails(httpx.ReadError("reset")), 3, id="the connection broke"),
        pytest.param(lambda _: httpx.Response(503, json=error("UNAVAILABLE")), 3, id="its store is away"),
        pytest.param(lambda _: httpx.Response(500, json=error("INTERNAL")), 1, id="broken"),
        pytest.param(lambda _: httpx.Response(200, json={}), 1, id="an answer nobody can read"),
    ],
)
def test_what_may_have_been_accepted_says_so_and_how_to_repeat_it(
    standin: Standin, answer: Answer, exit_code: int, arguments: tuple[str, ...]
) -> None:
    """Typed again without the key it would be a second message."""
    standin.answer = answer
    result = run(*arguments, stdin="to\n447700900300\n")
    assert (result.exit_code, result.stdout) == (exit_code, "")
    assert "may have been accepted" in result.stderr
    key = standin.asked[0].headers["Idempotency-Key"]
    assert f"--idempotency-key {key}" in result.stderr
    run(*arguments, "--idempotency-key", key, stdin="to\n447700900300\n")
    first, second = standin.asked
    assert second.headers["Idempotency-Key"] == key
    assert (second.url, second.content) == (first.url, first.content)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(fails(httpx.ConnectError("refused")), id="nobody there"),
        pytest.param(lambda _: httpx.Response(400, json=error("INVALID_NUMBER")), id="refused"),
    ],
)
def test_what_was_certainly_not_accepted_does_not_say_so(standin: Standin, answer: Answer) -> None:
    standin.answer = answer
    assert "may have been accepted" not in run("send", "447700900300", "Hello").stderr


def test_nobody_there_is_3(standin: Standin) -> None:
    def away(_request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    standin.answer = away
    result = keys("list")
    # Asked once: a person at a terminal repeats it sooner than a program that waits.
    assert (result.exit_code, len(standin.asked)) == (3, 1)
    assert "no answer from http://127.0.0.1:4000" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("create", "--name", "x"), id="no scope"),
        pytest.param(("create", "--scope", "send"), id="no name"),
        pytest.param(("create", "--name", "x", "--scope", "root"), id="an unknown scope"),
        pytest.param(("create", "--name", "x", "--scope", "send", "--expires-days", "0"), id="expired at once"),
        pytest.param(("create", "--name", "x", "--scope", "send", "--rate", "-1"), id="a negative rate"),
        pytest.param(("revoke",), id="no id"),
        pytest.param(("list", "--url", "gateway:4000"), id="no scheme"),
        pytest.param(("list", "--url", "http://"), id="no host"),
        pytest.param(("list", "--key", "ключ"), id="no possible key"),
        pytest.param(("forget",), id="an unknown command"),
    ],
)
def test_wrong_usage_is_2_and_asks_nobody(standin: Standin, arguments: tuple[str, ...]) -> None:
    assert (keys(*arguments).exit_code, standin.asked) == (2, [])


def test_without_a_key_it_says_where_one_could_come_from(standin: Standin, tmp_path: Path) -> None:
    (tmp_path / "api-key").unlink()
    result = keys("list")
    assert (result.exit_code, standin.asked) == (2, [])
    assert "API_KEY" in result.stderr
    assert str(tmp_path / "api-key") in result.stderr
