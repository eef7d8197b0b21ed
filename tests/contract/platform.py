"""All three services on one Redis with a clock in the test's hand, and the shortest way to ask each of them."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec

from paceline.alerts.channels import Channel
from paceline.alerts.loop import Alerts
from paceline.dispatcher.fleet import FleetWatch
from paceline.dispatcher.guard import SmartGuard
from paceline.dispatcher.loops import Engine
from paceline.dispatcher.measures import DispatcherMeasures, tell_engine
from paceline.dispatcher.pacer import Pacer
from paceline.dispatcher.roster import Roster
from paceline.dispatcher.router import Router
from paceline.dispatcher.scheduler import Scheduler
from paceline.edge import Keys, Limits, digest
from paceline.gateway.intake import Intake
from paceline.gateway.measures import GatewayMeasures
from paceline.gateway.media import MediaDesk
from paceline.gateway.outlets import Outlets
from paceline.kits.media_store import MediaFiles
from paceline.kits.rng import new_rng
from paceline.kits.safe_http import SafeHttp
from paceline.kits.secrets import derive
from paceline.orchestrator.app import Terms, WorkerGate
from paceline.orchestrator.desk import Desk
from paceline.orchestrator.inbound import Inbound
from paceline.orchestrator.measures import OrchestratorMeasures
from paceline.orchestrator.registry import Registry
from paceline.orchestrator.routes_audit import AuditPages
from paceline.orchestrator.runners.base import RunnerAway
from paceline.orchestrator.settling import Settling
from paceline.orchestrator.waiters import Waiters
from paceline.policy.alerts import AlertRules
from paceline.policy.facts import Rules
from paceline.policy.retry import RetrySettings
from paceline.policy.trust import parse
from paceline.settings import read_policy
from paceline.store.client import RedisLink
from paceline.store.guards import ApiKeyRecord
from paceline.store.rows import Marks, Pace
from paceline.store.scripts import ScriptConfig
from paceline.store.store import Store
from paceline.telemetry.fleet import FleetReadings
from paceline.telemetry.service import new_metrics, watch_requests

from . import documented
from .standins import MAKERS, Served

NOON = 1_773_136_800_000
"""Tuesday, 10 March 2026, noon in Jerusalem: everybody in these tests is awake."""
DAY_MS = 86_400_000
PHONE = "972541234567"
OTHER_PHONE = "972541234568"
FRIEND = "972529876543"
SESSION = "s1"
ADMIN_KEY = "contract-admin-key-canary-1"
SEND_KEY = "contract-send-key-canary-22"
READ_KEY = "contract-read-key-canary-33"
WEBHOOK_SECRET = "contract-webhook-secret-canary"
INSTANCE, JOURNAL = "instance-1", "journal-1"
LIMITS = Limits(per_key=6_000, all_keys=60_000)
"""The defaults of the settings. In production only the gateway counts."""


class HandClock:
    def __init__(self) -> None:
        self.at_ms = NOON

    def now_ms(self) -> int:
        return self.at_ms

    async def sleep_ms(self, ms: int) -> None:
        await asyncio.sleep(0)

    def forward(self, ms: int) -> None:
        self.at_ms += ms


class Platform:
    def __init__(
        self, url: str, *, policy: str = "default", limits: Limits = LIMITS, channels: Sequence[Channel] = ()
    ) -> None:
        self.link = RedisLink(url)
        self.clock = HandClock()
        self._words = 0
        self.rules = Rules(parse(read_policy(policy)))
        self.store = Store(self.link, ScriptConfig(lead_ms=self.rules.lead_ms))
        self.keys = Keys(self.store, self.clock, limits, self.clock.now_ms)
        self.metrics = {name: new_metrics() for name in ("gateway", "dispatcher", "orchestrator")}
        self._folder = tempfile.TemporaryDirectory(prefix="paceline-media-")
        self.files = MediaFiles(Path(self._folder.name))
        self.media = MediaDesk(self.store, self.files, in_thread=asyncio.to_thread)
        told = GatewayMeasures(self.metrics["gateway"], self.store, self.clock, log_messages=False)
        self.intake = Intake(
            self.store, self.rules, new_rng(1), media=self.media, breathe=lambda: asyncio.sleep(0), measures=told
        )
        # Receivers in tests are on this machine.
        self.webhook_http = SafeHttp(allow_private=True)
        self.outlets = Outlets.of(
            self.store, self.clock, new_rng(5), new_id=self.intake.new_job_id, http=self.webhook_http, measures=told
        )
        dispatching = DispatcherMeasures(self.metrics["dispatcher"], self.store, log_messages=False)
        self.engine = Engine(
            [Router(self.store, FleetWatch(self.store, self.rules, route_ahead=200), measures=dispatching)],
            Pacer(self.store, self.rules, new_rng(2), handoff_ttl_ms=60_000, measures=dispatching),
            Scheduler(self.store),
            SmartGuard(self.store, self.rules, enabled=True, tick_ms=10_000),
            Roster(self.store, self.rules),
        )
        tell_engine(self.engine, self.metrics["dispatcher"])
        self.measures = OrchestratorMeasures(self.metrics["orchestrator"], self.store, log_messages=False)
        self.metrics["orchestrator"].read(FleetReadings(self.store, self.rules, self.clock).read)
        self.settling = Settling(self.store, RetrySettings(), measures=self.measures)
        self.waiters = Waiters(self.store)
        self.audit_path = Path(self._folder.name) / "audit.sqlite"
        self.alerts = Alerts(self.store.alerts, channels, AlertRules(), holder="contract")
        self.printed: list[str] | None = []
        """What workers printed; None is an engine that does not answer."""
        self.desk = Desk(self.store, self.rules, lease_ms=120_000, measures=self.measures)
        self.inbound = Inbound(self.store, self.settling)
        self.registry = Registry(self.store, new_rng(3), simulated_only=policy == "demo")
        self.gate = WorkerGate(WEBHOOK_SECRET)
        self.terms = Terms(lease_ms=120_000, typing_ms=self.rules.policy.typing_ms, unknown_grace_ms=10_000)
        self.audit = AuditPages(self.audit_path, asyncio.to_thread)
        self.rng = new_rng(4)
        self.services = {name: Served(name, self) for name in MAKERS}
        for name, service in self.services.items():
            watch_requests(service, self.metrics[name])
        self._clients = {name: client_of(name, service) for name, service in self.services.items()}

    async def logs(self, session: str, lines: int) -> list[str]:
        if self.printed is None:
            raise RunnerAway("the engine is away")
        return self.printed[-lines:]

    @property
    def gateway(self) -> httpx.AsyncClient:
        return self._clients["gateway"]

    @property
    def dispatcher(self) -> httpx.AsyncClient:
        return self._clients["dispatcher"]

    @property
    def orchestrator(self) -> httpx.AsyncClient:
        return self._clients["orchestrator"]

    def client(self, name: str) -> httpx.AsyncClient:
        return self._clients[name]

    async def open(self) -> None:
        for name, key in (("bootstrap", ADMIN_KEY), ("sender", SEND_KEY), ("reader", READ_KEY)):
            scopes = {"bootstrap": ["send", "read", "admin"], "sender": ["send"], "reader": ["read"]}[name]
            await self.store.guards.save_key(ApiKeyRecord(name, digest(key.encode()), scopes))

    async def close(self) -> None:
        for client in self._clients.values():
            await client.aclose()
        await self.link.close()
        self._folder.cleanup()

    # What is stored

    async def snapshot(self) -> dict[str, Any]:
        """Every key with its value; equal snapshots mean that nothing was stored or changed."""
        names = sorted((await self.link.read(("KEYS", "*")))[0])
        return {name: await self._value(name) for name in names}

    async def _value(self, name: str) -> Any:
        kind = (await self.link.read(("TYPE", name)))[0]
        command = {
            "string": ("GET", name),
            "hash": ("HGETALL", name),
            "list": ("LRANGE", name, 0, -1),
            "set": ("SMEMBERS", name),
            "zset": ("ZRANGE", name, 0, -1, "WITHSCORES"),
            "stream": ("XRANGE", name, "-", "+"),
        }[kind]
        return (await self.link.read(command))[0]

    @asynccontextmanager
    async def nothing_stored(self) -> AsyncIterator[None]:
        before = await self.snapshot()
        yield
        assert await self.snapshot() == before, "something was stored"

    # The fleet

    async def register(self, session: str = SESSION, phone: str = PHONE, *, age_days: int = 30) -> None:
        body = {"sessionId": session, "phone": phone, "createdAt": self.clock.at_ms - age_days * DAY_MS}
        answer = await self.orchestrator.post("/api/sessions", json=body)
        assert answer.status_code == 201, answer.text

    async def connect(self, session: str = SESSION, phone: str = PHONE) -> int:
        """Registered, greeted and connected; the epoch."""
        await self.register(session, phone)
        epoch: int = (await self.hello(session)).json()["epoch"]
        answer = await self.webhook("CONNECTED", session=session)
        assert answer.status_code == 200, answer.text
        return epoch

    async def dispatch(self) -> None:
        """Route and pace what is due now."""
        for _ in range(4):
            for step in (self.engine.routers[0].step, self.engine.scheduler.step, self.engine.pacer.step):
                await step(self.clock.at_ms)

    # A worker's calls

    async def worker(
        self, path: str, body: Any, *, session: str = SESSION, secret: str | None = None
    ) -> httpx.Response:
        header = {"X-Webhook-Secret": derive(WEBHOOK_SECRET, session) if secret is None else secret}
        return await self.orchestrator.post(path, json=body, headers=header)

    async def hello(
        self, session: str = SESSION, instance: str = INSTANCE, journal: str = JOURNAL, *, life: str = ""
    ) -> httpx.Response:
        body = {"instanceId": instance, "journalId": journal, "driver": "simulated"}
        if life:
            body["lifeId"] = life
        return await self.worker(f"/api/worker/sessions/{session}/hello", body, session=session)

    async def outbox(self, verb: str, body: Any, session: str = SESSION) -> httpx.Response:
        return await self.worker(f"/api/worker/sessions/{session}/outbox/{verb}", body, session=session)

    async def pace(self, phone: str = PHONE, *, failures: str = "", **fields: str) -> None:
        """Its number has come so far in its day."""
        await self.link.read(
            ("HSET", "phones:pace", phone, Pace(**fields).line),
            ("HSET", "phones:marks", phone, Marks(failures=failures).text),
        )

    async def claim(self, epoch: int = 1, *, session: str = SESSION, seconds: int = 0) -> dict[str, Any]:
        answer = await self.outbox(f"claim?timeout={seconds}", {"epoch": epoch}, session)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def webhook(
        self,
        event: str,
        data: dict[str, Any] | None = None,
        *,
        session: str = SESSION,
        at_ms: int | None = None,
        id_: str = "",
    ) -> httpx.Response:
        """A word of its own, unless it has a name."""
        self._words += 1
        timestamp = self.clock.at_ms if at_ms is None else at_ms
        body = {"sessionId": session, "event": event, "data": data or {}, "timestamp": timestamp}
        body["eventId"] = id_ or f"word-{self._words}"
        return await self.worker("/api/webhook", body, session=session)

    # A caller's calls

    async def post_job(self, **fields: Any) -> dict[str, Any]:
        answer = await self.gateway.post("/v1/jobs", json={"contacts": [FRIEND], "text": "hello", **fields})
        assert answer.status_code == 202, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def claimed(self) -> dict[str, Any]:
        """One message of a fresh job in a worker's hands: the claim's answer."""
        await self.connect()
        await self.post_job()
        await self.dispatch()
        claim = await self.claim()
        assert claim["task"], claim
        return claim

    async def message(self, task_id: str) -> dict[str, Any]:
        answer = await self.gateway.get(f"/api/v1/messages/{task_id}/status")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found


def client_of(name: str, service: Served) -> httpx.AsyncClient:
    """Asks that service, and looks whether each answer is one its document has."""

    async def check(answer: httpx.Response) -> None:
        await documented.check(name, service, answer)

    transport = httpx.ASGITransport(service)
    return httpx.AsyncClient(
        transport=transport,
        base_url="http://paceline",
        headers={"X-API-KEY": ADMIN_KEY},
        event_hooks={"response": [check]},
    )


def error_of(answer: httpx.Response) -> dict[str, Any]:
    """The error, after a look at its shape."""
    body = answer.json()
    assert set(body) == {"error"}, body
    error: dict[str, Any] = body["error"]
    assert {"code", "message", "details"} <= set(error) <= {"code", "message", "details", "retryAfterSeconds"}
    assert isinstance(error["details"], dict)
    return error


def refused(answer: httpx.Response, status: int, code: str, field: str | None = None) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    error = error_of(answer)
    assert error["code"] == code, error
    if field is not None:
        assert error["details"].get("field") == field, error
    return error


def big_job(count: int) -> bytes:
    return msgspec.json.encode({"contacts": [str(972_540_000_000 + i) for i in range(count)], "text": "hello"})
