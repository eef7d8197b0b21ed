"""One platform under test: `paceline up` in a directory of its own, on ports of its own, and the means to hurt it.

Neighbours: `api.py` is what a client does with it, `checkers.py` judges what it did.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import redis

PACELINE = Path(sys.executable).with_name("paceline")

API_KEY = "canary-api-key-5f1c0a77e9d24b36"
WEBHOOK_SECRET = "canary-webhook-secret-b7c2916f04ad4e8d"
TEXT_CANARY = "canary-text-2c9e41"
CANARIES = (API_KEY, WEBHOOK_SECRET, TEXT_CANARY)

# Only reached when something is broken: nothing here is a promise about time.
PATIENCE_SECONDS = 150.0
LOOK_SECONDS = 0.05

_FOREIGN = ("REDIS_URL", "HOST", "PORT", "PACELINE_POLICY", "PACELINE_FAILPOINTS", "DASHBOARD_PORT", "SEND_MODE")
# Small, so that what a crash leaves behind is noticed within seconds.
_QUICK = {
    "LEASE_MS": "3000",
    "HANDOFF_TTL_MS": "4000",
    "RETRY_DELAY_MS": "1000",
    "UNKNOWN_GRACE_MS": "1000",
    "POLL_INTERVAL_MS": "200",
    "PROVISIONING_INTERVAL_MS": "300",
    # Tests kill one worker often.
    "WORKER_HEALTHY_MS": "0",
    "WORKER_ORPHAN_MS": "15000",
}
# A healthy WhatsApp that answers at once, with receipts that prove a message soon.
HEALTHY: dict[str, Any] = {"ack_delay_ms": [5, 30], "delivered_delay_ms": [50, 400], "read_ratio": 0.2}

T = TypeVar("T")


@dataclass(frozen=True)
class Pace:
    """What the policy file says of a number, and what the checkers therefore hold it to."""

    rpm: int = 300
    delay_ms: tuple[int, int] = (150, 250)
    jitter: float = 0.2

    @property
    def shortest_ms(self) -> int:
        return int(self.delay_ms[0] * (1 - self.jitter))


NORMAL = Pace()
OLD = Pace(rpm=10)
"""Numbers registered as older than OLD_DAYS: they meet the rolling minute within seconds."""
OLD_DAYS = 10


def policy_toml(normal: Pace = NORMAL, old: Pace = OLD) -> str:
    def level(name: str, pace: Pace, more: str = "") -> str:
        return f'\n[[level]]\nname = "{name}"\nrpm = {pace.rpm}\ndelay_ms = {list(pace.delay_ms)}\n{more}'

    head = f'name = "acceptance"\ntyping_ms = [0, 50]\njitter = {normal.jitter}\nburst_limit = 0\n'
    return head + level("normal", normal, f"max_age_days = {OLD_DAYS}\n") + level("old", old)


def wait_for(what: str, look: Callable[[], T | None], patience_seconds: float = PATIENCE_SECONDS) -> T:
    """Look until there is something to see; what it is."""
    deadline = time.monotonic() + patience_seconds
    while True:
        seen = look()
        if seen:
            return seen
        assert time.monotonic() < deadline, f"waited {patience_seconds:.0f} s for {what}"
        time.sleep(LOOK_SECONDS)


@dataclass
class Platform:
    """Started with `start`; `stop` proves that it went cleanly."""

    sessions: int = 3
    driver: str = "simulated"
    """`baileys`: Node workers on the fake WhatsApp."""
    dispatchers: int = 1
    policy: str = field(default_factory=policy_toml)
    """A preset's name, or the text of a policy file."""
    env: Mapping[str, str] = field(default_factory=dict)
    pace: Pace = NORMAL
    paces: dict[str, Pace] = field(default_factory=dict)
    """Of single sessions, where they differ."""

    def __post_init__(self) -> None:
        # Not below pytest's own directory: a socket's path may be no longer than about a hundred characters.
        self.folder = Path(tempfile.mkdtemp(prefix="paceline-acc-"))
        self.data = self.folder / "data"
        self.failpoints = self.folder / "failpoints"
        self.failpoints.mkdir()
        self.data.mkdir(mode=0o700)
        base = free_ports(6 + self.dispatchers)
        self.tasks: dict[str, str] = {}
        """By message id, of what was asked for here: WhatsApp's own protocol does not carry them."""
        self.ready = ""
        self.gateway = f"http://127.0.0.1:{base}"
        self.orchestrator = f"http://127.0.0.1:{base + 1}"
        self.dispatcher = f"http://127.0.0.1:{base + 5}"
        self._environment = {
            **{name: value for name, value in os.environ.items() if name not in _FOREIGN},
            **_QUICK,
            "PACELINE_DATA": str(self.data),
            "PACELINE_FAILPOINTS": str(self.failpoints),
            "API_KEY": API_KEY,
            "WEBHOOK_SECRET": WEBHOOK_SECRET,
            "GATEWAY_PORT": str(base),
            "ORCHESTRATOR_PORT": str(base + 1),
            "FAKE_WHATSAPP_PORT": str(base + 2),
            "DISPATCHER_PORT": str(base + 5),
            "DASHBOARD_PORT": "0",
            **self.env,
        }
        self.simulate()
        self.up: subprocess.Popen[str] | None = None
        self.redis = redis.Redis(unix_socket_path=str(self.data / "run" / "redis.sock"), decode_responses=True)

    # Life

    def command(self) -> list[str]:
        name = self.policy
        if "\n" in name:
            path = self.folder / "policy.toml"
            path.write_text(name)
            name = str(path)
        options = {"--sessions": self.sessions, "--dispatchers": self.dispatchers, "--policy": name}
        more = ["--driver", "baileys", "--fake-whatsapp"] if self.driver == "baileys" else []
        return [str(PACELINE), "up", *more, *(str(part) for option in options.items() for part in option)]

    def start(self) -> str:
        """Until it says `ready`; that line."""
        with (self.folder / "up.stderr").open("a") as errors:
            self.up = subprocess.Popen(
                self.command(), env=self._environment, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        assert self.up.stdout is not None
        line = self.up.stdout.readline()
        assert line.startswith("ready "), (line, (self.folder / "up.stderr").read_text())
        self.ready = line
        return line

    def run_another(self) -> subprocess.CompletedProcess[str]:
        """A second `up` on the same data, to its end."""
        return subprocess.run(
            self.command(), env=self._environment, capture_output=True, text=True, timeout=60, check=False
        )

    def stop(self) -> None:
        """SIGTERM, as systemd or a person would; then nothing may be left behind."""
        assert self.up is not None
        self.up.send_signal(signal.SIGTERM)
        assert self.up.wait(60) == 0
        assert self.pids() == {}
        assert self.processes() == []

    def kill_up(self) -> None:
        """kill -9 of `up` itself: its services go with it, the workers when nobody answers them any more."""
        assert self.up is not None
        self.up.kill()
        self.up.wait()
        wait_for("the children of a killed `up` to end", lambda: not self.processes())

    def halt(self) -> None:
        """Whatever still runs is ended, by its id."""
        if self.up is not None and self.up.poll() is None:
            self.up.kill()
            self.up.wait()
        if self.up is not None and self.up.stdout is not None:
            self.up.stdout.close()
        self.redis.close()
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_for("the killed to be gone", lambda: not self.processes())

    def destroy(self, *, keep: bool) -> None:
        self.halt()
        if keep:
            print(f"kept for a look: {self.folder}")
        else:
            shutil.rmtree(self.folder)

    def processes(self) -> list[int]:
        """Every living process that carries our directory in its environment or command line."""
        mark = os.fsencode(self.folder)
        return [int(path.name) for path in Path("/proc").glob("[0-9]*") if _mentions(path, mark)]

    # Hurting it

    def pids(self) -> dict[str, int]:
        found = {path.stem: _number_in(path) for path in (self.data / "run").glob("*.pid")}
        return {name: pid for name, pid in found.items() if pid is not None}

    def pid(self, service: str) -> int:
        return wait_for(f"{service} to run", lambda: self.pids().get(service))

    def kill(self, service: str) -> int:
        """kill -9; returns when `up` has started it again, with the new pid."""
        old = self.pid(service)
        os.kill(old, signal.SIGKILL)

        def new_pid() -> int | None:
            pid = self.pids().get(service)
            return None if pid == old else pid

        return wait_for(f"{service} to be restarted", new_pid)

    @contextlib.contextmanager
    def frozen(self, service: str) -> Iterator[None]:
        pid = self.pid(service)
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def arm(self, failpoint: str) -> Callable[[], bool]:
        """Have the next process that passes it die; the answer tells whether one has."""
        path = self.failpoints / failpoint
        path.touch()
        return lambda: not path.exists()

    def simulate(self, common: Mapping[str, Any] | None = None, **sessions: Mapping[str, Any]) -> None:
        """How the simulated WhatsApp behaves from now on, on top of a healthy one; `sim_1={…}` for one session."""
        tables = {"": {**HEALTHY, **(common or {})}, **{name.replace("_", "-"): sessions[name] for name in sessions}}
        parts = [_toml(f"[sessions.{name}]" if name else "", table) for name, table in tables.items()]
        draft = self.data / "simulated.new"
        draft.write_text("\n".join(parts))
        draft.replace(self.data / "simulated.toml")

    def let_pass(self, ms: int) -> None:
        """Some of the platform's own time, for what must not happen meanwhile."""
        until = self.now_ms() + ms
        wait_for(f"{ms} ms to pass", lambda: self.now_ms() >= until)

    # Looking at it

    def now_ms(self) -> int:
        """The wall clock of this machine, which is that of Redis and of the ledger too."""
        return time.time_ns() // 1_000_000

    def ledger(self) -> list[dict[str, Any]]:
        """Everything WhatsApp accepted, in the order of time."""
        lines: list[dict[str, Any]] = []
        for path in [*(self.data / "ledger").glob("*.jsonl"), *(self.data / "fake-whatsapp").glob("ledger.jsonl")]:
            # A line that is being written has no end yet.
            lines += [json.loads(raw) for raw in path.read_text().split("\n")[:-1]]
        for line in lines:
            line["taskId"] = line["taskId"] or self.tasks.get(line["whatsappId"], "")
        return sorted(lines, key=lambda line: line["at"])

    def pace_of(self, session: str) -> Pace:
        return self.paces.get(session, self.pace)

    def logs(self) -> dict[str, str]:
        return {path.name: path.read_text(errors="replace") for path in (self.data / "log").iterdir()}


def free_ports(count: int) -> int:
    """The first of so many in a row. Below the range from which the kernel takes ports for outgoing connections."""
    while True:
        first = random.randrange(20_000, 32_000 - count)
        try:
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue


def _mentions(process: Path, mark: bytes) -> bool:
    try:
        if (process / "stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return False
        return any(mark in (process / name).read_bytes() for name in ("environ", "cmdline"))
    except OSError:
        return False


def _number_in(path: Path) -> int | None:
    try:
        # A worker's file has a second line about it.
        return int(path.read_text().partition("\n")[0])
    except (FileNotFoundError, ValueError):
        return None


def _toml(head: str, table: Mapping[str, Any]) -> str:
    # JSON's numbers, strings, lists and booleans are TOML's too.
    return "\n".join([head, *(f"{key} = {json.dumps(value)}" for key, value in table.items())])
