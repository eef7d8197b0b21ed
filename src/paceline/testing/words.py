"""What workers tell, on its way to the orchestrator: it comes, comes twice, or comes long after newer words.

A word that is late was given up by its worker, who tells it again; so the second arrives before the first.
"""

import msgspec

from paceline.domain.errors import RequestError, Unavailable
from paceline.orchestrator.inbound import Inbound, WorkerEvent, heard_at
from paceline.policy import stopwords
from paceline.testing.outside import Outside, Told
from paceline.testing.sim import Sim
from paceline.testing.steps import Pause, Process, ProcessDied

LATEST_MS = 900_000
"""So long a word may be under way."""
_BANS = (401, 402, 403, 406)
_PROOFS = {"MESSAGE_SENT": "sent", "MESSAGE_DELIVERED": "delivered", "MESSAGE_READ": "read"}
_SAYS_STOP = stopwords.says_stop
"""As it is now: what is planted later must not change what people outside know."""
_WORDS = stopwords.vocabulary(())


class Words:
    def __init__(self, sim: Sim, session: str, server: Process, inbound: Inbound, outside: Outside) -> None:
        self._sim = sim
        self._session = session
        self._server = server
        self._inbound = inbound
        self._outside = outside
        self._first_told: dict[str, tuple[int, int]] = {}

    async def tell(self, event: WorkerEvent) -> None:
        now_ms = self._sim.time_of(self._server)
        began, first_heard = self._first_told.setdefault(event.event_id, (self._sim.now_ms, now_ms))
        if event.event == "MESSAGE_RECEIVED":
            self._outside.wrote.append((self._phone, str(event.data["from"]), self._sim.now_ms))
        if says_stop(event):
            self._outside.said_stop.add(str(event.data["from"]))
        await self._inbound.receive(event, now_ms=now_ms)
        self._note(event, began, first_heard, now_ms)

    def comes_late(self, event: WorkerEvent) -> None:
        self._sim.start(self._server, self._arrive(event))

    async def _arrive(self, event: WorkerEvent) -> None:
        await Pause(self._sim.now_ms + self._sim.rng.randrange(LATEST_MS))
        try:
            await self.tell(event)
        except (RequestError, Unavailable, ProcessDied):
            return

    @property
    def _phone(self) -> str:
        return self._outside.phone_of[self._session]

    def _note(self, event: WorkerEvent, began: int, first_heard: int, heard: int) -> None:
        """It was answered, so from now on the platform knows."""
        data, now_ms = event.data, self._sim.now_ms
        told = Told(
            event.event, self._phone, began, now_ms, heard_at(event, now_ms=heard), heard=heard,
            first_heard=first_heard, session=self._session, epoch=int(data.get("epoch", 0)), word=event.event_id,
        )  # fmt: skip
        if event.event in _PROOFS:
            self._outside.proven.append((str(data["messageId"]), _PROOFS[event.event]))
            return
        if says_stop(event):
            self._outside.suppressed_at.setdefault(str(data["from"]), now_ms)
        if event.event == "RESTRICTION":
            told = msgspec.structs.replace(told, kind=data["kind"], until=data.get("until") or 0)
        elif event.event == "MESSAGE_RECEIVED":
            told = msgspec.structs.replace(told, kind="RECEIVED", who=data["from"])
        elif event.event == "DISCONNECTED" and data.get("code") in _BANS:
            told = msgspec.structs.replace(told, kind="BANNED")
        else:
            return
        self._outside.told.append(told)


def says_stop(event: WorkerEvent) -> bool:
    return event.event == "MESSAGE_RECEIVED" and _SAYS_STOP(str(event.data.get("text", "")), _WORDS)
