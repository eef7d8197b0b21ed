"""A request's contacts, taken in stretches: judged, looked up in the suppression list, with a breath in between so that
a large job does not keep other requests from being answered.

Neighbours: `intake` makes a job of them, `sifting` judges those of a job one by one.
"""

from collections.abc import Awaitable, Callable

from paceline.domain.jobs import Contact
from paceline.gateway import checks
from paceline.gateway.schemas import BatchRequest, JobRequest
from paceline.gateway.sifting import Sift
from paceline.store.guards import Guards
from paceline.store.scripts import CHUNK

Breathe = Callable[[], Awaitable[None]]


async def sifted(request: JobRequest, guards: Guards, breathe: Breathe) -> Sift:
    """Of a job: bad ones are listed and skipped."""
    sift = Sift(request.text)
    for start in range(0, len(request.contacts), CHUNK):
        good = sift.take(request.contacts[start : start + CHUNK])
        sift.accept(good, await guards.suppressed([contact.to for contact in good]) if good else set())
        await breathe()
    return sift


async def batch(request: BatchRequest, breathe: Breathe) -> list[Contact]:
    """Of a batch: all are good, or the first bad one is named."""
    contacts = []
    for index, message in enumerate(request.messages):
        to = checks.number(message.to, f"messages[{index}].to")
        checks.plain_text(message.text, f"messages[{index}].text")
        contacts.append(Contact(to, {"text": message.text}))
        if index % CHUNK == CHUNK - 1:
            await breathe()
    return contacts


async def not_suppressed(contacts: list[Contact], guards: Guards, breathe: Breathe) -> list[Contact]:
    kept: list[Contact] = []
    for start in range(0, len(contacts), CHUNK):
        some = contacts[start : start + CHUNK]
        suppressed = await guards.suppressed([contact.to for contact in some])
        kept += [contact for contact in some if contact.to not in suppressed]
        await breathe()
    return kept
