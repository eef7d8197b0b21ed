"""Whether a caller reads its answer. One that does not would hold its connection, and what was written to it, for ever.

Slow is fine: as long as something of it was taken, there is time for the rest. Neighbour: `http_protocol` says when
something waits to be read and when nothing does.
"""

import asyncio

import structlog

log = structlog.stdlib.get_logger(__name__)

READ_SECONDS = 120.0
"""Long, since the system takes the next of an answer a megabyte or so at a time: who reads a large one over a bad line
must not look like one who does not read."""


class Reader:
    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self._transport = transport
        self._loop = loop
        self._seconds = seconds
        self._next_look: asyncio.TimerHandle | None = None
        # Whatever the system does not take at once counts as waiting. With room for some, the end of an answer could
        # lie there unnoticed, also after the connection was closed on our side.
        transport.set_write_buffer_limits(high=0)

    def expect(self) -> None:
        """Something waits to be read."""
        left = self._transport.get_write_buffer_size()
        self._next_look = self._loop.call_later(self._seconds, self._look, left)

    def forget(self) -> None:
        """All was read, or nobody is there any more."""
        if self._next_look is not None:
            self._next_look.cancel()
            self._next_look = None

    def _look(self, left_before: int) -> None:
        if self._transport.get_write_buffer_size() < left_before:
            self.expect()
            return
        log.info("a caller did not read its answer", seconds=self._seconds)
        self._transport.abort()
