"""A real worker in a container: linked, sending, killed, and back with its login from its volume.

The platform is `paceline up --driver baileys --fake-whatsapp` with RUNNER=docker. The fake WhatsApp is on loopback and
nowhere else, so the containers share the host's network here; nothing else about them differs from production.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from acceptance.api import Client, people
from acceptance.checkers import judge, secrets_in_logs
from acceptance.platform import Platform, wait_for

from .engine import BAILEYS_WORKER, Engine

# Whoever comes first builds the images.
pytestmark = pytest.mark.timeout(900)

CONTAINER = "wa_session_wa-1"


@pytest.fixture
def platform(engine: Engine, baileys_image: str, request: pytest.FixtureRequest) -> Iterator[Platform]:
    failed_before = request.session.testsfailed
    environment = {
        "RUNNER": "docker",
        "DOCKER_HOST": engine.url,
        "BAILEYS_WORKER_IMAGE": baileys_image,
        "WORKER_NETWORK": "host",
        "FLEET_NAME": "baileys-test",
        "WORKER_GRACE_MS": "3000",
    }
    running = Platform(sessions=1, driver="baileys", env=environment)
    try:
        running.start()
        yield running
        running.stop()
        assert engine.docker("ps", "-aq").stdout == ""
        assert secrets_in_logs(running) == []
    finally:
        running.destroy(keep=request.session.testsfailed != failed_before)


def test_a_linked_number_sends_is_killed_and_comes_back_with_its_login(engine: Engine, platform: Platform) -> None:
    client = Client(platform)
    client.wait_connected("wa-1")
    before = _devices(client, platform)
    assert [(one["sessionId"], one["connected"]) for one in before] == [("wa-1", True)]
    about = json.loads(engine.docker("inspect", CONTAINER).stdout)[0]
    assert (about["Config"]["Image"], about["Config"]["User"]) == (BAILEYS_WORKER, "10001:10001")
    assert about["HostConfig"]["ReadonlyRootfs"]

    first = client.post_job(people(1))
    assert client.wait_end(first)[0]["state"] == "DONE"

    engine.docker("kill", CONTAINER)
    wait_for("a new container", lambda: _id(engine) not in ("", about["Id"]))
    client.wait_connected("wa-1")
    assert [one["jid"] for one in _devices(client, platform)] == [one["jid"] for one in before]
    assert client.session("wa-1")["authorisation"] == "LINKED"

    second = client.post_job(people(1))
    assert client.wait_end(second)[0]["state"] == "DONE"
    for job in (first, second):
        assert len(client.lines_of(job)) == 1
        judge(platform, client, job)
    client.close()


def _id(engine: Engine) -> str:
    return engine.docker("inspect", "-f", "{{.Id}}", CONTAINER, check=False).stdout.strip()


def _devices(client: Client, platform: Platform) -> list[dict[str, Any]]:
    admin = platform.ready.partition("whatsapp=")[2].split()[0]
    devices: list[dict[str, Any]] = client.request("GET", f"{admin}/devices").json()["devices"]
    return devices
