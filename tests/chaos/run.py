"""One run of chaos: hurt a busy platform until the time is over, let it finish, judge it by the ledger."""

import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import quantiles

from acceptance.api import Client
from acceptance.checkers import Evidence, broken_promises
from acceptance.platform import Pace, Platform, policy_toml
from docker.engine import Engine

from .disk import Disk, why_not
from .faults import NEED_A_DISK, NEED_CONTAINERS, Fault, Nemesis, draw
from .load import JOB_CONTACTS, Load, Tail

QUICK = Pace(rpm=600, delay_ms=(80, 120))
SESSIONS = 4
SERVICES = ["gateway", "dispatcher", "dispatcher-2", "orchestrator", "redis"]
TARGETS = [*SERVICES, *(f"worker-sim-{number}" for number in range(1, SESSIONS + 1))]
TOGETHER = (1, 1, 2, 2, 3)
"""How many faults strike at once: those that last overlap with the others."""
BREATH_SECONDS = (0.0, 0.6)
SLOW = {
    "ack_delay_ms": [300, 1_500],
    "disconnect_after": 0.01,
    "delivered_delay_ms": [400, 4_000],
    "delivered_ratio": 0.7,
}
"""Most of the time a worker waits for an ack, so that most faults strike between a send and its outcome. A few acks are
lost with their connection (without that a worker waits 75 s for one, and its number with it; and with more of them
SmartGuard would slow the numbers down), and not everything is proven by a receipt. A number sends about one message a
second."""
UNREADABLE = "Bad file format reading the append only file"
END_SECONDS = 600.0
"""For everything to end after the last fault; reached only if something is broken."""


@dataclass
class Report:
    seed: int
    faults: list[Fault] = field(default_factory=list)
    recoveries: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    seconds: float = 0.0
    messages: int = 0
    on_the_wire: int = 0
    repeated: int = 0
    unknown: int = 0
    """Messages of whom nobody knew for a while, or for good, whether they had gone out."""
    suppressed: int = 0
    up_restarted: int = 0
    broken: list[str] = field(default_factory=list)
    left_out: str = ""
    """Why there was no disk to fill and no power to cut; empty: there was."""
    not_tried: tuple[str, ...] = NEED_CONTAINERS


Round = Sequence[Fault]
"""Faults that strike together."""
Plan = Callable[[Random, Collection[str]], Iterable[Round]]
"""What is done, drawn from a seed; without what cannot be tried here."""


def drawn_for(seconds: float) -> Plan:
    def rounds(rng: Random, not_tried: Collection[str]) -> Iterator[Round]:
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            yield [draw(rng, TARGETS, left_out=not_tried) for _ in range(rng.choice(TOGETHER))]

    return rounds


def run(
    seed: int,
    plan: Plan,
    say: Callable[[str], None] = lambda line: None,
    *,
    contacts: int = JOB_CONTACTS,
    engine: Engine | None = None,
) -> Report:
    """With an engine the workers are its containers."""
    rng, report = Random(seed), _report(seed, engine)
    with _platform(report, engine=engine) as (platform, disk):
        client = Client(platform)
        # A source of its own: how often it is asked depends on the machine, and the faults must not.
        load = Load(platform, client, Tail(_ledger(platform, engine)), Random(f"load {seed}"), contacts)
        nemesis = Nemesis(platform, disk, engine)
        began = time.monotonic()
        for faults in plan(rng, report.not_tried):
            load.keep_busy()
            time.sleep(rng.uniform(*BREATH_SECONDS))
            _strike(faults, report, nemesis, load, say)
        report.seconds = time.monotonic() - began
        report.up_restarted = nemesis.up_restarted
        client.wait_end(*load.jobs, patience_seconds=END_SECONDS)
        _judge(report, platform, client, load)
        client.close()
    return report


def _report(seed: int, engine: Engine | None) -> Report:
    left_out = why_not() if engine is None else "because containers hold the filesystem that would be cut off"
    not_tried = (*(NEED_A_DISK if left_out else ()), *(() if engine else NEED_CONTAINERS))
    return Report(seed, left_out=left_out, not_tried=not_tried)


