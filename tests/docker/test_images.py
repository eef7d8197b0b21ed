"""The images do what the containers need of them."""

import pytest

from .engine import SERVICES, WORKER, Engine

# Whoever comes first builds the images.
pytestmark = pytest.mark.timeout(900)

BAILEYS_HOME = "/opt/worker-baileys"


def test_the_worker_image_starts_as_nobody_special_and_says_what_it_misses(engine: Engine) -> None:
    says_what_it_misses(engine, WORKER)


def test_so_does_that_of_the_node_worker(engine: Engine, baileys_image: str) -> None:
    says_what_it_misses(engine, baileys_image)


def says_what_it_misses(engine: Engine, image: str) -> None:
    done = engine.docker("run", "--rm", "--read-only", "--cap-drop", "ALL", image, check=False)
    assert (done.returncode, "SESSION_ID: is not set" in done.stderr) == (2, True), done.stderr
    assert engine.docker("run", "--rm", "--entrypoint", "id", image, "-u").stdout.strip() == "10001"


def test_the_node_worker_carries_only_what_it_runs_on(engine: Engine, baileys_image: str) -> None:
    """No compiler, no sources, no tests, no fake WhatsApp."""
    looked = engine.docker("run", "--rm", "--entrypoint", "find", baileys_image, BAILEYS_HOME, "-maxdepth", "2")
    found = {path.removeprefix(f"{BAILEYS_HOME}/") for path in looked.stdout.split()}
    assert {"bin/worker", "dist/src", "node_modules/baileys"} <= found
    assert not found & {"src", "dist/tests", "dist/fake-whatsapp", "node_modules/typescript"}


def test_the_services_image_has_the_command(engine: Engine) -> None:
    assert "gateway" in engine.docker("run", "--rm", SERVICES, "--help").stdout
