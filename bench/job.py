"""A large job: how long until it is accepted, what it takes in Redis, and how quickly it is told how it does.

    python bench/job.py            100,000 contacts
    python bench/job.py --quick    10,000

A real gateway process and a real dispatcher that routes meanwhile, on a Redis that forces every write to the disk.
accept      POST /v1/jobs, from the first byte to the 202: validated, deduplicated, suppressions applied, durable
bytes       `used_memory` after it minus before, for each contact, while all of them wait at the job's cursor
progress    GET /v1/jobs/:id, and plan POST /v1/jobs/plan of a job of one, while the dispatcher routes it
whole plan  POST /v1/jobs/plan of as many contacts, before it
CPU is the gateway's processor time, which says more than the clock on a busy machine.
"""

import argparse
import http.client
import json
import sys
import time

from dispatch import dispatcher
from fleet import POLICY, Fleet
from intake import KEY, PORT, serving
from meter import Meter, connect, durable_redis, percentile, table

CONTACTS, QUICK_CONTACTS = 100_000, 10_000
PHONES = 100
LOOKS = 30
HEADERS = {"X-API-KEY": KEY, "Content-Type": "application/json"}


def ask(method: str, path: str, body: bytes | None = None) -> tuple[float, dict[str, object]]:
    """Milliseconds, and the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=120)
    began = time.perf_counter()
    connection.request(method, path, body, HEADERS)
    answer = connection.getresponse()
    raw = answer.read()
    took_ms = (time.perf_counter() - began) * 1_000
    connection.close()
    if answer.status >= 300:
        raise SystemExit(f"{method} {path}: {answer.status} {raw[:200]!r}")
    return took_ms, json.loads(raw)


def used_memory(fleet: Fleet) -> int:
    info = fleet.redis.read(("INFO", "memory"))[0]
    return int(info["used_memory"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    count = QUICK_CONTACTS if parser.parse_args().quick else CONTACTS
    numbers = [f"97252{n:07d}" for n in range(count)]
    body = json.dumps({"contacts": numbers, "text": "hello"}).encode()
    small = json.dumps({"contacts": numbers[:1], "text": "hello"}).encode()
    with durable_redis() as server:
        fleet = Fleet(connect(server.socket))
        fleet.connect(PHONES)
        env = {
            "REDIS_URL": server.url, "PACELINE_POLICY": POLICY, "PORT": str(PORT), "API_KEY": KEY,
            "LOG_LEVEL": "warning", "KEY_RATE_PER_MINUTE": "0", "RATE_PER_MINUTE": "0",
            "PACELINE_DATA": server.socket.rpartition("/")[0],
        }  # fmt: skip
        with serving([sys.executable, "-m", "paceline.gateway.main"], env) as pid:
            ask("POST", "/v1/jobs", small)
            whole = [ask("POST", "/v1/jobs/plan", body)[0] for _ in range(LOOKS)]
            before = used_memory(fleet)
            meter = Meter(gateway=pid)
            took_ms, accepted = ask("POST", "/v1/jobs", body)
            _, used = meter.read()
            each = (used_memory(fleet) - before) / count
            with dispatcher(server, PORT + 1):
                progress = [ask("GET", f"/v1/jobs/{accepted['jobId']}")[0] for _ in range(LOOKS)]
                plan = [ask("POST", "/v1/jobs/plan", small)[0] for _ in range(LOOKS)]
    head = ("contacts", "accept ms", "accept CPU ms", "bytes each", "progress p50 ms", "progress p99 ms", "plan p50 ms",
            "plan p99 ms", "whole plan p50 ms", "whole plan p99 ms")  # fmt: skip
    table(head, [(
        f"{count:,}", f"{took_ms:,.0f}", f"{used['gateway'].cpu_s * 1_000:,.0f}", f"{each:.0f}",
        *(f"{percentile(times, share):.0f}" for times in (progress, plan, whole) for share in (0.5, 0.99)),
    )])  # fmt: skip


if __name__ == "__main__":
    main()
