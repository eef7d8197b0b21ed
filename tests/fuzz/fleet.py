"""What an operator and a runner do while requests come: sessions that a case stopped, moved or removed run again, one
session waits to be linked, there are proxies and profiles, and the audit trail follows. Neighbour: `stage`.
"""

from typing import Any

from contract.platform import DAY_MS, PHONE, SESSION, Platform
from paceline.alerts.channels import DELIVERED, Outcome
from paceline.orchestrator.audit import AuditFollower, AuditThread
from paceline.orchestrator.audit_db import AuditDb
from paceline.policy.alert_kinds import Severity
from paceline.store.fleet import AllocationLimits

from .steering import Known

SECOND_SESSION, SECOND_PHONE = "s2", "972541234568"
UNLINKED_SESSION, UNLINKED_PHONE = "s3", "972541234569"
OURS = {SESSION: PHONE, SECOND_SESSION: SECOND_PHONE, UNLINKED_SESSION: UNLINKED_PHONE}
LONG_AGO = 3
"""Lives after which nobody asks for a session any more that a case has made."""
PATIENCE = 20
"""Tries until the last message of a removed session has ended."""


class Deaf:
    """A channel for alerts that leads nowhere."""

    name = "deaf"

    async def send(self, _text: str, _severity: Severity) -> Outcome:
        return DELIVERED


class Fleet:
    def __init__(self, platform: Platform, known: Known) -> None:
        self._platform = platform
        self._known = known
        self._lives = 0
        self._strangers: dict[str, int] = {}
        """Sessions that cases have made, and in which life they were seen first."""
        self._audit_db: AuditDb | None = None
        self._follower: AuditFollower | None = None

    async def live(self) -> None:
        self._lives += 1
        await self._remove_strangers()
        await self._stock()
        for session, phone in OURS.items():
            await self._keep(session, phone)
        await self._show_codes()
        await self._follow()

    def close(self) -> None:
        if self._audit_db is not None:
            self._audit_db.close()

    async def finish_removals(self) -> None:
        """As the provisioner does once a worker is gone."""
        platform = self._platform
        found = (await platform.orchestrator.get("/api/sessions?status=REMOVING&limit=1000")).json()["items"]
        for view in found:
            for _ in range(PATIENCE):
                done = await platform.store.fleet.finish_removal(view["sessionId"], now_ms=platform.clock.now_ms())
                if done.code != "BUSY":
                    break
                platform.clock.forward(60_000)
                await platform.settling.sweep(platform.clock.now_ms())
            assert done.code in ("OK", "GONE"), f"{view['sessionId']}: {done.code}"

    async def _remove_strangers(self) -> None:
        found = (await self._platform.orchestrator.get("/api/sessions?limit=1000")).json()["items"]
        ids = {view["sessionId"] for view in found} - OURS.keys()
        self._strangers = {session: self._strangers.get(session, self._lives) for session in ids}
        for session, since in self._strangers.items():
            if since + LONG_AGO <= self._lives:
                await self._platform.orchestrator.delete(f"/api/sessions/{session}?force=true")
        await self.finish_removals()

    async def _keep(self, session: str, phone: str) -> None:
        """Registered and running, with a worker that has said hello."""
        platform, path = self._platform, f"/api/sessions/{session}"
        view = await platform.orchestrator.get(path)
        if view.status_code == 404:
            await self._make_room(phone)
            proxy = {"proxy": self._known["proxy_id"]} if session == SECOND_SESSION else {}
            body = {"sessionId": session, "phone": phone, "createdAt": platform.clock.at_ms - 30 * DAY_MS, **proxy}
            made = await platform.orchestrator.post("/api/sessions", json=body)
            if made.status_code != 201:  # Its number keeps another proxy.
                body.pop("proxy", None)
                made = await platform.orchestrator.post("/api/sessions", json=body)
            assert made.status_code == 201, made.text
        for wish in ("start", "resume"):
            answer = await platform.orchestrator.post(f"{path}/{wish}")
            assert answer.status_code == 200, answer.text
        now = (await platform.orchestrator.get(path)).json()
        instance = f"{session}-{now['generation']}"
        begun = await platform.store.fleet.begin_start(
            session,
            generation=now["generation"],
            instance=instance,
            limits=AllocationLimits(),
            now_ms=platform.clock.now_ms(),
        )
        if session == SESSION:
            self._known["instanceId"] = instance
        if begun.code in ("OK", "AGAIN"):
            answer = await platform.hello(session, instance)
            assert answer.status_code == 200, answer.text
        if session != UNLINKED_SESSION:
            await platform.webhook("CONNECTED", session=session)

    async def _make_room(self, phone: str) -> None:
        found = (await self._platform.orchestrator.get(f"/api/sessions?phone={phone}")).json()["items"]
        for view in found:
            await self._platform.orchestrator.delete(f"/api/sessions/{view['sessionId']}?force=true")
        await self.finish_removals()

    async def _show_codes(self) -> None:
        """A QR code, and in every other life a pairing code, too."""
        platform, session = self._platform, UNLINKED_SESSION
        code = {"qr": f"2@made-up-{self._lives}", "expiresInMs": 60_000}
        await platform.webhook("QR", code, session=session)
        self._known |= {"unlinked": session}
        if self._lives % 2:
            await platform.store.fleet.give_command(
                session, "pair", command_id=f"c-{self._lives}", until_ms=platform.clock.now_ms() + 9_000, by="fuzz",
                now_ms=platform.clock.now_ms(),
            )  # fmt: skip
            view = await platform.store.sessions.get(session, now_ms=platform.clock.now_ms())
            assert view is not None
            claim = await platform.outbox("claim?timeout=0", {"epoch": view.epoch, "commandsOnly": True}, session)
            for command in claim.json()["commands"]:
                data: dict[str, Any] = {"commandId": command["id"], "ok": True}
                if command["kind"] == "pair":
                    data |= {"pairingCode": "MADE-UP1", "expiresInMs": 10_000}
                await platform.webhook("COMMAND_DONE", data, session=session)

    async def _stock(self) -> None:
        """A proxy and a profile that are there; whoever was removed is followed by another."""
        lines = {
            "proxies": f"http://user:password@h{self._lives}.example:8080",
            "profiles": f'{{"displayName": "n{self._lives}", "timezone": "Asia/Jerusalem"}}',
        }
        for kind, name, field in (("proxies", "proxy_id", "proxyId"), ("profiles", "profile_id", "profileId")):
            ids = await self._ids(kind, field)
            if self._known.get(name) not in ids:
                file = {"file": ("list.txt", lines[kind].encode(), "text/plain")}
                answer = await self._platform.orchestrator.post(f"/upload/{kind}", files=file)
                assert answer.json()["added"] == 1, answer.text
                (added,) = await self._ids(kind, field) - ids
                self._known[name] = added
            self._known[name.removesuffix("_id")] = self._known[name]
        await self._platform.orchestrator.post(f"/api/proxies/{self._known['proxy_id']}/ok")

    async def _ids(self, kind: str, field: str) -> set[str]:
        found: set[str] = set()
        cursor: str | None = "0"
        while cursor is not None:
            page = (await self._platform.orchestrator.get(f"/api/{kind}?limit=1000&cursor={cursor}")).json()
            found |= {item[field] for item in page["items"]}
            cursor = page["nextCursor"]
        return found

    async def _follow(self) -> None:
        if self._follower is None:
            self._audit_db = AuditDb(self._platform.audit_path)
            self._follower = AuditFollower(self._platform.store, self._audit_db, kept_days=365, in_thread=AuditThread())
        await self._follower.step(self._platform.clock.now_ms())
