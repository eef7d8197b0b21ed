"""One platform for each module: starting one costs seconds. A module names its own in `PLATFORM`."""

import os
import sys
from collections.abc import Iterator

import pytest

from needed import skip_if
from paceline.kits.node import missing_for
from paceline.settings import Settings, load

from .api import Client
from .checkers import secrets_in_logs
from .platform import PACELINE, Platform


@pytest.fixture(scope="module")
def platform(request: pytest.FixtureRequest) -> Iterator[Platform]:
    assert sys.platform == "linux", "these tests read /proc and send Linux signals"
    assert PACELINE.exists(), f"{PACELINE} is missing: `make install` first"
    failed_before = request.session.testsfailed
    given = getattr(request.module, "PLATFORM", {})
    if given.get("driver") == "baileys":
        _need_node()
    running = Platform(**given)
    try:
        running.start()
        yield running
        if running.up is not None and running.up.poll() is None:
            running.stop()
        assert secrets_in_logs(running) == []
    except BaseException:
        failed_before = -1
        raise
    finally:
        is_wanted = bool(os.environ.get("ACCEPTANCE_KEEP"))
        running.destroy(keep=is_wanted or request.session.testsfailed != failed_before)


def _need_node() -> None:
    skip_if(missing_for(load(Settings).baileys_folder / "dist" / "src" / "main.js") or "")


@pytest.fixture(scope="module")
def client(platform: Platform) -> Iterator[Client]:
    opened = Client(platform)
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def healthy(request: pytest.FixtureRequest) -> None:
    """Each test starts with a WhatsApp that is well."""
    if "platform" in request.fixturenames:
        request.getfixturevalue("platform").simulate()
