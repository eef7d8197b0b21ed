"""What people outside the platform know of a run: what they pressed and when it was answered, what workers told, and
which orders went over the wire to Redis. The judges hold the ledger against this, never against the platform's books.

A thing that took time is known by two moments: it had not happened before `began` and had happened by `ended`.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from paceline.policy.pacing import PacerFields
from paceline.store.rows import task_of
from paceline.testing.plans import JobPlan

if TYPE_CHECKING:
    from paceline.testing.fleet import Life

TAPPED = frozenset(
    (
        "hand_plain",
        "hand_off",
        "claim_outbox",
        "route_chunk",
        "accept_send",
        "set_rpm",
        "set_pacer",
        "guard_change",
        "settle_task",
        "stop_received",
    )
)
_FIELDS = {
    "minDelayMs": "min_delay_ms",
    "maxDelayMs": "max_delay_ms",
    "burstLimit": "burst_limit",
    "burstCooldownMs": "burst_cooldown_ms",
    "rpm": "rpm",
}


class Claim(msgspec.Struct, frozen=True):
    """A worker was given a task; `asked` is the moment its gate looked at."""

    at: int
    asked: int
    task: str
    session: str


class Placed(msgspec.Struct, frozen=True):
    """A task was routed to a number, handed over or parked there."""

    at: int
    task: str
    phone: str
    reason: str = ""
    """Why it was parked."""
    asked: int = 0


class Terms(msgspec.Struct, frozen=True):
    """What operators and SmartGuard had set for a number from this moment on."""

    at: int
    override: int | None = None
    source: str = ""
    fields: PacerFields = PacerFields()


class GuardChange(msgspec.Struct, frozen=True):
    at: int
    asked: int
    phone: str
    rpm: int | None
    terms: Terms
    """Those it was laid upon."""


class Settled(msgspec.Struct, frozen=True):
    """A refusal was settled: `code` is what the server had said."""

    at: int
    asked: int
    task: str
    code: str


class Told(msgspec.Struct, frozen=True):
    """A worker's word about its number that was answered: a limit, a ban, somebody who wrote."""

    kind: str
    phone: str
    began: int
    ended: int
    stated: int
    until: int = 0
    who: str = ""
    heard: int = 0
    """By the clock of the orchestrator, which may have been set back."""
    first_heard: int = 0
    """The same when it was told first; it may have been heard then, and only the answer was lost."""
    session: str = ""
    epoch: int = 0
    word: str = ""
    """Its name: a copy has the same one."""


class Pressed(msgspec.Struct):
    """A deed of an operator; without an answer nobody knows whether it was done."""

    kind: str
    which: str
    began: int
    ended: int | None = None
    ok: bool = False


