"""A request and its answer on the wire: uvicorn's, with a whole answer written in one go.

As two packets, the head and the body, it would cost us and the caller twice. Neighbours: `http_protocol` makes one for
each request; `web` gives it what is whole already (`cycle_of`).
"""

from typing import Any

from uvicorn.protocols.http.httptools_impl import HEADER_RE, HEADER_VALUE_RE, STATUS_LINE, RequestResponseCycle

_SPECIAL = (b"connection", b"transfer-encoding")


class Cycle(RequestResponseCycle):
    _head: Any = None
    """The head of an answer that waits for its body, which is at hand where its length is known."""

    async def send(self, message: Any) -> None:
        if not self.response_started and _is_measured(message):
            self._head, self.response_started = message, True
            return
        head, self._head = self._head, None
        if head is None:
            await super().send(message)
        elif self._is_plain(head, message):
            self._check_and_write(head, message.get("body", b""))
        else:
            self.response_started = False
            await super().send(head)
            await super().send(message)

    def answer(self, status: int, lines: bytes, body: bytes) -> bool:
        """All of it at once, with the head's lines as they go out; or nothing, if the way must be the long one."""
        if self.response_started or self.disconnected or self.flow.write_paused or not self.keep_alive:
            return False
        self.response_started = True
        self._write(status, b"%b%b" % (self._default_lines(), lines), body)
        return True

    @property
    def whole_body(self) -> bytes | None:
        """What came, if all of it did."""
        return None if self.more_body or self.waiting_for_100_continue or self.disconnected else bytes(self.body)

    def _is_plain(self, head: Any, message: Any) -> bool:
        """Whether nothing about it is special. uvicorn has the rules for the rest."""
        return not (
            message.get("more_body")
            or self.disconnected
            or self.flow.write_paused
            or not self.keep_alive
            or self.scope["method"] == "HEAD"
            or any(name in _SPECIAL for name, _ in head["headers"])
        )

    def _check_and_write(self, head: Any, body: bytes) -> None:
        headers = head["headers"]
        names, values = zip(*headers, strict=True)
        if HEADER_RE.search(b"".join(names)) or HEADER_VALUE_RE.search(b"".join(values)):
            raise RuntimeError("a header has characters that it must not have")
        if int(dict(headers)[b"content-length"]) != len(body):
            raise RuntimeError("the answer is not as long as it says")
        self._write(head["status"], self._default_lines() + lines_of(headers), body)

    def _write(self, status: int, lines: bytes, body: bytes) -> None:
        self.transport.write(b"%b%b\r\n%b" % (STATUS_LINE[status], lines, body))
        self.waiting_for_100_continue, self.response_complete = False, True
        self.message_event.set()
        self.on_response()

    def _default_lines(self) -> bytes:
        return lines_of(self.default_headers)


def cycle_of(send: Any) -> Cycle | None:
    """The request on the wire that this `send` of ASGI belongs to; None if another server made it."""
    cycle = getattr(send, "__self__", None)
    return cycle if isinstance(cycle, Cycle) else None


def lines_of(headers: Any) -> bytes:
    return b"".join([b"%b: %b\r\n" % (name, value) for name, value in headers])


def _is_measured(message: Any) -> bool:
    if message["type"] != "http.response.start":
        return False
    return any(name == b"content-length" for name, _ in message.get("headers", ()))
