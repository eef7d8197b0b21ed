"""`sessions`, `fleet`, `proxies` and `profiles`, on a running platform."""

from typer.testing import CliRunner

from acceptance.platform import free_ports
from paceline.cli import app
from paceline.cli.exits import Exit

from .conftest import Cli, Standin, run


def test_sessions_are_listed_and_looked_at(cli: Cli) -> None:
    listed = cli.out("sessions", "list", "--status", "working")
    assert [line.split()[:3] for line in listed.splitlines()[1:]] == [
        ["sim-1", "447700900001", "WORKING"],
        ["sim-2", "447700900002", "WORKING"],
    ]
    assert "No sessions" in cli.said("sessions", "list", "--tag", "nobody")
    assert "CONNECTED" in cli.out("sessions", "show", "sim-1")
    assert "Nothing waits for this number." in cli.out("sessions", "explain", "sim-1")
    assert "create" in cli.out("sessions", "history", "sim-1")
    assert "CONNECTED" in cli.out("sessions", "events", "sim-1")
    assert "UNKNOWN_SESSION" in cli.said("sessions", "show", "nobody", exit_code=Exit.REFUSED)
    assert "INVALID_REQUEST" in cli.said("sessions", "list", "--status", "asleep", exit_code=Exit.REFUSED)


def test_the_log_of_a_worker(cli: Cli) -> None:
    path = cli.platform.data / "log" / "worker-sim-2.log"
    with path.open("a") as log:
        log.write("one\ntwo \x1b[2Jthree\n")
    assert cli.out("sessions", "logs", "sim-2", "--lines", "1") == "two \ufffd[2Jthree\n", "a terminal would be cleared"


def test_a_session_is_paused_stopped_and_started(cli: Cli) -> None:
    assert "PAUSED" in cli.said("sessions", "pause", "sim-2")
    assert "it was so already" in cli.said("sessions", "pause", "sim-2")
    assert "WORKING" in cli.said("sessions", "resume", "sim-2")
    assert "wanted stopped" in cli.said("sessions", "stop", "sim-2")
    assert "wanted running" in cli.said("sessions", "start", "sim-2")
    assert "wanted running" in cli.said("sessions", "restart", "sim-2")
    cli.wait_for("it to work", "sessions", "show", "sim-2", until=lambda one: one["status"] == "WORKING")


def test_a_number_is_steered(cli: Cli) -> None:
    assert "override 5 a minute" in cli.said("sessions", "rpm", "sim-1", "5")
    assert "5 a minute (manual)" in cli.out("sessions", "explain", "sim-1")
    assert "INVALID_RPM" in cli.said("sessions", "rpm", "sim-1", "7", exit_code=Exit.REFUSED)
    assert "not 'fast'" in cli.said("sessions", "rpm", "sim-1", "fast", exit_code=Exit.USAGE)
    assert "no override" in cli.said("sessions", "rpm", "sim-1", "none")
    assert "there was no cool-down" in cli.said("sessions", "clear-cooldown", "sim-1")
    assert "0 messages" in cli.said("sessions", "requeue", "sim-1")


def test_what_is_known_of_a_session_is_changed(cli: Cli) -> None:
    assert "sim-1 is changed" in cli.said("sessions", "change", "sim-1", "--timezone", "Europe/Athens", "--tag", "gr")
    known = cli.json("sessions", "show", "sim-1")
    assert (known["timezone"], known["tags"]) == ("Europe/Athens", ["gr"])
    assert "INVALID_TIMEZONE" in cli.said("sessions", "change", "sim-1", "--timezone", "Mars", exit_code=Exit.REFUSED)


def test_an_alert_without_a_channel_is_refused(cli: Cli) -> None:
    assert "NO_ALERT_CHANNEL" in cli.said("fleet", "test-alert", exit_code=Exit.REFUSED)


def test_an_alert_that_did_not_arrive_is_exit_code_1(standin: Standin) -> None:
    channels = [{"channel": "telegram", "ok": True}, {"channel": "slack#1", "ok": False, "reason": "it answered 404"}]
    standin.says(200, {"ok": False, "channels": channels})
    for arguments in ((), ("--json",)):
        result = run("fleet", "test-alert", *arguments)
        assert (result.exit_code, "it answered 404" in result.stdout) == (Exit.FAILED, True)
    standin.says(200, {"ok": True, "channels": channels[:1]})
    assert run("fleet", "test-alert").exit_code == 0


