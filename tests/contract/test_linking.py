"""Linking over HTTP: QR codes as JSON and pictures, pairing codes, logout; and that no code is kept or written down."""

import asyncio
import io
import xml.etree.ElementTree as ET
import zlib
from typing import Any

import httpx
import pytest
import segno

from paceline.orchestrator.linking import CODE_BYTES, LONGEST_MS
from paceline.orchestrator.qr import QR_BORDER, QR_SCALE

from .platform import NOON, SESSION, Platform, refused

PATH = f"/api/sessions/{SESSION}"
QR = "https://wa.me/settings/linked_devices#2@CANARY-qr-text,noise,identity,adv,1"
CODE = "CANA-RYPC"


@pytest.fixture
async def unlinked(platform: Platform) -> Platform:
    """A worker that shows a QR code."""
    await platform.register()
    await platform.hello()
    answer = await platform.webhook("QR", {"qr": QR, "expiresInMs": 20_000, "epoch": 1})
    assert answer.status_code == 200, answer.text
    return platform


async def qr(platform: Platform, accept: str = "*/*", **params: str) -> httpx.Response:
    return await platform.orchestrator.get(f"{PATH}/qr", headers={"Accept": accept}, params=params)


async def view(platform: Platform) -> dict[str, Any]:
    found: dict[str, Any] = (await platform.orchestrator.get(PATH)).json()
    return found


async def commands(platform: Platform, epoch: int = 1) -> list[dict[str, Any]]:
    answer = await platform.outbox("claim?timeout=0", {"epoch": epoch, "commandsOnly": True})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["commands"]
    return found


async def told(platform: Platform) -> list[dict[str, Any]]:
    """What the worker is told once the request that is under way has got there."""
    while not (found := await commands(platform)):  # noqa: ASYNC110 - the other side is a task of this very loop
        await asyncio.sleep(0)
    return found


async def done(platform: Platform, command: str, *, ok: bool = True, **data: Any) -> None:
    answer = await platform.webhook("COMMAND_DONE", {"commandId": command, "ok": ok, "epoch": 1, **data})
    assert answer.status_code == 200, answer.text


