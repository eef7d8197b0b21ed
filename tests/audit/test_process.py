"""The orchestrator as a process: an incident reaches the chat, a fact reaches the file, also after kill -9."""

import asyncio
import contextlib
import os
import signal
import socket
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from contract.bot_api import BotApi, bot_api
from lua.servers import LiveServer
from lua.stage import Stage, value_of

TOKEN = "123456789:CanaryTokenOfTheBotAAAAAAAAAAAAAAA"
PATIENCE_S = 60


@pytest.fixture
async def api() -> AsyncIterator[BotApi]:
    async with bot_api() as found:
        yield found


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextlib.asynccontextmanager
async def orchestrator(
    server: LiveServer, api: BotApi, folder: Path, port: int
) -> AsyncIterator[asyncio.subprocess.Process]:
    settings = {
        "REDIS_URL": server.url,
        "PACELINE_DATA": str(folder),
        "API_KEY": "process-test-admin-key",
        "WEBHOOK_SECRET": "process-test-webhook-secret",
        "RUNNER": "external",
        "PORT": str(port),
        "POLL_INTERVAL_MS": "50",
        "TELEGRAM_BOT_TOKEN": TOKEN,
        "TELEGRAM_CHAT_ID": "42",
        "TELEGRAM_API_URL": api.url,
        "LOG_LEVEL": "debug",
    }
    with (folder / "log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "paceline.orchestrator.main", env={**os.environ, **settings}, stderr=log
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGKILL)
            await process.wait()


async def until(process: asyncio.subprocess.Process, is_so: Callable[[], bool], folder: Path) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():
            assert process.returncode is None, (folder / "log").read_text()
            await asyncio.sleep(0.02)


def rows(folder: Path, table: str) -> int:
    path = folder / "orchestrator.sqlite"
    if not path.exists():
        return 0
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        try:
            return int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
        except sqlite3.OperationalError:
            return 0


async def test_alerts_and_the_trail_go_on_after_a_kill(
    server: LiveServer, api: BotApi, tmp_path: Path, port: int
) -> None:
    stage = Stage(server.client)
    # What is older than a year would be pruned at once.
    now_ms = int(server.client.time()[0]) * 1000
    value_of(stage.store.alerts.note("SESSION_FAILED", {"sessionId": "s1"}, now_ms=now_ms))
    value_of(stage.store.operators.pause(True, by="k1", now_ms=now_ms))
    async with orchestrator(server, api, tmp_path, port) as process:
        await until(process, lambda: bool(api.texts) and rows(tmp_path, "operator_actions") == 1, tmp_path)
        process.send_signal(signal.SIGKILL)
        await process.wait()
    value_of(stage.store.alerts.note("SESSION_FAILED", {"sessionId": "s2"}, now_ms=now_ms))
    value_of(stage.store.operators.pause(False, by="k1", now_ms=now_ms))
    async with orchestrator(server, api, tmp_path, port) as process:
        await until(process, lambda: "s2" in str(api.texts) and rows(tmp_path, "operator_actions") == 2, tmp_path)
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
    assert "Session s1 has failed" in api.texts[0]
    assert len(api.texts) in (2, 3), "at most one came twice"
    assert api.bodies[0]["chat_id"] == "42"
    assert TOKEN not in (tmp_path / "log").read_text()


async def test_an_address_that_is_none_stops_the_start_and_is_not_repeated(
    server: LiveServer, api: BotApi, tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALERT_URLS", "nosuchservice://canary-token")
    async with orchestrator(server, api, tmp_path, port) as process:
        async with asyncio.timeout(PATIENCE_S):
            assert await process.wait() == 2
    said = (tmp_path / "log").read_text()
    assert "ALERT_URLS: entry 1 is no address that apprise knows" in said
    assert "canary-token" not in said
