"""One engine for all of them: starting it and building the images takes a minute."""

from collections.abc import Iterator

import pytest

from .engine import BAILEYS_WORKER, Engine, require_engine, require_node, running


@pytest.fixture(scope="session")
def running_engine() -> Iterator[Engine]:
    require_engine()
    with running() as engine:
        yield engine


@pytest.fixture
def engine(running_engine: Engine) -> Engine:
    """An engine without containers."""
    running_engine.clear()
    return running_engine


@pytest.fixture(scope="session")
def baileys_image(running_engine: Engine) -> str:
    """Of the Node worker: whoever has no node runs the other tests without it."""
    require_node()
    running_engine.build_baileys_image()
    return BAILEYS_WORKER