def png_modules(content: bytes) -> list[list[bool]]:
    """The modules of a PNG as segno writes it: one bit a pixel, no interlacing."""
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    chunks, at = {}, 8
    while at < len(content):
        size, name = int.from_bytes(content[at : at + 4]), content[at + 4 : at + 8]
        chunks[name] = chunks.get(name, b"") + content[at + 8 : at + 8 + size]
        at += 12 + size
    width, height, depth = (int.from_bytes(chunks[b"IHDR"][a:b]) for a, b in ((0, 4), (4, 8), (8, 9)))
    assert depth == 1
    line = 1 + (width + 7) // 8
    pixels = zlib.decompress(chunks[b"IDAT"])
    rows: list[bytes] = []
    for i in range(height):
        kind, row = pixels[i * line], pixels[i * line + 1 : (i + 1) * line]
        # 0: as it is; 2: what is added to the row above.
        rows.append(row if kind == 0 else bytes((a + b) % 256 for a, b in zip(rows[-1], row, strict=True)))
        assert kind in (0, 2)
    middles = [(QR_BORDER + i) * QR_SCALE + QR_SCALE // 2 for i in range(width // QR_SCALE - 2 * QR_BORDER)]
    # Grey: 0 is black.
    return [[not rows[y][x // 8] >> (7 - x % 8) & 1 for x in middles] for y in middles]


class TestQr:
    async def test_as_json(self, unlinked: Platform) -> None:
        answer = await qr(unlinked)
        assert answer.json() == {"status": "ok", "qr": QR, "expiresAt": NOON + 20_000}
        assert answer.headers["cache-control"] == "no-store"
        known = await view(unlinked)
        assert (known["status"], known["connection"], known["authorisation"]) == ("SCAN_QR", "SCAN_QR", "UNLINKED")

    @pytest.mark.parametrize(
        ("accept", "params", "kind"),
        [
            ("image/png", {}, "image/png"),
            ("image/svg+xml", {}, "image/svg+xml"),
            ("text/html, image/svg+xml;q=0.9", {}, "image/svg+xml"),
            ("application/json", {"format": "png"}, "image/png"),
            ("image/png", {"format": "json"}, "application/json"),
            ("text/html", {}, "application/json"),
        ],
    )
    async def test_the_caller_chooses(self, unlinked: Platform, accept: str, params: dict[str, str], kind: str) -> None:
        answer = await qr(unlinked, accept, **params)
        assert (answer.status_code, answer.headers["content-type"].split(";")[0]) == (200, kind)
        assert answer.headers["cache-control"] == "no-store"

    async def test_the_picture_is_the_code(self, unlinked: Platform) -> None:
        """Read back pixel by pixel: exactly the modules of that text, with their white border."""
        expected = [[bool(module) for module in row] for row in segno.make(QR, micro=False).matrix]
        assert png_modules((await qr(unlinked, format="png")).content) == expected
        other = [[bool(module) for module in row] for row in segno.make(QR + "x", micro=False).matrix]
        assert other != expected

    async def test_the_drawing_is_the_code(self, unlinked: Platform) -> None:
        drawn = ET.parse(io.BytesIO((await qr(unlinked, format="svg")).content)).getroot()
        expected = io.BytesIO()
        segno.make(QR, micro=False).save(expected, kind="svg", scale=QR_SCALE, border=QR_BORDER)
        assert ET.tostring(drawn) == ET.tostring(ET.fromstring(expected.getvalue()))

    @pytest.mark.parametrize("text", ["x" * CODE_BYTES, "ä" * (CODE_BYTES // 2)], ids=["letters", "other letters"])
    async def test_whatever_a_worker_may_show_can_be_drawn(self, unlinked: Platform, text: str) -> None:
        """A text of 4,096 characters was once taken, and its picture was a 500: no QR code holds so many."""
        assert (await unlinked.webhook("QR", {"qr": text, "epoch": 1}, id_="e2")).status_code == 200
        for kind in ("json", "png", "svg"):
            assert (await qr(unlinked, format=kind)).status_code == 200

    async def test_a_code_is_shown_as_long_as_it_is_valid(self, unlinked: Platform) -> None:
        unlinked.clock.forward(20_000)
        refused(await qr(unlinked), 404, "NO_QR")

    async def test_the_next_one_takes_its_place(self, unlinked: Platform) -> None:
        await unlinked.webhook("QR", {"qr": "next", "epoch": 1}, id_="e2")
        assert (await qr(unlinked)).json()["qr"] == "next"

    async def test_none_is_shown_yet(self, platform: Platform) -> None:
        await platform.register()
        refused(await qr(platform), 404, "NO_QR")

    async def test_none_for_a_linked_session_or_a_stopped_one(self, platform: Platform) -> None:
        await platform.connect()
        refused(await qr(platform), 409, "ALREADY_LINKED")
        await platform.orchestrator.post(f"{PATH}/logout")
        await done(platform, (await commands(platform))[0]["id"])
        refused(await qr(platform), 409, "NOT_RUNNING")

    async def test_a_picture_of_another_kind_is_refused(self, unlinked: Platform) -> None:
        refused(await qr(unlinked, format="gif"), 400, "INVALID_REQUEST", "format")

    @pytest.mark.parametrize(
        ("data", "field"),
        [
            ({}, "data.qr"),
            ({"qr": ""}, "data.qr"),
            ({"qr": 5}, "data.qr"),
            ({"qr": "x" * (CODE_BYTES + 1)}, "data.qr"),
            ({"qr": "€" * 1_000}, "data.qr"),
            ({"qr": "x", "expiresInMs": 0}, "data.expiresInMs"),
            ({"qr": "x", "expiresInMs": LONGEST_MS + 1}, "data.expiresInMs"),
            ({"qr": "x", "expiresInMs": "soon"}, "data.expiresInMs"),
        ],
    )
    async def test_a_worker_that_shows_nonsense_is_told(
        self, platform: Platform, data: dict[str, Any], field: str
    ) -> None:
        await platform.register()
        answer = await platform.webhook("QR", data)
        assert (answer.status_code, answer.json()["error"]["details"]["field"]) == (400, field)


class TestPairing:
    async def test_the_caller_waits_for_the_workers_code(self, unlinked: Platform) -> None:
        asking = asyncio.create_task(unlinked.orchestrator.post(f"{PATH}/pairing-code"))
        found = await told(unlinked)
        assert [command["kind"] for command in found] == ["pair"]
        await done(unlinked, found[0]["id"], pairingCode=CODE, expiresInMs=60_000)
        unlinked.waiters.wake(f"linking:{SESSION}")
        answer = await asking
        assert (answer.status_code, answer.json()) == (200, {"status": "ok", "code": CODE, "expiresAt": NOON + 60_000})
        assert answer.headers["cache-control"] == "no-store"
        assert await commands(unlinked) == []
        again = await unlinked.orchestrator.post(f"{PATH}/pairing-code")
        assert again.json()["code"] == CODE, "one that is valid is given again"

    async def test_a_worker_that_gets_none_says_why(self, unlinked: Platform) -> None:
        asking = asyncio.create_task(unlinked.orchestrator.post(f"{PATH}/pairing-code"))
        found = await told(unlinked)
        await done(unlinked, found[0]["id"], ok=False, error="too many tries")
        unlinked.waiters.wake(f"linking:{SESSION}")
        error = refused(await asking, 409, "NO_PAIRING_CODE")
        assert "too many tries" in error["message"]
        assert (await view(unlinked))["lastCommand"]["ok"] is False

    async def test_not_for_a_linked_session(self, platform: Platform) -> None:
        await platform.connect()
        async with platform.nothing_stored():
            refused(await platform.orchestrator.post(f"{PATH}/pairing-code"), 409, "ALREADY_LINKED")

    async def test_not_for_a_stopped_one(self, unlinked: Platform) -> None:
        await unlinked.orchestrator.post(f"{PATH}/stop")
        refused(await unlinked.orchestrator.post(f"{PATH}/pairing-code"), 409, "NOT_RUNNING")


class TestSecrets:
    async def test_codes_are_in_no_history_and_gone_after_use(self, unlinked: Platform) -> None:
        """Everything Redis holds is searched after the session is linked, and the events before."""
        given = await unlinked.store.fleet.give_command(
            SESSION, "pair", command_id="c1", until_ms=NOON + 1_000, by="k", now_ms=NOON
        )
        assert given.code == "OK"
        await done(unlinked, "c1", pairingCode=CODE)
        events = (await unlinked.orchestrator.get(f"{PATH}/events")).text
        assert "COMMAND_DONE" in events
        assert "CANARY-qr" not in events
        assert CODE not in events
        await unlinked.webhook("CONNECTED", {"epoch": 1}, id_="e3")
        kept = str(await unlinked.snapshot())
        assert "CANARY-qr" not in kept
        assert CODE not in kept


class TestLogout:
    async def test_an_operators_logout(self, platform: Platform) -> None:
        """202 with the command; the worker hears of it, tells the end, and is told to go. No quarantine, no alarm."""
        epoch = await platform.connect()
        given = await platform.orchestrator.post(f"{PATH}/logout")
        assert given.status_code == 202
        command = given.json()
        assert (command["kind"], command["expiresAt"]) == ("logout", NOON + 120_000)
        again = (await platform.orchestrator.post(f"{PATH}/logout")).json()
        assert again["commandId"] == command["commandId"]
        told = (await platform.claim(epoch))["commands"]
        assert [(one["id"], one["kind"]) for one in told] == [(command["commandId"], "logout")]
        for _ in range(2):
            await done(platform, command["commandId"])
        known = await view(platform)
        assert (known["status"], known["desired"], known["restriction"]) == ("LOGGED_OUT", "stopped", "NONE")
        assert known["lastCommand"]["ok"] is True
        refused(await platform.outbox("claim?timeout=0", {"epoch": epoch}), 409, "NOT_WANTED")
        started = (await platform.orchestrator.post(f"{PATH}/start")).json()["session"]
        assert (started["status"], started["authorisation"]) == ("STARTING", "UNLINKED")

    async def test_a_waiting_worker_hears_at_once(self, platform: Platform) -> None:
        epoch = await platform.connect()
        waiting = asyncio.create_task(platform.claim(epoch, seconds=20))
        while not platform.waiters._waiting:  # noqa: ASYNC110 - the application has no event for its first look
            await asyncio.sleep(0)
        await platform.orchestrator.post(f"{PATH}/logout")
        await platform.waiters.check(NOON)
        assert [command["kind"] for command in (await waiting)["commands"]] == ["logout"]

    async def test_not_what_is_not_linked(self, unlinked: Platform) -> None:
        refused(await unlinked.orchestrator.post(f"{PATH}/logout"), 409, "NOT_LINKED")

    async def test_logged_out_by_the_phone_is_a_quarantine(self, platform: Platform) -> None:
        await platform.connect()
        await platform.webhook("DISCONNECTED", {"code": 401, "epoch": 1})
        known = await view(platform)
        assert (known["status"], known["failedReason"]) == ("QUARANTINED", "LOGGED_OUT")


class TestBlockedAndScan:
    async def test_a_blocked_link_waits_for_an_operator(self, unlinked: Platform) -> None:
        await unlinked.webhook("LINK_BLOCKED", {"reason": "try later", "epoch": 1}, id_="e2")
        known = await view(unlinked)
        assert (known["status"], known["failedReason"]) == ("LINK_BLOCKED", "LINK_BLOCKED")
        refused(await qr(unlinked), 409, "NOT_RUNNING")
        started = (await unlinked.orchestrator.post(f"{PATH}/start")).json()["session"]
        assert (started["status"], started["authorisation"]) == ("STARTING", "UNLINKED")

    async def test_scanning_a_simulated_one(self, unlinked: Platform) -> None:
        given = await unlinked.orchestrator.post(f"{PATH}/simulated/scan")
        assert (given.status_code, given.json()["kind"]) == (202, "scan")
        assert [command["kind"] for command in await commands(unlinked)] == ["scan"]

    async def test_scanning_any_other_is_for_its_phone(self, unlinked: Platform) -> None:
        await unlinked.link.read(("HSET", f"session:{SESSION}", "driver", "baileys"))
        refused(await unlinked.orchestrator.post(f"{PATH}/simulated/scan"), 409, "NOT_SIMULATED")

    @pytest.mark.parametrize("data", [{}, {"commandId": ""}, {"commandId": 5}])
    async def test_an_end_of_nothing(self, platform: Platform, data: dict[str, Any]) -> None:
        await platform.register()
        answer = await platform.webhook("COMMAND_DONE", data)
        assert (answer.status_code, answer.json()["error"]["details"]["field"]) == (400, "data.commandId")