def test_a_paused_fleet_says_why_a_message_waits(cli: Cli) -> None:
    assert "paused since" in cli.said("fleet", "pause")
    try:
        message = cli.out("send", "447700900320", "Hello", "--session", "sim-1").strip()
        assert "paused by OPERATOR" in cli.out("fleet", "show")
        cli.wait_for("it to be queued", "sessions", "queue", "sim-1", until=lambda page: message in str(page))
        assert message in cli.out("sessions", "queue", "sim-1")
        assert "paused" in cli.out("messages", "show", message)
        assert "--yes" in cli.said("sessions", "cancel-queue", "sim-1", exit_code=Exit.USAGE)
        assert "1 canceled" in cli.said("sessions", "cancel-queue", "sim-1", "--yes")
    finally:
        assert "sending" in cli.said("fleet", "resume")
    assert "FLEET_PAUSED" in cli.out("fleet", "incidents", "--kind", "FLEET_PAUSED")


def test_the_dispatchers_rest_and_smartguard_is_switched(cli: Cli) -> None:
    assert "--yes" in cli.said("fleet", "stop", exit_code=Exit.USAGE)
    assert "rest" in cli.said("fleet", "stop", "--yes")
    assert "stopped" in cli.out("fleet", "show")
    assert "work" in cli.said("fleet", "start")
    assert "off" in cli.out("fleet", "smartguard", "off")
    assert "on" in cli.out("fleet", "smartguard", "on")


def test_a_code_is_drawn_in_a_pipe_once_and_the_session_is_linked(cli: Cli, unlinked: str) -> None:
    drawn = cli.out("sessions", "qr", unlinked)
    assert set(drawn) <= set("█▀▄ \n")
    assert cli.json("sessions", "qr", unlinked)["qr"]
    assert len(cli.out("sessions", "pair", unlinked).strip()) >= 8
    assert "told to scan" in cli.said("sessions", "scan", unlinked)
    cli.wait_for("it to work", "sessions", "show", unlinked, until=lambda one: one["status"] == "WORKING")
    assert "ALREADY_LINKED" in cli.said("sessions", "qr", unlinked, exit_code=Exit.REFUSED)
    assert "--yes" in cli.said("sessions", "logout", unlinked, exit_code=Exit.USAGE)
    assert "told to logout" in cli.said("sessions", "logout", unlinked, "--yes")


def test_proxies_and_profiles_come_from_files_with_bad_lines_named(cli: Cli) -> None:
    result = cli.run("proxies", "upload", "-", stdin="http://u:canary@proxy.example:1\nsocks5://proxy.example:2\n")
    assert (result.exit_code, result.stderr.splitlines()[0]) == (
        Exit.FAILED,
        "1 added, 0 were there already, 1 refused",
    )
    assert "line 2: " in result.stderr
    assert cli.run("proxies", "upload", "-", "--json", stdin="socks5://proxy.example:2\n").exit_code == Exit.FAILED
    listed = cli.out("proxies", "list")
    assert "canary" not in listed
    proxy = listed.splitlines()[1].split()[0]
    assert f"{proxy} is BAD" in cli.said("proxies", "bad", proxy, "--reason", "slow")
    assert "slow" in cli.out("proxies", "list")
    assert f"{proxy} is OK" in cli.said("proxies", "ok", proxy)
    assert "is gone" in cli.said("proxies", "remove", proxy)
    assert "UNKNOWN_PROXY" in cli.said("proxies", "remove", proxy, exit_code=Exit.REFUSED)
    assert cli.run("profiles", "upload", "-", stdin='{"displayName": "Ada"}\n').exit_code == 0
    profile = cli.out("profiles", "list").splitlines()[1].split()[0]
    assert "is gone" in cli.said("profiles", "remove", profile)


def test_a_shell_completes_ids_and_is_silent_where_nobody_answers(cli: Cli) -> None:
    shell = {**cli.environment, "_PACELINE_COMPLETE": "complete_bash", "COMP_CWORD": "3"}
    job = cli.send("447700900321").partition(":")[0]
    for words, expected in (("sessions show sim", ["sim-1", "sim-2"]), (f"jobs show {job}", [job])):
        result = CliRunner().invoke(app, [], env={**shell, "COMP_WORDS": f"paceline {words}"}, prog_name="paceline")
        assert result.output.split() == expected
    away = {**shell, "ORCHESTRATOR_URL": f"http://127.0.0.1:{free_ports(1)}", "COMP_WORDS": "paceline sessions show s"}
    assert CliRunner().invoke(app, [], env=away, prog_name="paceline").output.strip() == ""
