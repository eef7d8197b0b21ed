"""Serving an ASGI application inside a composition root, next to its background tasks.

`serve` is a coroutine that ends when the process is asked to stop, so the caller can take down the rest in
order.
"""

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Iterator

import structlog
import uvicorn
from uvicorn._types import ASGIApplication

from paceline.kits.http_protocol import Protocol
from paceline.kits.service import HEAD_LIMIT

log = structlog.stdlib.get_logger(__name__)

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

# Requests that are still running are cut after this. Long polls are among them; their callers just ask again.
GRACE_SECONDS = 2

# HTTP clients drop idle connections after some seconds of their own; ours must live longer, or a request now
# and then meets a connection that is just being closed and its caller cannot know whether it was heard.
KEEP_ALIVE_SECONDS = 75


# Line ends and the like, which `web` cannot count.
HEAD_SLACK = 4_096


class _Server(uvicorn.Server):
    """uvicorn re-raises the signal once it is down, which would end the process before its own clean-up."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(
    app: ASGIApplication, host: str, port: int, before_stop: Callable[[], Awaitable[object]] | None = None
) -> None:
    """Serve until SIGTERM or SIGINT; a second signal does not wait for running requests. `before_stop` comes first:
    requests are answered while it runs."""
    server = _Server(
        uvicorn.Config(
            app,
            host=host,
            port=port,
            http=Protocol,
            # Beyond this uvicorn refuses what has not come whole yet, and `web` the rest: no limit depends on packets.
            h11_max_incomplete_event_size=HEAD_LIMIT + HEAD_SLACK,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
    )

    goodbye: asyncio.Task[None] | None = None

    async def say_goodbye() -> None:
        try:
            if before_stop is not None:
                await before_stop()
        finally:
            server.should_exit = True

    def stop() -> None:
        nonlocal goodbye
        if goodbye is None:
            goodbye = asyncio.create_task(say_goodbye(), name="goodbye")
        else:
            server.force_exit = server.should_exit = True

    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stop)
    try:
        await server.serve()
    finally:
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)
        if goodbye is not None and goodbye.done() and goodbye.exception():
            log.error("not all could be ended in order", exc_info=goodbye.exception())
