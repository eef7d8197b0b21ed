"""The orchestrator's HTTP: what workers ask and say, and the registry for operators."""

import hmac
from itertools import count
from typing import Annotated, Any

from litestar import get, post
from litestar.params import FromPath, QueryParameter

from paceline.alerts.loop import Alerts
from paceline.apidoc import KEY, WORKER_SECRET
from paceline.domain.errors import Conflict, Unauthorized
from paceline.domain.failures import UNKNOWN_OUTCOME
from paceline.domain.ids import whatsapp_id
from paceline.edge import Keys, holder, service
from paceline.kits.clock import Clock, monotonic_ms
from paceline.kits.media_store import MediaFiles
from paceline.kits.metrics import Metrics
from paceline.kits.secrets import derive
from paceline.kits.service import Service
from paceline.kits.web import AnyRequest, Handler, read_body
from paceline.orchestrator import protocol
from paceline.orchestrator.desk import Claim, Desk
from paceline.orchestrator.enqueue import Enqueue, EnqueueBody, Enqueued
from paceline.orchestrator.inbound import Inbound, WorkerEvent
from paceline.orchestrator.inventory import Inventory, InventoryRules
from paceline.orchestrator.linking import Linking
from paceline.orchestrator.protocol import (
    AckBody,
    ClaimAnswer,
    ClaimBody,
    EventBody,
    ExtendAnswer,
    ExtendBody,
    HelloAnswer,
    HelloBody,
    NackBody,
    StateAnswer,
    TypingWindow,
)
from paceline.orchestrator.reference import REFERENCE
from paceline.orchestrator.registry import Registry
from paceline.orchestrator.routes_alerts import alert_routes
from paceline.orchestrator.routes_audit import AuditPages, audit_route
from paceline.orchestrator.routes_inventory import inventory_routes
from paceline.orchestrator.routes_logs import ReadLogs, logs_route, no_logs
from paceline.orchestrator.routes_media import media_route
from paceline.orchestrator.routes_sessions import session_routes, until_gone
from paceline.orchestrator.settling import Settling, Word
from paceline.orchestrator.waiters import Waiters
from paceline.store.outbox import Outbox
from paceline.store.store import Store
from paceline.telemetry.service import metrics_route, new_metrics

_WORKER: dict[str, Any] = {"status_code": 200, "tags": ["Workers"], "security": WORKER_SECRET}
_PATH = "/api/worker/sessions/{session_id:str}"

Timeout = Annotated[int, QueryParameter(ge=0, le=30, description="seconds to wait for a task")]


class WorkerGate:
    """Each session has a secret of its own, derived from ours: a worker can speak for no other."""

    def __init__(self, master: str) -> None:
        self._master = master

    def check(self, request: AnyRequest, session: str) -> None:
        presented = request.headers.get("x-webhook-secret", "")
        if not hmac.compare_digest(derive(self._master, session).encode(), presented.encode("latin-1")):
            raise Unauthorized("UNAUTHORIZED", "X-Webhook-Secret is not that of this session")


def create_app(
    *,
    store: Store,
    desk: Desk,
    settling: Settling,
    inbound: Inbound,
    registry: Registry,
    waiters: Waiters,
    gate: WorkerGate,
    keys: Keys,
    clock: Clock,
    terms: "Terms",
    media: MediaFiles,
    inventory: Inventory | None = None,
    audit: AuditPages | None = None,
    alerts: Alerts | None = None,
    logs: ReadLogs = no_logs,
    metrics: Metrics | None = None,
) -> Service:
    return service(
        name="orchestrator",
        description="Knows the sessions, hands tasks to their workers and settles what became of them.",
        reference=REFERENCE,
        routes=[
            *session_routes(registry, Linking(store, registry.rng, waiters), audit, keys, clock),
            logs_route(registry, logs, keys, clock),
            *_desk_routes(desk, waiters, gate, clock, terms),
            *_settling_routes(store.outbox, settling, gate, clock),
            media_route(store.media, media, gate.check),
            _enqueue(Enqueue(store), keys, clock),
            *inventory_routes(inventory or Inventory(store, InventoryRules()), keys, clock),
            *([audit_route(audit, keys)] if audit else []),
            *(alert_routes(alerts, keys) if alerts else []),
            _webhook(inbound, gate, clock),
            metrics_route(metrics or new_metrics(), keys),
            _health(store),
        ],
    )


class Terms:
    """What a worker is told once, at hello."""

    def __init__(self, *, lease_ms: int, typing_ms: tuple[int, int], unknown_grace_ms: int) -> None:
        self.lease_ms = lease_ms
        self.typing = TypingWindow(*typing_ms)
        self.unknown_grace_ms = unknown_grace_ms


