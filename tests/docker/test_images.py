"""The images do what the containers need of them."""

import pytest

from .engine import SERVICES, WORKER, Engine

# Whoever comes first builds the images.
pytestmark = pytest.mark.timeout(900)


def test_the_worker_image_starts_as_nobody_special_and_says_what_it_misses(engine: Engine) -> None:
    done = engine.docker("run", "--rm", "--read-only", "--cap-drop", "ALL", WORKER, check=False)
    assert (done.returncode, "SESSION_ID: is not set" in done.stderr) == (2, True), done.stderr
    assert engine.docker("run", "--rm", "--entrypoint", "id", WORKER, "-u").stdout.strip() == "10001"


def test_the_services_image_has_the_command(engine: Engine) -> None:
    assert "gateway" in engine.docker("run", "--rm", SERVICES, "--help").stdout
