"""A request and its answer on the wire: uvicorn's, with a whole answer written in one go.

As two packets, the head and the body, it would cost us and the caller twice. Neighbour: `http_protocol` makes one for
each request.
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
            self._answer(head, message.get("body", b""))
        else:
            self.response_started = False
            await super().send(head)
            await super().send(message)

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

    def _answer(self, head: Any, body: bytes) -> None:
        headers = [*self.default_headers, *head["headers"]]
        names, values = zip(*headers, strict=True)
        if HEADER_RE.search(b"".join(names)) or HEADER_VALUE_RE.search(b"".join(values)):
            raise RuntimeError("a header has characters that it must not have")
        if int(dict(headers)[b"content-length"]) != len(body):
            raise RuntimeError("the answer is not as long as it says")
        lines = [b"%b: %b\r\n" % (name, value) for name, value in headers]
        self.transport.write(b"".join([STATUS_LINE[head["status"]], *lines, b"\r\n", body]))
        self.waiting_for_100_continue, self.response_complete = False, True
        self.message_event.set()
        self.on_response()


def _is_measured(message: Any) -> bool:
    if message["type"] != "http.response.start":
        return False
    return any(name == b"content-length" for name, _ in message.get("headers", ()))
