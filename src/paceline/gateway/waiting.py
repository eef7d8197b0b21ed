"""Why something has not gone yet: of all that holds it, the reason a caller can do most with, and its sentence.

The reasons were written with the waits (for a message, its job, its number); here the one that counts now is chosen.
"""

from collections.abc import Mapping

import msgspec

from paceline.domain.ids import parse_task_id
from paceline.domain.reasons import Reason
from paceline.domain.states import WAITING, Byte, JobState
from paceline.gateway.views import Waiting
from paceline.policy import explain, hours
from paceline.store.jobs import JobView, MessageView
from paceline.store.queues import QueueItem

_STILL_TO_GO = ("queued", "scheduled", "parked", "retrying")

Known = Mapping[str, str]


class Why(msgspec.Struct, frozen=True):
    reason: str
    until_ms: int | None = None


class Teller:
    """Makes answers at one moment, about one number or about none yet."""

    def __init__(self, fleet: Known, phone: str | None, timezone: str | None, *, now_ms: int) -> None:
        self._fleet = fleet
        self._phone = phone
        self._zone = hours.phone_zone(phone, timezone) if phone else "UTC"
        self._now_ms = now_ms

    def message(self, view: MessageView) -> Waiting | None:
        if view.byte == Byte.UNKNOWN:
            return self._told(self._stored(view.known) or Why(Reason.UNKNOWN_OUTCOME))
        if view.byte not in WAITING:
            return None
        elsewhere = view.run if view.byte == Byte.QUEUED else view.phone_known
        is_paused = view.run.get("state") == JobState.PAUSED
        return self._told(
            self._held(is_paused) or self._own(view.known) or self._scheduled(view) or self._in_line(elsewhere)
        )

    def item(self, item: QueueItem, phone_known: Known) -> Waiting:
        return self._told(self._held(item.job_paused) or self._own(item.known) or self._in_line(phone_known))

    def job(self, view: JobView) -> Waiting | None:
        """None once nothing of it waits any more, or while it simply goes on."""
        run, is_paused = view.run, view.run["state"] == JobState.PAUSED
        waits = any(view.progress[name] for name in _STILL_TO_GO)
        why = self._held(is_paused) if waits or is_paused else None
        why = why or self._stored(run)
        return self._told(why) if why else None

    def _held(self, job_paused: bool) -> Why | None:
        """What somebody decided. It counts before everything that passes by itself, the caller's own decision first."""
        if job_paused:
            return Why(Reason.JOB_PAUSED)
        if self._fleet.get("stopped") == "1":
            return Why(Reason.STOPPED)
        return Why(Reason.FLEET_PAUSED) if self._fleet.get("paused") == "1" else None

    def _own(self, known: Known) -> Why | None:
        """A pause that is over may stand there until the dispatcher looks again."""
        return None if known.get("waitReason") == Reason.JOB_PAUSED else self._stored(known)

    def _scheduled(self, view: MessageView) -> Why | None:
        parsed = parse_task_id(view.task_id)
        at = view.job.scheduled_at(parsed[1] if parsed else 0)
        is_early = view.byte in (Byte.QUEUED, Byte.SCHEDULED) and at > self._now_ms
        return Why(Reason.SCHEDULED, at) if is_early else None

    def _in_line(self, elsewhere: Known) -> Why:
        """The reason of its job while it is not routed, else of its number."""
        return self._stored(elsewhere) or Why(Reason.IN_TURN)

    def _stored(self, known: Known) -> Why | None:
        reason, until = known.get("waitReason"), known.get("waitUntil")
        if reason is None:
            return None
        # Lua may have written a whole number with an exponent.
        until_ms = None if until is None else int(float(until))
        # Without a known end the stored time is when we look again, which is no promise to anybody.
        is_told = until_ms is not None and until_ms > self._now_ms and reason not in explain.NO_KNOWN_END
        return Why(reason, until_ms if is_told else None)

    def _told(self, why: Why) -> Waiting:
        text = explain.sentence(why.reason, until_ms=why.until_ms, zone=self._zone, phone=self._phone)
        return Waiting(reason=why.reason, until=why.until_ms, text=text)
