"""Randomness as an object: created once at the entry point, seeded, and passed to whoever draws.

With the seed known, a run of the simulation is repeatable to the last draw.
"""

import random
from typing import TypeAlias

Rng: TypeAlias = random.Random


def new_rng(seed: int | None = None) -> Rng:
    """A source of its own; without a seed it starts from the operating system's entropy."""
    return random.Random(seed)
