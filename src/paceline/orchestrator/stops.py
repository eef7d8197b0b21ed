"""What follows when somebody writes stop: they are on the list at once and are told so once.

Where nobody can tell whose number that was, an operator is told. Neighbour: `inbound` hears what people write.
"""

from collections.abc import Iterable

import msgspec
import structlog

from paceline.domain.ids import derived_job_id
from paceline.domain.jobs import Job
from paceline.kits.logging import request_id
from paceline.policy import stopwords
from paceline.policy.alert_kinds import last_four
from paceline.store.caller import Answer
from paceline.store.guards import Suppression
from paceline.store.store import Store

log = structlog.stdlib.get_logger(__name__)

SOURCE = "inbound"
CONFIRMATION_PRIORITY = 3
"""Before all that waits for the number, at its pace: an answer that comes tomorrow is no answer."""
CONFIRMATION_VALIDITY_S = 86_400
"""Counted from when they wrote. A stop that reaches us later than that is obeyed and not answered."""
ID_LIMIT = 128

_OF_MANY = ("@g.us", "@broadcast", "@newsletter")
"""How addresses of many people end: what is said there is not said to us."""


class StopRules:
    """What says stop, and what is answered; an empty answer is none."""

    def __init__(self, confirmation: str = "", extra_words: Iterable[str] = ()) -> None:
        self.confirmation = confirmation
        self.words = stopwords.vocabulary(extra_words)


class Stop(msgspec.Struct, frozen=True):
    """A message that says stop."""

    session: str
    sender: str
    """As WhatsApp names them."""
    whatsapp_id: str
    at_ms: int


class Stops:
    """Everything about a stop follows from the message's id, so a repeat finds it done."""

    def __init__(self, store: Store, rules: StopRules) -> None:
        self._people = store.people
        self._rules = rules

    def says_stop(self, text: str) -> bool:
        return stopwords.says_stop(text, self._rules.words)

    async def heard(self, stop: Stop, person: str, phone: str, *, now_ms: int) -> Answer:
        stop_id = derived_job_id("stop", person, stop.whatsapp_id)
        job = self._confirmation(stop_id, stop, phone, now_ms)
        entry = Suppression(person, now_ms, "stop", SOURCE, job.task_id(0) if job else None)
        return await self._people.stop(stop.session, stop_id, entry, job=job, now_ms=now_ms)

    async def unresolved(self, stop: Stop, *, now_ms: int) -> Answer:
        """Somebody must not be written to any more and we do not know their number; an operator finds it in the
        chat."""
        if stop.sender.endswith(_OF_MANY):
            return Answer("OK")
        shown = last_four(stop.sender)
        log.error("a stop word of a sender without a number", session_id=stop.session, sender=shown)
        return await self._people.stop_unresolved(
            stop.session,
            derived_job_id("stop", stop.sender, stop.whatsapp_id),
            sender=shown,
            whatsapp_id=stop.whatsapp_id[:ID_LIMIT],
            at_ms=stop.at_ms,
            now_ms=now_ms,
        )

    def _confirmation(self, job_id: str, stop: Stop, phone: str, now_ms: int) -> Job | None:
        left_s = CONFIRMATION_VALIDITY_S - (now_ms - stop.at_ms) // 1000
        if not self._rules.confirmation or left_s <= 0:
            return None
        return Job(
            job_id=job_id,
            total=1,
            text=self._rules.confirmation,
            accepted_at=now_ms,
            accepted_by=SOURCE,
            priority=CONFIRMATION_PRIORITY,
            phone=phone,
            session_id=stop.session,
            validity_seconds=left_s,
            single=True,
            confirmation=True,
            request_id=request_id(),
        )