def power_cut(appendfsync: str) -> list[str]:
    """What the judges find after one, on a Redis that forces its writes to the disk or does not."""
    report = Report(0)
    with _platform(report, keeps_logs=False) as (platform, disk):
        client = Client(platform)
        load = Load(platform, client, Tail(_ledger(platform)), Random(0), 20)
        platform.simulate()
        platform.redis.config_set("appendfsync", appendfsync)
        load.keep_busy()
        client.wait_sent(load.jobs[0], 10)
        if _survives(Nemesis(platform, disk), platform, client, load):
            client.wait_end(*load.jobs)
            _judge(report, platform, client, load)
        else:
            report.broken = ["I1: what was accepted is not known any more"]
        client.close()
    return report.broken


def _survives(nemesis: Nemesis, platform: Platform, client: Client, load: Load) -> bool:
    """Whether the job is still there after a power cut; what is left may also be nothing that Redis can read."""
    try:
        nemesis.strike(Fault("power cut"))
    except AssertionError:
        if UNREADABLE not in (platform.folder / "up.stderr").read_text():
            raise
        return False
    return client.request("GET", f"/v1/jobs/{load.jobs[0].job_id}").status_code != 404


def _strike(faults: Round, report: Report, nemesis: Nemesis, load: Load, say: Callable[[str], None]) -> None:
    hits = nemesis.strike_together(faults)
    for number, fault in enumerate(hits):
        report.faults.append(fault)
        say(f"{len(report.faults):5} {'' if number == 0 else 'and '}{fault}")
    nemesis.keep_up()
    if hits:
        report.recoveries[hits[-1].kind].append(load.recovery_seconds(hits[-1].session))
    load.gather_events()


def _judge(report: Report, platform: Platform, client: Client, load: Load) -> None:
    load.gather_events()
    evidence = Evidence(platform, client, load.jobs, load.stopped)
    evidence.events = load.told()
    report.messages = len(evidence.messages)
    report.on_the_wire = len(evidence.lines)
    report.repeated = sum(len(lines) > 1 for _, _, _, lines in evidence.ours())
    views = evidence.messages.values()
    report.unknown = sum(any(entry["what"] == "unknown" for entry in view["history"]) for view in views)
    report.suppressed = sum(view["state"] == "suppressed" for view in views)
    report.broken = broken_promises(evidence)


@contextmanager
def _platform(
    report: Report, *, keeps_logs: bool = True, engine: Engine | None = None
) -> Iterator[tuple[Platform, Disk | None]]:
    platform = Platform(sessions=SESSIONS, dispatchers=2, policy=policy_toml(QUICK), pace=QUICK)
    if engine is not None:
        platform._environment |= engine.worker_settings(platform.orchestrator)
    disk = None if report.left_out else Disk(platform.folder, platform.data)
    if disk is not None:
        disk.mount()
    _ledger(platform, engine).mkdir()
    if engine is None:
        (platform.data / "ledger").symlink_to(_ledger(platform, engine))
    platform.simulate(SLOW)
    is_good = False
    try:
        platform.start()
        yield platform, disk
        is_good = not report.broken
        if is_good:
            platform.stop()
    finally:
        if keeps_logs and not is_good:
            kept = platform.folder.with_name(platform.folder.name + "-logs")
            # A disk without power gives nothing.
            with suppress(shutil.Error):
                shutil.copytree(platform.data / "log", kept, dirs_exist_ok=True)
            report.broken.append(f"the logs are in {kept}")
        _clear_away(platform, disk)


def _ledger(platform: Platform, engine: Engine | None = None) -> Path:
    """WhatsApp's own memory: outside the data directory nothing that happens to us touches it. Containers see only what
    is inside."""
    return (platform.folder if engine is None else platform.data) / "ledger"


def _clear_away(platform: Platform, disk: Disk | None) -> None:
    platform.halt()
    if disk is not None:
        disk.unmount()
    platform.destroy(keep=False)


def percentiles(seconds: list[float]) -> tuple[float, float]:
    """p50 and p99."""
    if len(seconds) < 2:
        return (seconds[0], seconds[0]) if seconds else (0.0, 0.0)
    cuts = quantiles(seconds, n=100, method="inclusive")
    return cuts[49], cuts[98]
