"""The fake WhatsApp of `paceline up --fake-whatsapp`, and whoever scans the QR codes there.

It is a program for Node.js in `worker-baileys/`; we start it like any child and speak to its admin API. Real workers
show it real QR codes; the scanner stands for the people with their phones. Neighbours: `up` starts both, `client` reads
the codes.
"""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import structlog

from paceline.kits.node import node_path
from paceline.launcher.children import ChildSpec
from paceline.launcher.client import ApiError, PlatformClient
from paceline.launcher.data import DataDirectory

log = structlog.stdlib.get_logger(__name__)

NAME = "fake-whatsapp"
SCRIPT = Path("dist", "fake-whatsapp", "main.js")
HOST = "127.0.0.1"
"""Always: it has no keys, and whoever reaches it can write as any number."""

SCAN_SECONDS = 0.5
"""Between two looks for codes. Each is shown for twenty seconds at least."""
CALL_SECONDS = 20.0


class FakeWhatsApp:
    """Its command, its addresses, and the calls we make to it."""

    def __init__(self, folder: Path, data: DataDirectory, first_port: int) -> None:
        self.ports = (first_port, first_port + 1, first_port + 2)
        self.admin_url = f"http://{HOST}:{first_port + 1}"
        self._script = folder / SCRIPT
        self._home = data.root / NAME
        # No key of ours in it, and no proxy of the environment: it is on this machine.
        self._http = httpx.AsyncClient(timeout=httpx.Timeout(CALL_SECONDS), trust_env=False)

    async def close(self) -> None:
        await self._http.aclose()

    def child(self, env: dict[str, str]) -> ChildSpec:
        """Ports that stay the same: after a restart of it the workers find it, and their links, where they were."""
        self._home.mkdir(mode=0o700, exist_ok=True)
        options = {
            "port": self.ports[0],
            "admin-port": self.ports[1],
            "media-port": self.ports[2],
            "ledger": self._home / "ledger.jsonl",
            "state": self._home / "state.jsonl",
            "keys": self._home / "keys",
        }
        given = [str(part) for name, value in options.items() for part in (f"--{name}", value)]
        return ChildSpec(NAME, [node_path(), str(self._script), *given], env)

    def for_workers(self) -> dict[str, str]:
        """What the orchestrator is told so that its workers come here, under names that the ledger shows."""
        return {
            "WHATSAPP_URL": f"ws://{HOST}:{self.ports[0]}/ws/chat?session={{session}}&phone={{phone}}",
            "NODE_EXTRA_CA_CERTS": str(self._home / "keys" / "tls-ca.pem"),
        }

    async def is_ready(self) -> bool:
        try:
            answer = await self._http.get(f"{self.admin_url}/health", timeout=2)
        except httpx.HTTPError:
            return False
        return answer.status_code == httpx.codes.OK

    async def scan(self, qr: str, phone: str) -> bool:
        """Whether it was linked. A code that was replaced meanwhile is not; the next look finds the new one."""
        try:
            answer = await self._http.post(f"{self.admin_url}/scan", json={"qr": qr, "phone": phone})
        except httpx.HTTPError:
            return False
        return answer.is_success


class Scanner:
    """Scans every code that a session shows, now and later: whoever adds a number over the API finds it linked."""

    def __init__(self, client: PlatformClient, whatsapp: FakeWhatsApp, driver: str) -> None:
        self._client = client
        self._whatsapp = whatsapp
        self._driver = driver

    async def run(self) -> None:
        while True:
            try:
                showing = await self._client.sessions(connection="SCAN_QR")
                await asyncio.gather(*(self._scan(one) for one in showing if one["driver"] == self._driver))
            except ApiError as error:
                # A service that is being restarted; the codes are still there afterwards.
                log.debug("no look for codes", reason=str(error))
            await asyncio.sleep(SCAN_SECONDS)

    async def _scan(self, session: dict[str, Any]) -> None:
        qr = await self._client.qr(session["sessionId"])
        if qr is not None:
            linked = await self._whatsapp.scan(qr, session["phone"])
            log.info("a code was scanned", session_id=session["sessionId"], linked=linked)
