"""What one worker takes of the memory, connected, and nothing to send; and what a message takes in Redis that was sent.

    python bench/memory.py            8 workers of each driver, 2,000 messages
    python bench/memory.py --quick    2, 200

`paceline up` starts them in a data directory of its own, as it starts all workers: simulated ones, and Node workers
(`worker-baileys`, built by `tools/ensure-node`) that are linked to the fake WhatsApp.

RSS   all pages of a process that are in memory; those it shares with others count in each
PSS   shared pages divided among those who share them: what so many workers really take (Linux only)
bytes `used_memory` after a job and its receipts minus before, for each message: all that it leaves behind. Each goes to
      another person. A job of the same size went before it, so that scripts and tables are there
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import psutil
from meter import table

from paceline.client import Contact, Paceline
from paceline.kits.processes import PidFile
from paceline.store.blocking import BlockingRedis

WORKERS, QUICK_WORKERS = 8, 2
FIRST_PORT = 4981
SETTLE_S = 20.0
"""After the last is connected: what starting took has been freed by then."""
MESSAGES, QUICK_MESSAGES = 2_000, 200
JOB_SECONDS = 300.0
DRIVERS = {"simulated": ["--driver", "simulated"], "baileys": ["--driver", "baileys", "--fake-whatsapp"]}


class CannotRun(Exception):
    """Why a driver has no numbers."""


def measured(driver: str, workers: int) -> tuple[str, ...]:
    with platform(DRIVERS[driver], workers) as data:
        time.sleep(SETTLE_S)
        files = [PidFile.read(path) for path in (data / "run").glob("worker-*.pid")]
        memory = [psutil.Process(file.process.pid).memory_full_info() for file in files if file]
    if len(memory) != workers:
        raise CannotRun(f"{len(memory)} of {workers} workers were found")
    rss = statistics.median(one.rss for one in memory)
    pss = statistics.median(getattr(one, "pss", 0) for one in memory)
    return driver, str(workers), f"{rss / 1e6:.1f}", f"{pss / 1e6:.1f}" if pss else "-"


def kept(messages: int, workers: int) -> tuple[str, ...]:
    with platform([*DRIVERS["simulated"], "--policy", "demo"], workers) as data:
        redis = BlockingRedis(str(data / "run" / "redis.sock"))
        with Paceline(f"http://127.0.0.1:{FIRST_PORT}", (data / "api-key").read_text().strip()) as gateway:
            used = [_used_after_job(gateway, redis, range(first, first + messages)) for first in (0, messages)]
    return str(messages), f"{(used[1] - used[0]) / messages:,.0f}"


def _used_after_job(gateway: Paceline, redis: BlockingRedis, people: range) -> int:
    contacts = [Contact(f"97252{number:07d}") for number in people]
    job = gateway.jobs.create(contacts, text="Hello, your table is ready.")
    for _ in gateway.jobs.watch(job.job_id, timeout_seconds=JOB_SECONDS):
        pass
    time.sleep(SETTLE_S)
    return int(redis.read(("INFO", "memory"))[0]["used_memory"])


@contextmanager
def platform(options: list[str], sessions: int) -> Iterator[Path]:
    """Until all its sessions are connected; gives its data directory."""
    with tempfile.TemporaryDirectory(prefix="paceline-bench-") as folder, tempfile.TemporaryFile("w+") as errors:
        command = [str(Path(sys.executable).with_name("paceline")), "up", *options, "--sessions", str(sessions)]
        process = subprocess.Popen(command, env=_environment(folder), stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            _wait_until_ready(process, errors)
            yield Path(folder)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def _environment(folder: str) -> dict[str, str]:
    # Another Redis than its own would be somebody's, and so would the key.
    inherited = {name: value for name, value in os.environ.items() if name not in ("REDIS_URL", "API_KEY")}
    names = ("GATEWAY_PORT", "ORCHESTRATOR_PORT", "DISPATCHER_PORT", "FAKE_WHATSAPP_PORT")
    ports = {name: str(FIRST_PORT + number) for number, name in enumerate(names)}
    return inherited | ports | {"DASHBOARD_PORT": "0", "PACELINE_DATA": folder}


def _wait_until_ready(process: "subprocess.Popen[str]", errors: IO[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("ready "):
            return
    errors.seek(0)
    raise CannotRun((errors.read().split("\n\n")[0].strip() or "it ended and said nothing").replace("\n", " "))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    is_quick = parser.parse_args().quick
    workers = QUICK_WORKERS if is_quick else WORKERS
    rows = []
    for driver in DRIVERS:
        try:
            rows.append(measured(driver, workers))
        except CannotRun as reason:
            rows.append((driver, f"not run: {reason}", "", ""))
    table(("driver", "workers", "RSS MB", "PSS MB"), rows)
    table(("messages sent", "bytes in Redis each"), [kept(QUICK_MESSAGES if is_quick else MESSAGES, workers)])


if __name__ == "__main__":
    main()
