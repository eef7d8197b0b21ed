"""Waiting for a condition, and asking whether a process lives; shared by the tests of the house."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

LIMIT_SECONDS = 30.0


async def until(condition: Callable[[], object]) -> None:
    """Wait for it, with a bound that is only reached when something is broken."""

    async def ask() -> object:
        return condition()

    await until_async(ask)


async def until_async(condition: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.timeout(LIMIT_SECONDS):
        while not await condition():  # noqa: ASYNC110 - what is waited for happens in another process
            await asyncio.sleep(0.02)


def until_sync(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + LIMIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether that process runs; a zombie, which nobody has waited for yet, does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def pid_in(path: Path) -> int | None:
    try:
        # A worker's file has a second line about it.
        return int(path.read_text().partition("\n")[0])
    except (FileNotFoundError, ValueError):
        return None
