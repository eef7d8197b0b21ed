"""A number without what paused jobs left with it."""

import pytest

from paceline.store.pacers import FleetPhone

from .builders import facts


@pytest.mark.parametrize(
    ("queued", "parked", "resting", "left"),
    [
        pytest.param((5, 0, 0), 0, (0, 0, 0), ((5, 0, 0), 0), id="nothing rests"),
        pytest.param((5, 2, 1), 0, (3, 0, 1), ((2, 2, 0), 0), id="in the queues"),
        pytest.param((5, 0, 0), 4, (4, 0, 0), ((5, 0, 0), 0), id="parked"),
        pytest.param((5, 3, 0), 4, (3, 3, 0), ((5, 1, 0), 0), id="some of both"),
        pytest.param((1, 0, 0), 1, (9, 9, 0), ((0, 0, 0), 0), id="more than there are: some went meanwhile"),
    ],
)
def test_without_what_rests(queued, parked, resting, left):
    phone = FleetPhone(facts(), queued, parked).without(resting)
    assert (phone.queued, phone.parked) == left
