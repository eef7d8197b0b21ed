"""The worker as a process: against a small HTTP orchestrator, with real files, signals and kill -9."""

import contextlib
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from paceline.domain.errors import ConfigError
from paceline.domain.ids import whatsapp_id
from paceline.kits.processes import PidFile, Process
from paceline.worker.environment import read_environment

TASK = "01JB0000000000000000000000:0"
# Only a limit for a hung test; nothing is asserted about time.
PATIENCE_SECONDS = 30


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Orchestrator(ThreadingHTTPServer):
    """Answers the worker protocol for one task and notes every call."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.offers: queue.Queue[str] = queue.Queue()
        self.claimed: str | None = None
        self.epoch = 0
        self.refusal: str | None = None

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        name = path.split("?", maxsplit=1)[0].rsplit("/", 1)[1]
        self.calls.append((body["event"] if name == "webhook" else name, body))
        if self.refusal is not None and name == "hello":
            return 409, {"error": {"code": self.refusal, "message": "", "details": {}}}
        return 200, {"status": "ok"} | getattr(self, f"on_{name}", lambda body: {})(body)

    def on_hello(self, body: dict[str, Any]) -> dict[str, Any]:
        self.epoch += 1
        pending = (
            [] if self.claimed is None else [{"taskId": TASK, "token": "k", "whatsappId": "", "to": "447700900001"}]
        )
        return {
            "epoch": self.epoch,
            "nowMs": now_ms(),
            "leaseMs": 120_000,
            "typing": {"minMs": 0, "maxMs": 10},
            "unknownGraceMs": 3_000,
            "pending": pending,
        }

    def on_claim(self, body: dict[str, Any]) -> dict[str, Any]:
        try:
            task_id = self.offers.get(timeout=1)
        except queue.Empty:
            return {"task": None, "raw": None, "nowMs": now_ms()}
        self.claimed = task_id
        task = {
            "taskId": task_id,
            "to": "447700900001",
            "mode": "message",
            "text": "hello",
            "whatsappId": whatsapp_id(task_id),
            "attempt": 1,
            "resend": False,
            "sendAfterMs": now_ms(),
            "sendBeforeMs": now_ms() + 60_000,
            "leaseUntilMs": now_ms() + 120_000,
        }
        return {"task": task, "raw": "r", "nowMs": now_ms()}

    def on_ack(self, body: dict[str, Any]) -> dict[str, Any]:
        self.claimed = None
        return {}

    def on_nack(self, body: dict[str, Any]) -> dict[str, Any]:
        self.claimed = None
        return {"state": "queued"}

    def heard(self, name: str) -> list[dict[str, Any]]:
        return [body for call, body in list(self.calls) if call == name]


class Handler(BaseHTTPRequestHandler):
    server: Orchestrator
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, answer = self.server.answer(self.path, body)
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        # Who asked may have been killed meanwhile.
        with contextlib.suppress(OSError):
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        return


@pytest.fixture
def orchestrator() -> Iterator[Orchestrator]:
    server = Orchestrator()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start(orchestrator: Orchestrator, tmp_path: Path) -> Iterator[Start]:
    (tmp_path / "failpoints").mkdir()
    started: list[subprocess.Popen[bytes]] = []
    env = os.environ | {
        "PYTHONPATH": "src",
        "SESSION_ID": "s1",
        "PHONE": "447700900000",
        "WEBHOOK_URL": f"http://127.0.0.1:{orchestrator.server_port}",
        "WEBHOOK_SECRET": "a-secret-of-this-session",
        "PACELINE_DATA": str(tmp_path),
        "PACELINE_FAILPOINTS": str(tmp_path / "failpoints"),
        "DRIVER": "simulated",
    }

    def begin(**more: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "paceline.worker.main"]
        with (tmp_path / "worker.log").open("ab") as errors:
            process = subprocess.Popen(command, env=env | more, stderr=errors)
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.wait()


def wait_for(condition: Callable[[], object]) -> None:
    give_up = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < give_up, "it never happened"
        time.sleep(0.02)


def ledger(data: Path) -> list[dict[str, Any]]:
    path = data / "ledger" / "s1.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_a_worker_sends_a_task_and_stops_cleanly(orchestrator: Orchestrator, start: Start, tmp_path: Path) -> None:
    """Connected, sent, acked, delivered; SIGTERM ends it with 0 and a word of farewell; no secret or text is logged."""
    process = start()
    orchestrator.offers.put(TASK)
    wait_for(lambda: orchestrator.heard("ack") and orchestrator.heard("MESSAGE_DELIVERED"))
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_SECONDS) == 0
    assert [line["taskId"] for line in ledger(tmp_path)] == [TASK]
    assert orchestrator.heard("ack")[0]["whatsappId"] == whatsapp_id(TASK)
    assert orchestrator.heard("DISCONNECTED")[0]["data"]["reason"] == "stopped"
    log = (tmp_path / "worker.log").read_text()
    assert "a-secret-of-this-session" not in log
    assert "447700900001" not in log


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("claimed-not-sent", ("nack", True, 0)),
        ("intent-written", ("nack", False, 0)),
        ("sent-not-reported", ("ack", None, 1)),
        ("reported-not-acked", ("ack", None, 1)),
    ],
)
def test_kill_9_at_a_failpoint_is_answered_for_at_the_next_start(
    name: str,
    expected: tuple[str, bool | None, int],
    orchestrator: Orchestrator,
    start: Start,
    tmp_path: Path,
) -> None:
    """The process dies where it was told to; the next one answers for the task from journal and receipts."""
    (tmp_path / "failpoints" / name).touch()
    process = start()
    orchestrator.offers.put(TASK)
    assert process.wait(PATIENCE_SECONDS) == -signal.SIGKILL
    start()
    call, not_sent, lines = expected
    wait_for(lambda: orchestrator.heard(call))
    assert orchestrator.heard(call)[0].get("notSent") is not_sent
    assert len(ledger(tmp_path)) == lines


def test_a_worker_that_is_not_wanted_ends_with_3_and_says_nothing(orchestrator: Orchestrator, start: Start) -> None:
    """No connection, no webhook in the wanted worker's name."""
    orchestrator.refusal = "NOT_WANTED"
    assert start().wait(PATIENCE_SECONDS) == 3
    assert {name for name, _ in orchestrator.calls} == {"hello"}


