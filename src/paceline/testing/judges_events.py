"""Judges of what customers are told: every event at least once under one id, nothing else, and each job's end as one
event (SPEC §3)."""

from collections import Counter
from collections.abc import Iterator
from functools import partial

from paceline.domain.events import START, Event
from paceline.gateway.deliveries import public_id
from paceline.store.events import Slice
from paceline.store.store import Store
from paceline.testing.evidence import Evidence

_ENDS = {"message.sent": "SDR", "message.failed": "F", "message.expired": "E", "message.canceled": "X",
         "message.suppressed": "O"}  # fmt: skip
_public_id = public_id


def customers_are_told(evidence: Evidence) -> Iterator[str]:
    customer = evidence.world.customer
    if customer is None:
        return
    happened = {_public_id(event.id): event for event in _events(evidence)}
    for event_id, event in happened.items():
        if event_id not in customer.got:
            yield f"{event.type} of {event.at} ({event_id}) was never told"
    for event_id, times in customer.got.items():
        if event_id not in happened:
            yield f"{times[0]['type']} was told under {event_id}, which is no event"
        elif any(told["type"] != happened[event_id].type for told in times):
            yield f"{event_id} was told as {[told['type'] for told in times]}"
    told = [times[0] for times in customer.got.values()]
    yield from _job_ends(evidence, [body["data"]["jobId"] for body in told if body["type"] == "job.done"])
    yield from _message_ends(evidence, Counter((body["data"].get("messageId"), body["type"]) for body in told))


def _job_ends(evidence: Evidence, told: list[str]) -> Iterator[str]:
    counts = Counter(told)
    for job_id, view in evidence.views.items():
        if "closedAt" in view.run and counts[job_id] != 1:
            yield f"the end of {job_id} was told as {counts[job_id]} events"


def _message_ends(evidence: Evidence, told: Counter[tuple[str | None, str]]) -> Iterator[str]:
    """Each message's end is one event of its kind. One that was corrected has two, of two kinds."""
    for task, view in evidence.messages.items():
        for kind, bytes_ in _ENDS.items():
            if view.byte in bytes_ and told[task, kind] != 1:
                yield f"{task} is {evidence.state(task)}, and {kind} was told {told[task, kind]} times"


def _events(evidence: Evidence) -> list[Event]:
    found: list[Event] = []
    place, more = START, True
    while more:
        piece: Slice = evidence.world.ask(partial(_after, place))[0]
        found += piece.events
        place, more = piece.place, piece.more
    return found


async def _after(place: str, store: Store) -> Slice:
    return await store.events.after(place, limit=1_000, wants=lambda kind: True)