class Outside:
    def __init__(self, phone_of: dict[str, str], jobs: dict[str, JobPlan]) -> None:
        """`jobs`: what was accepted. Who says stop is answered by a job that nobody posted."""
        self.phone_of = phone_of
        self._jobs = jobs
        self.claims: list[Claim] = []
        self.handed: list[Placed] = []
        self._last_with: dict[str, str] = {}
        """The number a task was last handed to."""
        self.parked: list[Placed] = []
        self.routed: list[Placed] = []
        self.terms: dict[str, list[Terms]] = defaultdict(lambda: [Terms(0)])
        self.guard_changes: list[GuardChange] = []
        self.settled: list[Settled] = []
        self.told: list[Told] = []
        self.wrote: list[tuple[str, str, int]] = []
        """Who wrote to which number, and when a worker began to tell it: the answer may have been lost for good."""
        self.pressed: list[Pressed] = []
        self.suppressed_at: dict[str, int] = {}
        """Since when it is certain that somebody must not be written to."""
        self.said_stop: set[str] = set()
        """Whose stop word a worker began to tell."""
        self.confirmations: list[Placed] = []
        self.hung: list[tuple[Life, int]] = []
        """Workers that stood still for hours, and since when, by a clock that nobody sets."""
        self.proven: list[tuple[str, str]] = []
        """Message and state, of every proof that was answered."""

    def tap(self, name: str, argument: bytes, answer: str | list[str], now_ms: int) -> None:
        """One order to Redis, carried out at this moment."""
        order = msgspec.msgpack.decode(argument)
        if name == "hand_plain":
            self._hand_plain(order, [int(place) for place in answer], now_ms)
            return
        if name == "hand_off":
            self._hand_off(order, list(answer), now_ms)
            return
        if isinstance(answer, list):
            (order,), (answer,) = order["orders"], answer
        if '"code":"OK"' not in answer:
            return
        if name == "stop_received":
            order["confirmed"] = '"confirmed":true' in answer
        if name == "route_chunk":
            order["applied"] = msgspec.json.decode(answer)["cursor"]
        getattr(self, f"_{name}")(order, now_ms)

    def press(self, kind: str, which: str, now_ms: int) -> Pressed:
        deed = Pressed(kind, which, now_ms)
        self.pressed.append(deed)
        return deed

    def presses(self, *kinds: str, which: str | None = None) -> list[Pressed]:
        return [deed for deed in self.pressed if deed.kind in kinds and which in (None, deed.which)]

    def terms_during(self, phone: str, from_ms: int, to_ms: int) -> list[Terms]:
        """All that were in force at some moment of this time."""
        known = self.terms[phone]
        return [
            terms
            for terms, after in zip(known, [*(terms.at for terms in known[1:]), to_ms + 1], strict=True)
            if terms.at <= to_ms and after >= from_ms
        ]

    # What each order means

    def _claim_outbox(self, order: dict[str, Any], now_ms: int) -> None:
        self.claims.append(Claim(now_ms, order["now"], order["task"], order["session"]))

    def _hand_plain(self, batch: dict[str, Any], left: list[int], now_ms: int) -> None:
        for place, (phone, task) in enumerate(zip(batch["phones"], batch["tasks"], strict=True), start=1):
            if place not in left:
                self._went_over(task, phone, now_ms)

    def _hand_off(self, batch: dict[str, Any], codes: list[str], now_ms: int) -> None:
        for (phone, _, _, steps, _, final), code in zip(batch["orders"], codes, strict=True):
            # One may be refused after its steps were made.
            if code not in ("STALE", "CLOCK_BACK"):
                self._handed(phone, steps or (), final if code == "OK" else ["refused"], batch["now"], now_ms)

    def _handed(self, phone: str, steps: Sequence[Any], final: list[Any], asked_ms: int, now_ms: int) -> None:
        for step in steps:
            if step["kind"] == "park":
                task = task_of(step["entry"])
                self.parked.append(Placed(now_ms, task, phone, step["reason"], asked_ms))
        if final[0] == "send":
            self._went_over(final[2], phone, now_ms)

    def _went_over(self, task: str, phone: str, now_ms: int) -> None:
        self.handed.append(Placed(now_ms, task, phone))
        self._last_with[task] = phone

    def _settle_task(self, order: dict[str, Any], now_ms: int) -> None:
        if order["outcome"] == "parked":
            phone = self._last_with[order["task"]]
            self.parked.append(Placed(now_ms, order["task"], phone, order.get("reason", ""), order["now"]))
        elif order["outcome"] in ("retry", "failed"):
            _, repeat, refused = order.get("message", "").partition("a repeat was refused: ")
            code = refused if repeat else order.get("code", "")
            self.settled.append(Settled(now_ms, order["now"], order["task"], code))

    def _route_chunk(self, order: dict[str, Any], now_ms: int) -> None:
        for item in order["tasks"]:
            if "phone" in item and item["index"] < order["applied"]:
                self.routed.append(Placed(now_ms, f"{order['job']}:{item['index']}", item["phone"]))

    def _accept_send(self, order: dict[str, Any], now_ms: int) -> None:
        self.routed.append(Placed(now_ms, f"{order['job']}:0", order["phone"]))

    def _stop_received(self, order: dict[str, Any], now_ms: int) -> None:
        if not order.get("confirmed"):
            return
        confirm, phone = order["confirm"], self.phone_of[order["session"]]
        job = msgspec.json.decode(confirm["json"])
        self.confirmations.append(Placed(now_ms, confirm["task"], phone))
        self.routed.append(self.confirmations[-1])
        self._jobs[confirm["job"]] = JobPlan(
            name=confirm["job"], at_ms=now_ms, contacts=[confirm["to"]], priority=confirm["priority"],
            on_unknown="resend", validity_seconds=job["validitySeconds"], single=True, phone=phone, says=job["text"],
        )  # fmt: skip

    def _set_rpm(self, order: dict[str, Any], now_ms: int) -> None:
        rpm = order.get("rpm")
        self._change(self.phone_of[order["session"]], now_ms, override=rpm, source="" if rpm is None else "manual")

    def _set_pacer(self, order: dict[str, Any], now_ms: int) -> None:
        phone = self.phone_of[order["session"]]
        changes: dict[str, int | None] = {_FIELDS[name]: None for name in order["remove"]}
        changes |= {_FIELDS[name]: value for name, value in order["set"].items()}
        self._change(phone, now_ms, fields=msgspec.structs.replace(self.terms[phone][-1].fields, **changes))

    def _guard_change(self, order: dict[str, Any], now_ms: int) -> None:
        phone, rpm = order["phone"], order.get("rpm")
        self.guard_changes.append(GuardChange(now_ms, order["now"], phone, rpm, self.terms[phone][-1]))
        self._change(phone, now_ms, override=rpm, source="" if rpm is None else "smartguard")

    def _change(self, phone: str, now_ms: int, **changes: Any) -> None:
        self.terms[phone].append(msgspec.structs.replace(self.terms[phone][-1], at=now_ms, **changes))
