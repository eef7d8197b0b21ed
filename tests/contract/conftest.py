"""One private Redis for the contract tests (the embedded one, which everybody has), emptied before each test."""

import tempfile
from collections.abc import AsyncIterator, Iterator

import pytest
import redis

from lua.servers import LiveServer, start_redis

from .platform import Platform


@pytest.fixture(scope="session")
def contract_redis() -> Iterator[LiveServer]:
    with tempfile.TemporaryDirectory(prefix="paceline-") as folder:
        process, socket = start_redis("embedded", folder)
        client = redis.Redis(unix_socket_path=socket, decode_responses=True)
        try:
            yield LiveServer("embedded", socket, client)
        finally:
            client.close()
            process.terminate()
            process.wait()


@pytest.fixture
async def platform(contract_redis: LiveServer) -> AsyncIterator[Platform]:
    contract_redis.client.flushall()
    contract_redis.client.config_set("maxmemory", 0)
    stage = Platform(contract_redis.url)
    await stage.open()
    yield stage
    await stage.close()
