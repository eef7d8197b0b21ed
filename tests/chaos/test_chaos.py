"""A short `make chaos` with one fault of each kind; and a Redis that would lose what it answered for: it must be found
out."""

from collections.abc import Collection
from random import Random

import pytest

from needed import skip_if

from .disk import why_not
from .faults import Fault
from .run import SERVICES, Round, power_cut, run

SEED, CONTACTS = 10, 24
ONE_OF_EACH: list[Round] = [
    [Fault("kill", "worker-sim-1"), Fault("stop", "dispatcher", 2.0)],
    [Fault("kill", "redis"), Fault("stop", "worker-sim-2", 3.5)],
    [Fault("kill", "orchestrator"), Fault("memory limit", seconds=1.0), Fault("connections cut")],
    [Fault("kill", "dispatcher"), Fault("kill", "dispatcher-2"), Fault("scripts forgotten")],
    [Fault("disk full", seconds=1.0), Fault("kill", "worker-sim-3")],
    [Fault("redis restart"), Fault("kill", "gateway")],
    [Fault("power cut")],
]


def test_a_platform_that_is_hurt_again_and_again_loses_and_repeats_nothing() -> None:
    """Kills, stops, restarts, cut connections, and with root a full disk and a power cut, under load."""
    report = run(SEED, _one_of_each, contacts=CONTACTS)
    assert report.broken == []
    assert {str(fault) for fault in report.faults} >= {f"kill {name}" for name in (*SERVICES, "worker-sim-1")}
    assert {fault.kind for fault in report.faults} == {
        fault.kind for faults in _one_of_each(Random(), report.not_tried) for fault in faults
    }
    assert report.messages >= CONTACTS


def _one_of_each(rng: Random, not_tried: Collection[str]) -> list[Round]:
    left = [[fault for fault in faults if fault.kind not in not_tried] for faults in ONE_OF_EACH]
    return [faults for faults in left if faults]


@pytest.mark.parametrize(("appendfsync", "breaks"), [("always", set()), ("no", {"I1"})])
def test_only_a_redis_that_forces_its_writes_survives_a_power_cut(appendfsync: str, breaks: set[str]) -> None:
    """The power cut is one: what `always` keeps is gone with `no`, and the judges see that."""
    skip_if(why_not() and f"a filesystem of its own {why_not()}")
    assert {broken.partition(":")[0] for broken in power_cut(appendfsync)} == breaks
