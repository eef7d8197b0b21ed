"""A short, seeded `make chaos`; and a Redis that would lose what it answered for, which must be found out."""

import pytest

from .disk import why_not
from .run import power_cut_without_fsync, run

SEED, SECONDS, CONTACTS = 10, 10.0, 60
NEEDS_A_DISK = pytest.mark.skipif(bool(why_not()), reason=f"a filesystem of its own {why_not()}")


def test_a_platform_that_is_hurt_again_and_again_loses_and_repeats_nothing() -> None:
    """Kills, stops, restarts, cut connections, and with root a full disk and a power cut, under load."""
    report = run(SEED, SECONDS, contacts=CONTACTS)
    assert report.broken == []
    assert len(report.faults) >= 4
    assert report.messages >= CONTACTS


@NEEDS_A_DISK
def test_a_redis_that_does_not_force_its_writes_is_found_out() -> None:
    """The power cut is one: what `appendfsync always` keeps is gone without it, and the judges see that."""
    assert power_cut_without_fsync() != []