def _desk_routes(desk: Desk, waiters: Waiters, gate: WorkerGate, clock: Clock, terms: Terms) -> list[Handler]:
    @post(f"{_PATH}/hello", summary="A worker begins", opt={"body": HelloBody}, **_WORKER)
    async def hello(request: AnyRequest, session_id: FromPath[str]) -> HelloAnswer:
        """Gives the worker its epoch, and the tasks it must answer for from its journal."""
        gate.check(request, session_id)
        body, now_ms = await read_body(request, HelloBody), clock.now_ms()
        welcome = await desk.hello(
            session_id, body.instance_id, body.journal_id, life=body.life_id or "", now_ms=now_ms
        )
        return HelloAnswer(
            welcome.epoch,
            now_ms,
            terms.lease_ms,
            terms.typing,
            terms.unknown_grace_ms,
            protocol.pending_of(welcome.pending),
            welcome.commands,
        )

    @post(f"{_PATH}/outbox/claim", summary="The next task", opt={"body": ClaimBody}, **_WORKER)
    async def claim(
        request: AnyRequest,
        session_id: FromPath[str],
        timeout: Timeout = 20,  # noqa: ASYNC109 - the caller's word for how long it waits
    ) -> ClaimAnswer:
        """A long poll. The task comes under a lease; `raw` names the claim in ack, nack and extend. Who asks is
        connected; a worker that is not asks with `commandsOnly`."""
        gate.check(request, session_id)
        body, began_ms = await read_body(request, ClaimBody), monotonic_ms()
        looks = count()
        given = await waiters.poll(
            session_id,
            lambda: desk.claim(
                session_id,
                body.epoch,
                now_ms=clock.now_ms(),
                commands_only=body.commands_only,
                again=next(looks) > 0,
            ),
            found=lambda answer: not answer.is_empty,
            timeout_ms=timeout * 1000,
            until_gone=lambda: until_gone(request),
        )
        given = given or Claim()
        return ClaimAnswer(
            task=given.task,
            raw=protocol.raw_of(given.task) if given.task else None,
            pending=protocol.pending_of(given.pending),
            commands=given.commands,
            now_ms=clock.now_ms(),
            waited_ms=monotonic_ms() - began_ms,
        )

    @post(f"{_PATH}/outbox/extend", summary="Keep a lease", opt={"body": ExtendBody}, **_WORKER)
    async def extend(request: AnyRequest, session_id: FromPath[str]) -> ExtendAnswer:
        """For a send that takes longer than its lease. 409 once the claim is another's: then it must not go out."""
        gate.check(request, session_id)
        body = await read_body(request, ExtendBody)
        spoken = protocol.spoken_of(body)
        until = await desk.extend(session_id, body.epoch, spoken.task, spoken.token, now_ms=clock.now_ms())
        return ExtendAnswer(lease_until_ms=until)

    return [hello, claim, extend]


def _settling_routes(outbox: Outbox, settling: Settling, gate: WorkerGate, clock: Clock) -> list[Handler]:
    @post(f"{_PATH}/outbox/ack", summary="It went out", opt={"body": AckBody}, **_WORKER)
    async def ack(request: AnyRequest, session_id: FromPath[str]) -> StateAnswer:
        """A fact with a `whatsappId`, whoever brings it. Without one it needs the token of the present claim."""
        gate.check(request, session_id)
        body = await read_body(request, AckBody)
        spoken = protocol.spoken_of(body)
        wire_id = body.whatsapp_id
        if wire_id is None:
            facts = await outbox.facts(spoken.task)
            if facts.token != spoken.token:
                raise Conflict(
                    "STALE_TOKEN", "not the present claim; say the whatsappId it went out under", field="raw"
                )
            wire_id = whatsapp_id(spoken.task)
        state = await settling.sent(session_id, spoken.task, wire_id, now_ms=clock.now_ms())
        return StateAnswer(state=state)

    @post(f"{_PATH}/outbox/nack", summary="It did not go out, or nobody knows", opt={"body": NackBody}, **_WORKER)
    async def nack(request: AnyRequest, session_id: FromPath[str]) -> StateAnswer:
        """Without an error: back to the head. With `notSent: true`: refused for certain. Else its end is unknown."""
        gate.check(request, session_id)
        body = await read_body(request, NackBody)
        spoken = protocol.spoken_of(body)
        word, now_ms = Word(session_id, body.epoch, spoken.task, spoken.token), clock.now_ms()
        error = body.error
        if error is None and body.not_sent is not False:
            state = await settling.returned(word, now_ms=now_ms)
        elif error is not None:
            state = await settling.failed(
                word, error.code, error.message, not_sent=body.not_sent is True, now_ms=now_ms
            )
        else:
            state = await settling.unknown(word, UNKNOWN_OUTCOME, now_ms=now_ms)
        return StateAnswer(state=state)

    return [ack, nack]


def _enqueue(outboxes: Enqueue, keys: Keys, clock: Clock) -> Handler:
    @post(
        "/api/sessions/{session_id:str}/outbox/enqueue",
        summary="Put a message into a session's outbox",
        opt={"body": EnqueueBody},
        status_code=200,
        guards=[keys.requires("send")],
        security=KEY,
        tags=["Sessions"],
    )
    async def enqueue(request: AnyRequest, session_id: FromPath[str]) -> Enqueued:
        """The dispatcher's hand-overs go straight in; messages of others wait for their number's pace. The same
        `taskId` twice is one task."""
        body = await read_body(request, EnqueueBody)
        return await outboxes.enqueue(session_id, body, by=holder(request), now_ms=clock.now_ms())

    return enqueue


def _webhook(inbound: Inbound, gate: WorkerGate, clock: Clock) -> Handler:
    @post("/api/webhook", summary="What a worker reports", opt={"body": EventBody}, **_WORKER)
    async def webhook(request: AnyRequest) -> dict[str, str]:
        """Repeated and out-of-order events do no harm."""
        body, now_ms = await read_body(request, EventBody, any_text=True), clock.now_ms()
        gate.check(request, body.session_id)
        event = WorkerEvent(body.session_id, body.event, body.timestamp, body.event_id, body.data)
        await inbound.receive(event, now_ms=now_ms)
        return {"status": "ok"}

    return webhook


def _health(store: Store) -> Handler:
    @get("/health", summary="Is it working?", tags=["Service"], security=[], opt={"any_query": True})
    async def health() -> dict[str, str]:
        """Open to everybody. 503 while the store does not answer."""
        await store.outbox.waiting(["-"])
        return {"status": "ok"}

    return health