def test_it_is_the_instance_that_its_runner_says_and_tells_so_on_its_volume(
    orchestrator: Orchestrator, start: Start, tmp_path: Path
) -> None:
    process = start(INSTANCE_ID="i-7", GENERATION="3")
    wait_for(lambda: orchestrator.heard("hello"))
    assert orchestrator.heard("hello")[0]["instanceId"] == "i-7"
    held = PidFile.read(tmp_path / "sessions" / "s1" / "worker.lock")
    assert held is not None
    assert (held.process, held.about) == (Process.of(process.pid), {"instance": "i-7", "generation": "3"})


def test_a_second_worker_on_a_volume_ends_at_once_and_the_first_goes_on(
    orchestrator: Orchestrator, start: Start, tmp_path: Path
) -> None:
    """Even if it is the one that is wanted: two hands in one journal would be worse than none."""
    first = start()
    wait_for(lambda: orchestrator.heard("CONNECTED"))
    assert start(INSTANCE_ID="other").wait(PATIENCE_SECONDS) == 4
    assert [body["instanceId"] for body in orchestrator.heard("hello") if body["instanceId"] == "other"] == []
    assert PidFile.read(tmp_path / "sessions" / "s1" / "worker.lock") == PidFile(
        Process.of(first.pid), {"instance": orchestrator.heard("hello")[0]["instanceId"], "generation": "0"}
    )
    first.kill()
    first.wait()
    start(INSTANCE_ID="other")
    wait_for(lambda: [body for body in orchestrator.heard("hello") if body["instanceId"] == "other"])


def test_a_volume_of_another_number_is_left_alone(orchestrator: Orchestrator, start: Start, tmp_path: Path) -> None:
    """A session was removed and its id given to another number: that one was linked at once, as the first."""
    first = start()
    wait_for(lambda: orchestrator.heard("CONNECTED"))
    first.terminate()
    assert first.wait(PATIENCE_SECONDS) == 0
    assert start(INSTANCE_ID="other", PHONE="447700900001").wait(PATIENCE_SECONDS) == 1
    assert [body for body in orchestrator.heard("hello") if body["instanceId"] == "other"] == []
    start(INSTANCE_ID="same")
    wait_for(lambda: [body for body in orchestrator.heard("hello") if body["instanceId"] == "same"])


def test_a_worker_that_nobody_answers_ends_by_itself_if_it_was_told_to(
    orchestrator: Orchestrator, start: Start
) -> None:
    """What becomes of one that was answered before shows in tests/acceptance, where `up` is killed."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        patient = start(WEBHOOK_URL=url)
        other = start(WEBHOOK_URL=url, SESSION_ID="s2", ORPHAN_MS="500")
        assert other.wait(PATIENCE_SECONDS) == 5
        assert patient.poll() is None


def test_behaviour_is_changed_under_a_running_worker(orchestrator: Orchestrator, start: Start, tmp_path: Path) -> None:
    """Offline and back by editing simulated.toml."""
    start()
    wait_for(lambda: orchestrator.heard("CONNECTED"))
    (tmp_path / "simulated.toml").write_text("[sessions.s1]\noffline = true\n")
    wait_for(lambda: orchestrator.heard("DISCONNECTED"))
    (tmp_path / "simulated.toml").unlink()
    wait_for(lambda: len(orchestrator.heard("CONNECTED")) == 2)


def test_the_worker_does_not_load_what_it_does_not_need() -> None:
    """One process per session: no web framework, no Redis client, no settings machinery in it."""
    code = "import sys, paceline.worker.main; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": "src"}, capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"litestar", "uvicorn", "redis", "pydantic"} & set(loaded)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"SESSION_ID": ""}, "SESSION_ID"),
        ({"SESSION_ID": "../up"}, "SESSION_ID"),
        ({"WEBHOOK_URL": "ftp://x"}, "WEBHOOK_URL"),
        ({"WEBHOOK_SECRET": ""}, "WEBHOOK_SECRET"),
        ({"DRIVER": "pigeon"}, "DRIVER"),
        ({"ENABLE_KEEP_ALIVE": "perhaps"}, "ENABLE_KEEP_ALIVE"),
        ({"INSTANCE_ID": "a b"}, "INSTANCE_ID"),
        ({"GENERATION": "first"}, "GENERATION"),
        ({"ORPHAN_MS": "-1"}, "ORPHAN_MS"),
    ],
)
def test_a_bad_environment_is_named(change: dict[str, str], named: str) -> None:
    """Each fault names its variable."""
    good = {"SESSION_ID": "s1", "WEBHOOK_URL": "http://x", "WEBHOOK_SECRET": "y"}
    read_environment(good)
    with pytest.raises(ConfigError) as caught:
        read_environment(good | change)
    assert [fault.split(":")[0] for fault in caught.value.faults] == [named]
