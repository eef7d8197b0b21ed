"""A real worker against the real orchestrator over HTTP: from its first QR code through a scan and a logout to another.

The only test here that takes real time (some seconds): the worker asks for orders once a second while it is not linked.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from paceline.domain.errors import Unavailable
from paceline.kits.rng import new_rng
from paceline.kits.secrets import derive
from paceline.kits.stepping import keep_listening
from paceline.worker.core import EXIT_REPLACED, Exit, WorkerCore
from paceline.worker.drivers.config import Behaviour
from paceline.worker.drivers.ledger import FileLedger
from paceline.worker.drivers.simulated import SimulatedDriver
from paceline.worker.drivers.whatsapp import WhatsApp
from paceline.worker.journal import FileJournal
from paceline.worker.main import AsyncioWake, SteadyClock
from paceline.worker.protocol_http import HttpProtocol

from .platform import SESSION, WEBHOOK_SECRET, Platform

PATH = f"/api/sessions/{SESSION}"
PATIENCE_S = 30


@asynccontextmanager
async def worker(platform: Platform, folder: Path, instance: str) -> Any:
    """Yields the task that holds the session."""
    clock, rng, behaviour = SteadyClock(), new_rng(1), Behaviour(linking="qr")
    protocol = HttpProtocol(
        "http://paceline", SESSION, derive(WEBHOOK_SECRET, SESSION),
        transport=httpx.ASGITransport(platform.services["orchestrator"]),
    )  # fmt: skip
    ledger = FileLedger(folder / "ledger", SESSION)
    journal = FileJournal.open(folder / "volume", new_id=lambda: "journal", now_ms=clock.now_ms)
    driver = SimulatedDriver(
        WhatsApp(SESSION, behaviour), ledger, clock=clock, rng=rng, wake=AsyncioWake(), behaviour=lambda: behaviour
    )
    core = WorkerCore(
        session_id=SESSION, instance_id=instance, life_id="life", protocol=protocol, driver=driver, journal=journal,
        clock=clock, rng=rng, wake=AsyncioWake(),
    )  # fmt: skip
    tasks = [asyncio.create_task(part()) for part in (core.run, core.pump_events, core.post_events)]
    try:
        yield tasks[0]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        journal.close()
        ledger.close()
        await protocol.close()


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await condition():  # noqa: ASYNC110 - what is waited for stands in Redis
            await asyncio.sleep(0)


async def is_status(platform: Platform, word: str) -> bool:
    return bool((await platform.orchestrator.get(PATH)).json()["status"] == word)


@pytest.fixture
async def woken(platform: Platform) -> AsyncIterator[Platform]:
    """Whoever waits in a long poll is woken through Redis, as in production."""
    listening = keep_listening(
        platform.link.wakes, platform.waiters.ring, platform.clock, idle_ms=1_000, expected=Unavailable
    )
    task = asyncio.create_task(listening)
    yield platform
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_from_a_code_to_a_logout_and_back_to_a_code(woken: Platform, tmp_path: Path) -> None:
    platform = woken
    await platform.register()
    async with worker(platform, tmp_path, "one") as run:
        await until(lambda: is_status(platform, "SCAN_QR"))
        shown = (await platform.orchestrator.get(f"{PATH}/qr")).json()["qr"]
        assert shown.startswith("https://wa.me/settings/linked_devices#")
        code = (await platform.orchestrator.post(f"{PATH}/pairing-code", timeout=PATIENCE_S)).json()["code"]
        assert len(code) == 9
        assert (await platform.orchestrator.post(f"{PATH}/simulated/scan")).status_code == 202
        await until(lambda: is_status(platform, "WORKING"))
        assert (await platform.orchestrator.post(f"{PATH}/logout")).status_code == 202
        await until(lambda: is_status(platform, "LOGGED_OUT"))
        async with asyncio.timeout(PATIENCE_S):
            assert await run == Exit(EXIT_REPLACED, "NOT_WANTED")
    kept = str(await platform.snapshot())
    assert code not in kept
    assert shown not in kept
    await platform.orchestrator.post(f"{PATH}/start")
    async with worker(platform, tmp_path, "two"):
        await until(lambda: is_status(platform, "SCAN_QR"))
