"""How many single sends one gateway process takes, beside Express + ioredis and FastAPI + redis-py doing the same work.

    python bench/intake.py            three rounds, interleaved
    python bench/intake.py --quick    one round
    (cd bench/node && npm install --no-save --ignore-scripts) first; needs `wrk` on the PATH

`POST /api/v1/send` with 64 connections. Each server has the same Redis (`appendfsync always`), looks up the suppression
list and the recipient's number, and accepts with the same script. Ours does both for many requests in one call. What
ours does beyond that (choosing among the fleet by load, rate limits, request ids, strict JSON, numbers checked by their
country's plan, the forecast in the answer) the others do not. CPU µs is the server's processor time for a request and
Redis µs that of its Redis: on a busy machine they say more than requests a second.
"""

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from fleet import MIXED, POLICY, Fleet
from meter import Meter, Server, connect, durable_redis, table

HERE = Path(__file__).parent
KEY = "a-key-for-the-benchmark-alone"
PHONES = 500
SECONDS = 8
CONNECTIONS = 64
OTHERS = 5_000_000
"""Whom the measured run begins with: nobody of them was written to while the server warmed up."""
PORT = 4972
WRK = """
wrk.method = 'POST'
wrk.headers['Content-Type'] = 'application/json'
wrk.headers['X-API-KEY'] = '%s'
local n = 0
function init(args) n = tonumber(args[1]) end
request = function()
  n = n + 1
  local body = '{"to": "97252%%07d", "message": "hello there, this is a message"}'
  return wrk.format(nil, nil, nil, string.format(body, n * %d %% 10000000))
end
"""
"""The people of one run are each written to once, in no order, as in `fleet`; a run begins where it is told to."""


@contextlib.contextmanager
def serving(command: list[str], env: dict[str, str] | None = None) -> Iterator[int]:
    process = subprocess.Popen(command, env=os.environ | (env or {}), stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while not _answers():
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{command[:3]} did not start")
            time.sleep(0.1)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def _answers() -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=1)
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def commands(server: Server, script: str) -> dict[str, tuple[list[str], dict[str, str]]]:
    others = [str(PORT), server.socket, script, str(PHONES)]
    ours = {
        "REDIS_URL": server.url, "PACELINE_POLICY": POLICY, "PORT": str(PORT), "API_KEY": KEY, "LOG_LEVEL": "warning",
        "KEY_RATE_PER_MINUTE": "0", "RATE_PER_MINUTE": "0", "PACELINE_DATA": str(Path(server.socket).parent),
    }  # fmt: skip
    return {
        "Paceline": ([sys.executable, "-m", "paceline.gateway.main"], ours),
        "Express + ioredis": (["node", str(HERE / "node" / "intake.js"), *others], {"NODE_ENV": "production"}),
        "FastAPI + redis-py": ([sys.executable, str(HERE / "intake_fastapi.py"), *others], {}),
    }


def drive(pid: int, redis: int, wrk_script: str, seconds: int) -> tuple[float, ...]:
    """Requests a second, p50 and p99 in ms, µs of the server's and of Redis' processor time for each."""
    url = f"http://127.0.0.1:{PORT}/api/v1/send"
    wrk = ["wrk", "-t1", f"-c{CONNECTIONS}", "--latency", "-s", wrk_script]
    subprocess.run([*wrk, "-d1s", url, "--", "0"], capture_output=True, check=True)
    meter = Meter(server=pid, redis=redis)
    again = [*wrk, f"-d{seconds}s", url, "--", str(OTHERS)]
    out = subprocess.run(again, capture_output=True, check=True, text=True).stdout
    _, used = meter.read()
    if bad := re.search(r"Non-2xx or 3xx responses: (\d+)", out):
        raise SystemExit(f"{bad[1]} requests were refused")
    (count,) = re.findall(r"(\d+) requests in", out)
    (rate,) = re.findall(r"Requests/sec:\s+([\d.]+)", out)
    times = dict(re.findall(r"^\s+(50|99)%\s+([\d.]+(?:us|ms|s))\s*$", out, re.MULTILINE))
    server_us, redis_us = (used[name].cpu_s / int(count) * 1e6 for name in ("server", "redis"))
    return float(rate), _ms(times["50"]), _ms(times["99"]), server_us, redis_us


def _ms(text: str) -> float:
    value, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()  # type: ignore[union-attr]
    return float(value) * {"us": 0.001, "ms": 1, "s": 1000}[unit]


def one_round(seconds: int) -> dict[str, tuple[float, ...]]:
    found = {}
    with tempfile.TemporaryDirectory(prefix="paceline-bench-") as folder:
        wrk_script = Path(folder, "send.lua")
        wrk_script.write_text(WRK % (KEY, MIXED))
        for name in ("Paceline", "Express + ioredis", "FastAPI + redis-py"):
            with durable_redis() as server:
                fleet = Fleet(connect(server.socket))
                fleet.connect(PHONES)
                script = Path(folder, "accept_send.lua")
                script.write_text(fleet.scripts["accept_send"].source)
                command, env = commands(server, str(script))[name]
                with serving(command, env) as pid:
                    found[name] = drive(pid, server.pid, str(wrk_script), seconds)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    if not shutil.which("wrk") or not (HERE / "node" / "node_modules").is_dir():
        raise SystemExit("needs wrk (apt-get install wrk) and: cd bench/node && npm install --no-save --ignore-scripts")
    rounds = [one_round(4 if quick else SECONDS) for _ in range(1 if quick else 3)]
    rows = []
    for name in rounds[0]:
        rate, p50, p99, cpu, redis = (median(each[name][place] for each in rounds) for place in range(5))
        ours = [each["Paceline"] for each in rounds]
        faster = median(our[0] / each[name][0] for our, each in zip(ours, rounds, strict=True))
        cheaper = median(each[name][3] / our[3] for our, each in zip(ours, rounds, strict=True))
        figures = (f"{p50:.1f}", f"{p99:.1f}", f"{cpu:.0f}", f"{redis:.0f}", f"{faster:.2f}", f"{cheaper:.2f}")
        rows.append((name, f"{rate:,.0f}", *figures))
    head = ("requests/s", "p50 ms", "p99 ms", "CPU µs", "Redis µs", "ours is × faster", "ours is × cheaper")
    table(("server", *head), rows)


if __name__ == "__main__":
    main()
