"""What one worker takes of the memory: connected, and nothing to send.

    python bench/memory.py            8 workers of each driver
    python bench/memory.py --quick    2

`paceline up` starts them in a data directory of its own, as it starts all workers: simulated ones, and Node workers
(`worker-baileys`, built by `tools/ensure-node`) that are linked to the fake WhatsApp.

RSS   all pages of a process that are in memory; those it shares with others count in each
PSS   shared pages divided among those who share them: what so many workers really take (Linux only)
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

from paceline.kits.processes import PidFile

WORKERS, QUICK_WORKERS = 8, 2
FIRST_PORT = 4981
SETTLE_S = 20.0
"""After the last is connected: what starting took has been freed by then."""
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
    # Another Redis than its own would be somebody's.
    inherited = {name: value for name, value in os.environ.items() if name != "REDIS_URL"}
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
    workers = QUICK_WORKERS if parser.parse_args().quick else WORKERS
    rows = []
    for driver in DRIVERS:
        try:
            rows.append(measured(driver, workers))
        except CannotRun as reason:
            rows.append((driver, f"not run: {reason}", "", ""))
    table(("driver", "workers", "RSS MB", "PSS MB"), rows)


if __name__ == "__main__":
    main()
