"""Whoever scans for `up --fake-whatsapp`: every code that is shown, for as long as it runs."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paceline.launcher import fake_whatsapp
from paceline.launcher.client import ApiError
from paceline.launcher.data import DataDirectory
from paceline.launcher.errors import UsageError
from paceline.launcher.fake_whatsapp import FakeWhatsApp, Scanner
from paceline.launcher.preflight import UpOptions, check_fake_whatsapp
from paceline.settings import UpSettings, load

from .support import until


class Sessions:
    """An orchestrator with these sessions; the first look at it fails, as when it is being restarted."""

    def __init__(self) -> None:
        self.codes: dict[str, str | None] = {}
        self.looks = 0

    async def sessions(self, *, connection: str) -> list[dict[str, Any]]:
        assert connection == "SCAN_QR"
        self.looks += 1
        if self.looks == 1:
            raise ApiError("being restarted")
        others = [{"sessionId": "sim-1", "phone": "1", "driver": "simulated"}]
        return others + [{"sessionId": name, "phone": f"p-{name}", "driver": "baileys"} for name in self.codes]

    async def qr(self, session_id: str) -> str | None:
        return self.codes[session_id]


class Phones:
    def __init__(self, links: Callable[[str], object]) -> None:
        self.scans: list[tuple[str, str]] = []
        self._links = links

    async def scan(self, qr: str, phone: str) -> bool:
        self.scans.append((qr, phone))
        self._links(phone.removeprefix("p-"))
        return True


async def test_every_code_is_scanned_by_its_own_phone_also_of_sessions_that_come_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fake_whatsapp, "SCAN_SECONDS", 0.001)
    platform = Sessions()
    platform.codes = {"wa-1": "code-1", "wa-2": None}
    phones = Phones(platform.codes.pop)
    scanner = asyncio.create_task(Scanner(platform, phones, "baileys").run())  # type: ignore[arg-type]
    await until(lambda: phones.scans == [("code-1", "p-wa-1")])
    platform.codes.update({"wa-2": "code-2", "mine": "code-3"})
    await until(lambda: len(phones.scans) == 3)
    scanner.cancel()
    assert sorted(phones.scans) == [("code-1", "p-wa-1"), ("code-2", "p-wa-2"), ("code-3", "p-mine")]


async def test_what_workers_are_told_leads_to_where_it_listens(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    server = FakeWhatsApp(tmp_path / "worker-baileys", data, 7_000)
    command = list(server.child({}).command)
    assert command[1] == str(tmp_path / "worker-baileys" / "dist" / "fake-whatsapp" / "main.js")
    assert [command[command.index(f"--{name}") + 1] for name in ("port", "admin-port", "media-port")] == [
        "7000", "7001", "7002"
    ]  # fmt: skip
    told = server.for_workers()
    assert told["WHATSAPP_URL"] == "ws://127.0.0.1:7000/ws/chat?session={session}&phone={phone}"
    assert told["NODE_EXTRA_CA_CERTS"].startswith(command[command.index("--keys") + 1])
    assert load(UpSettings, whatsapp_url=told["WHATSAPP_URL"], webhook_secret="x" * 16, api_key="y" * 16)
    await server.close()


@pytest.mark.parametrize(
    ("network", "reason"),
    [
        pytest.param("paceline-workers", "RUNNER is docker", id="a network of their own"),
        # The next thing that is looked at: there is no build here.
        pytest.param("host", "cannot be run", id="the host's, and so its loopback"),
    ],
)
def test_containers_reach_it_on_the_hosts_network_alone(network: str, reason: str, tmp_path: Path) -> None:
    settings = load(
        UpSettings,
        runner="docker",
        worker_network=network,
        baileys_path=tmp_path,
        webhook_secret="x" * 16,
        api_key="y" * 16,
    )
    with pytest.raises(UsageError, match=reason):
        check_fake_whatsapp(UpOptions(driver="baileys", fake_whatsapp=True), settings)
