"""A process that follows until nothing is left: `follow.py <redis url> <file>`. What test_trouble kills."""

import asyncio
import sys
from pathlib import Path

from paceline.orchestrator.audit import AuditFollower, AuditThread
from paceline.orchestrator.audit_db import AuditDb
from paceline.store.client import RedisLink
from paceline.store.store import Store


async def main(url: str, path: str) -> None:
    link = RedisLink(url)
    now_ms = await link.time_ms()
    follower = AuditFollower(Store(link), AuditDb(Path(path)), kept_days=36_500, in_thread=AuditThread())
    while (due_ms := await follower.step(now_ms)) is not None:
        assert due_ms <= now_ms, "the file takes nothing"
    await link.close()


asyncio.run(main(*sys.argv[1:]))
