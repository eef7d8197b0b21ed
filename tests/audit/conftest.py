from pathlib import Path

import pytest

from lua.servers import LiveServer
from lua.stage import Stage

from .trail import Trail


@pytest.fixture
def stage(server: LiveServer) -> Stage:
    return Stage(server.client)


@pytest.fixture
def trail(stage: Stage, tmp_path: Path) -> Trail:
    return Trail(stage, tmp_path / "trail.sqlite")
