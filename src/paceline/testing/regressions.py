"""Runs that were red once, kept as whole scenarios: what a seed draws changes with the code, these do not.

Each is a file of `tests/sim/regressions`, named after what it found. Its test runs it (`tests/sim/test_world.py`).
"""

import re
from pathlib import Path

import msgspec

from paceline.testing import scenario
from paceline.testing.plans import Scenario

FOLDER = Path("tests/sim/regressions")
"""From the repository's root."""


def keep(seed: int, name: str, folder: Path = FOLDER) -> Path:
    """Writes the scenario that this seed draws now."""
    words = "-".join(re.findall(r"[a-z0-9]+", name.lower()))
    path = folder / f"{words}.json"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(scenario.draw(seed)), indent=1) + b"\n")
    return path


def kept(folder: Path = FOLDER) -> dict[str, Scenario]:
    """By what they found."""
    return {
        path.stem.replace("-", " "): msgspec.json.decode(path.read_bytes(), type=Scenario)
        for path in sorted(folder.glob("*.json"))
    }
