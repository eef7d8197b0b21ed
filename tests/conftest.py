"""Real Redis for every test that needs one, on every kind of server; `lua/servers.py` starts them."""

import os
import tempfile
from collections.abc import Iterator

import hypothesis
import pytest
import redis

from lua.servers import IDS, LiveServer, start_redis

# A change is judged by the same examples twice; what nobody thought of is found on developers' machines.
hypothesis.settings.register_profile("ci", derandomize=True)
if os.environ.get("CI") == "true":
    hypothesis.settings.load_profile("ci")


@pytest.fixture(scope="session", params=IDS)
def live_server(request: pytest.FixtureRequest) -> Iterator[LiveServer]:
    # Not tmp_path: a socket's path may be no longer than about a hundred characters.
    with tempfile.TemporaryDirectory(prefix="paceline-") as folder:
        process, socket = start_redis(request.param, folder)
        client = redis.Redis(unix_socket_path=socket, decode_responses=True)
        try:
            yield LiveServer(request.param, socket, client)
        finally:
            client.close()
            process.terminate()
            process.wait()


@pytest.fixture
def server(live_server: LiveServer) -> LiveServer:
    """An empty server."""
    live_server.client.flushall()
    return live_server
