"""A customer's receiver of webhooks on this machine: takes whatever comes, and keeps it with its signature checked."""

import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from standardwebhooks.webhooks import Webhook


class Receiver:
    """`secret` is what the platform gave out for it; without one nothing is taken."""

    def __init__(self) -> None:
        self.secret = ""
        self.events: list[dict[str, Any]] = []
        self.posts: Counter[str] = Counter()
        """By `webhook-id`: how often each came."""
        self.forged: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/hook"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def of(self, type_: str, job_id: str) -> set[str]:
        """The messages of a job, or the job itself, that an event of that type was about."""
        found = [event["data"] for event in list(self.events) if event["type"] == type_]
        return {data.get("messageId", data["jobId"]) for data in found if data.get("jobId") == job_id}

    def take(self, headers: dict[str, str], body: bytes) -> None:
        name = headers["webhook-id"]
        try:
            event: dict[str, Any] = Webhook(self.secret).verify(body, headers)
        except Exception:
            self.forged.append(name)
            return
        self.posts[name] += 1
        self.events.append(event)


def _handler(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.take({name.lower(): value for name, value in self.headers.items()}, body)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Nothing: what came is looked at, not read."""

    return Handler
