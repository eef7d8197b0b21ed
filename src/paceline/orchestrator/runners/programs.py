"""What is run for each driver when workers are processes of this machine. Neighbour: `process`, which runs it."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from paceline.kits.node import missing_for, node_path
from paceline.settings import Settings


@dataclass(frozen=True)
class Program:
    command: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    missing: Callable[[], str | None] = lambda: None
    """Why it cannot be run now; asked before each start, since what is missing may be installed meanwhile."""


SIMULATED = Program(
    # Straight to the entry point: importing the CLI would cost each of many workers a quarter of a second.
    [sys.executable, "-c", "import sys; from paceline.worker.main import main; sys.exit(main())"]
)


def programs_of(settings: Settings) -> dict[str, Program]:
    return {"simulated": SIMULATED, "baileys": _baileys(settings)}


def _baileys(settings: Settings) -> Program:
    script = settings.baileys_folder / "dist" / "src" / "main.js"
    return Program(
        # As its own bin/worker: a small young generation and two malloc arenas keep an idle worker small.
        [node_path(), "--max-semi-space-size=1", str(script)],
        {"MALLOC_ARENA_MAX": "2"},
        lambda: missing_for(script),
    )
