"""One run of chaos: hurt a busy platform until the time is over, let it finish, judge it by the ledger."""

import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
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
"""How many faults strike at once."""
BREATH_SECONDS = (0.0, 0.6)
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
    up_restarted: int = 0
    broken: list[str] = field(default_factory=list)
    left_out: str = ""
    """Why there was no disk to fill and no power to cut; empty: there was."""
    not_tried: tuple[str, ...] = NEED_CONTAINERS


def run(
    seed: int,
    seconds: float,
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
        while time.monotonic() - began < seconds:
            _round(rng, report, nemesis, load, say)
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


def power_cut_without_fsync() -> list[str]:
    """The same judges on a Redis that does not force its writes to the disk: what they find."""
    report = Report(0)
    with _platform(report, keeps_logs=False) as (platform, disk):
        client = Client(platform)
        load = Load(platform, client, Tail(_ledger(platform)), Random(0), 40)
        load.keep_busy()
        platform.redis.config_set("appendfsync", "no")
        client.wait_sent(load.jobs[0], 15)
        try:
            Nemesis(platform, disk).strike(Fault("power cut"))
            client.wait_end(*load.jobs)
            _judge(report, platform, client, load)
        except AssertionError as found:
            # The job itself may be gone, or what is left may be more than Redis can read.
            report.broken.append(str(found))
        client.close()
    return report.broken


def _round(rng: Random, report: Report, nemesis: Nemesis, load: Load, say: Callable[[str], None]) -> None:
    load.keep_busy()
    time.sleep(rng.uniform(*BREATH_SECONDS))
    for number in range(rng.choice(TOGETHER)):
        fault = draw(rng, TARGETS, left_out=report.not_tried)
        nemesis.strike(fault)
        report.faults.append(fault)
        say(f"{len(report.faults):5} {'' if number == 0 else 'and '}{fault}")
    nemesis.keep_up()
    report.recoveries[fault.kind].append(load.recovery_seconds(fault.session))
    load.gather_events()


def _judge(report: Report, platform: Platform, client: Client, load: Load) -> None:
    load.gather_events()
    evidence = Evidence(platform, client, load.jobs, {})
    evidence.events = load.told()
    report.messages = len(evidence.messages)
    report.on_the_wire = len(evidence.lines)
    report.repeated = sum(len(lines) > 1 for _, _, _, lines in evidence.ours())
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
    platform.simulate()
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
