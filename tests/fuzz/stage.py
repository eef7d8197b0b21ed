"""The three services behind real sockets in a thread of their own, and a life that goes on meanwhile: sessions stay
connected, jobs are routed, tasks lie ready to be claimed.

Nothing leaves the machine: names have no address here, so neither a webhook's nor a file's URL is ever called.
"""

import asyncio
import logging
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis
import structlog
import uvicorn

from contract.platform import FRIEND, PHONE, SESSION, Platform
from contract.uploads import PNG
from lua.servers import LiveServer, start_redis
from paceline.edge import Limits
from paceline.kits.http import HEAD_SLACK
from paceline.kits.http_protocol import Protocol
from paceline.kits.safe_http import SafeHttp
from paceline.kits.service import HEAD_LIMIT
from paceline.orchestrator import linking

from .fleet import SECOND_SESSION, Deaf, Fleet
from .steering import PUBLIC_URL, Known

STEP_MS = 1_500
"""Between two requests, so that a minute has fewer than the sixty failures after which an address is told to wait."""
LIFE_EVERY = 20
"""Requests between two moments in which the platform does its own work."""


async def _nowhere(_host: str, _port: int) -> list[str]:
    raise OSError("names have no address here")


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, up: asyncio.Event) -> None:
        super().__init__(config)
        self._is_up = up

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._is_up.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # Signals are the main thread's.


class Stage:
    def __init__(self, url: str) -> None:
        self.platform = Platform(url, limits=Limits(per_key=0, all_keys=0), channels=[Deaf()])
        self.platform.media._http = SafeHttp(resolve=_nowhere)
        self.platform.webhook_http._resolve = _nowhere
        # A stream says hello and ends, instead of lasting a quarter of an hour.
        self.platform.outlets.live._life_ms = 0
        self.urls: dict[str, str] = {}
        self.server_errors: list[str] = []
        self.known: Known = {}
        self.fleet = Fleet(self.platform, self.known)
        self.life_goes_on = True
        """Off while a bug is planted that the life would meet first."""
        self._asked = 0
        self._people = 0
        self._servers: list[uvicorn.Server] = []
        self._up: dict[str, asyncio.Event] = {}

    async def run(self, ready: threading.Event) -> None:
        await self.platform.open()
        ref = (await self.platform.gateway.post("/v1/media", content=PNG, headers={"Content-Type": "image/png"})).json()
        hook = {"url": PUBLIC_URL, "events": ["*"]}
        webhook = (await self.platform.gateway.post("/v1/webhooks", json=hook)).json()
        self.known |= {"mediaRef": ref["mediaRef"], "ref": ref["mediaRef"], "url": PUBLIC_URL}
        self.known |= {"webhook_id": webhook["webhookId"], "session_id": SESSION, "sessionId": SESSION, "phone": PHONE}
        await self._live()
        self._up = {name: asyncio.Event() for name in self.platform.services}
        serving = [asyncio.create_task(self._serve(name)) for name in self.platform.services]
        await asyncio.gather(*(up.wait() for up in self._up.values()))
        ready.set()
        await asyncio.gather(*serving)
        self.fleet.close()
        await self.platform.close()

    def stop(self) -> None:
        for server in self._servers:
            server.should_exit = True

    async def _serve(self, name: str) -> None:
        # The protocol by name: without it asyncio leaves Nagle on, and every answer takes 40 ms.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.bind(("127.0.0.1", 0))
        self.urls[name] = f"http://127.0.0.1:{listener.getsockname()[1]}"
        config = uvicorn.Config(
            self._stepping(name),
            http=Protocol,
            h11_max_incomplete_event_size=HEAD_LIMIT + HEAD_SLACK,
            log_config=None,
            access_log=False,
            lifespan="off",
        )
        server = _Server(config, self._up[name])
        self._servers.append(server)
        with listener:
            await server.serve(sockets=[listener])

    def _stepping(self, name: str) -> Any:
        service = self.platform.services[name]

        async def app(scope: Any, receive: Any, send: Any) -> None:
            async def sending(message: Any) -> None:
                if message["type"] == "http.response.start" and message["status"] >= 500:
                    self.server_errors.append(f"{name} {scope['method']} {scope['path']}: {message['status']}")
                await send(message)

            self.platform.clock.forward(STEP_MS)
            self._asked += 1
            if self._asked % LIFE_EVERY == 0 and self.life_goes_on:
                await self._live()
            await service(scope, receive, sending)
            if scope["method"] == "DELETE" and scope["path"].startswith("/api/sessions/"):
                await self.fleet.finish_removals()

        return app

    async def _live(self) -> None:
        """An operator sets right what a case did to the fleet, somebody sends a job, a worker claims one message."""
        platform = self.platform
        for path in ("/start", "/fleet/resume"):
            await platform.dispatcher.post(path)
        await self.fleet.live()
        for session in (SESSION, SECOND_SESSION):
            await platform.dispatcher.post(f"/sessions/{session}/queue/requeue")
        await platform.gateway.delete(f"/v1/suppressions/{FRIEND}")
        self._people += 3
        people = [f"97252{self._people + i:07d}" for i in range(3)]
        job = await platform.post_job(contacts=people, sessionId=SESSION)
        self.known |= {"job_id": job["jobId"], "jobId": job["jobId"], "message_id": f"{job['jobId']}:1"}
        self.known |= {"to": people[0], "key_id": "reader"}
        await platform.dispatch()
        await self._claim()

    async def _claim(self) -> None:
        view = await self.platform.store.sessions.get(SESSION, now_ms=self.platform.clock.now_ms())
        assert view is not None
        self.known["epoch"] = view.epoch
        held = await self.platform.claim(view.epoch)
        if held["task"]:
            names = ("taskId", "token", "whatsappId")
            self.known |= {name: held["task"][name] for name in names} | {"raw": held["raw"]}
            if self._people % 2:  # Every other message is given up, so that there are dead letters.
                error = {"code": "NOT_ON_WHATSAPP", "message": "no"}
                word = {"raw": held["raw"], "epoch": view.epoch, "error": error, "notSent": True}
                await self.platform.outbox("nack", word)
                self.known["letter_id"] = held["task"]["taskId"]
        for name, value in (("taskId", f"{self.known['job_id']}:0"), ("token", 1), ("whatsappId", "3EB0")):
            self.known.setdefault(name, value)


@contextmanager
def _quiet() -> Iterator[None]:
    """Thousands of requests are thousands of lines, which nobody reads."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    servers = logging.getLogger("uvicorn.error")
    level = servers.level
    servers.setLevel(logging.ERROR)
    try:
        yield
    finally:
        servers.setLevel(level)
        structlog.configure(**before)


@contextmanager
def _impatient() -> Iterator[None]:
    """Nobody waits for a pairing code: it is there, or it is not."""
    before = linking.PAIRING_WAIT_MS
    linking.PAIRING_WAIT_MS = 0
    try:
        yield
    finally:
        linking.PAIRING_WAIT_MS = before


@contextmanager
def stage() -> Iterator[Stage]:
    with _quiet(), _impatient(), tempfile.TemporaryDirectory(prefix="paceline-") as folder:
        process, path = start_redis("embedded", folder)
        server = LiveServer("embedded", path, redis.Redis(unix_socket_path=path, decode_responses=True))
        made, ready = Stage(server.url), threading.Event()
        thread = threading.Thread(target=lambda: asyncio.run(made.run(ready)), name="fuzz", daemon=True)
        thread.start()
        try:
            assert ready.wait(30), "the services did not come up"
            yield made
        finally:
            made.stop()
            thread.join(30)
            server.client.close()
            process.terminate()
            process.wait()
