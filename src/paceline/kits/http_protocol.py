"""uvicorn's HTTP/1.1 with two things it leaves open: its errors in our shape, and an end to callers that never finish.

A request's head must be there after some seconds, and so must the rest of a body that was answered before it ended. A
body that is being read is minded by `bodies`, an idle connection by uvicorn. Neighbour: `http` serves with this.
"""

import asyncio
import json
import sys
import uuid
from typing import Any

import h11
import structlog
from uvicorn.protocols.http.h11_impl import H11Protocol

from paceline.kits.problem import Problem

log = structlog.stdlib.get_logger(__name__)

HEAD_SECONDS = 30.0
"""As long as a piece of a body may take. Nobody needs it; thousands of half requests would need it all."""


class Protocol(H11Protocol):
    head_seconds = HEAD_SECONDS
    _owed: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_watching()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def send_400_response(self, msg: str) -> None:
        """Where uvicorn would answer in plain text. What exactly is wrong, h11 has just said, in words of its own."""
        error = sys.exception()
        problem = Problem(400, "INVALID_HTTP", msg, closes=True)
        if isinstance(error, h11.RemoteProtocolError):
            problem = _problem_of(error)
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._answer(problem)
        # An answer that has begun cannot be taken back; its end is all that is left to say.
        self.transport.close()

    def _answer(self, problem: Problem) -> None:
        body = json.dumps(problem.content()).encode()
        headers = [
            ("content-type", "application/json"),
            ("content-length", str(len(body))),
            ("x-request-id", uuid.uuid4().hex),
            ("connection", "close"),
        ]
        events: list[Any] = [
            h11.Response(status_code=problem.status, headers=headers),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ]
        self.transport.write(b"".join(self.conn.send(event) or b"" for event in events))

    def _watch(self) -> None:
        """Whether the caller owes us bytes that nobody else waits for: a head, or the rest of an answered body."""
        is_between = self.cycle is None or self.cycle.response_complete
        if not is_between or self.timeout_keep_alive_task is not None or self.transport.is_closing():
            self._stop_watching()
        elif self._owed is None:
            self._owed = self.loop.call_later(self.head_seconds, self._give_up)

    def _stop_watching(self) -> None:
        if self._owed is not None:
            self._owed.cancel()
            self._owed = None

    def _give_up(self) -> None:
        log.info("a caller did not finish its request", seconds=self.head_seconds)
        if self.conn.our_state is h11.IDLE and self.conn.their_state is h11.IDLE:
            self._answer(Problem(408, "BODY_TIMEOUT", "the request did not come in time", closes=True))
        self.transport.close()


def _problem_of(error: h11.RemoteProtocolError) -> Problem:
    if error.error_status_hint == 431:
        return Problem(431, "HEADERS_TOO_LARGE", "the URL and the headers are too long", closes=True)
    # Without h11's own words: they may quote what was sent.
    return Problem(400, "INVALID_HTTP", "this is not a request of HTTP/1.1", closes=True)
