"""Single sends with nothing but a number and a text, which most are: the short way of `POST /api/v1/send`.

It asks what `intake` asks and stores what that stores. Whatever it cannot tell at once, and whatever has to be refused,
is left to the long way: before anything was counted (`begin`), or beside it once a picture of the fleet is not enough.
Neighbours: `routes_sending` has both ways, `kits.brief` steps this one.
"""

from collections.abc import Mapping

import msgspec

from paceline.domain.jobs import Contact, Job
from paceline.domain.numbers import canonical
from paceline.domain.text import TEXT_LIMIT, is_blank
from paceline.edge import Keys, digest_in
from paceline.gateway.idempotency import HEADER
from paceline.gateway.intake import SINGLE_VALIDITY_S, Intake, suppressed
from paceline.gateway.schemas import SendAccepted, SendRequest
from paceline.kits import strict_json
from paceline.kits.brief import Begun, Ticket, beside
from paceline.kits.clock import Clock
from paceline.policy.routing import Sticky
from paceline.store.jobs import Accepted
from paceline.store.store import Store

_IDEMPOTENT = HEADER.lower().encode()
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(SendRequest).decode


class PlainSends:
    def __init__(self, store: Store, intake: Intake, keys: Keys, clock: Clock) -> None:
        self._jobs = store.jobs
        self._intake = intake
        self._keys = keys
        self._clock = clock

    def facts(self, headers: Mapping[bytes, bytes]) -> str | None:
        """The digest of the caller's key. A repeated request is looked up first, which is the long way."""
        return None if _IDEMPOTENT in headers else digest_in(headers)

    def begin(self, presented: str, body: bytes, request_id: str) -> Begun | None:
        now_ms = self._clock.now_ms()
        record = self._keys.known(presented, "send", now_ms)
        if record is None or not self._intake.pressure.has_room(now_ms):
            return None
        try:
            asked = _decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        # Then it has the fields it must have and no others.
        if not strict_json.is_plain(body, SendRequest):
            return None
        to, text = canonical(asked.to), asked.message
        if to is None or len(text) > TEXT_LIMIT or "{{" in text or not _is_seen(text):
            return None
        lines = self._keys.counted(record, now_ms)
        if lines is None:
            return None
        return Begun(self._send(to, text, record.key_id, request_id, now_ms), lines)

    async def _send(self, to: str, text: str, by: str, request_id: str, now_ms: int) -> bytes:
        """Awaits tickets alone. Who they are is asked in the step that accepts it: most were not written to today, and
        for them the first choice is the right one."""
        intake = self._intake
        job = Job(
            job_id=intake.new_job_id(now_ms), total=1, text=text, accepted_at=now_ms, accepted_by=by,
            validity_seconds=SINGLE_VALIDITY_S, single=True, request_id=request_id,
        )  # fmt: skip
        sticky: Sticky | None = None
        is_unseen = True
        while (picture := intake.watcher.at_hand(now_ms)) is not None:
            phone = intake.numbers.at_once(sticky, picture, now_ms=now_ms)
            if phone is None:
                break
            when = picture.single(phone, priority=1, now_ms=now_ms)
            ticket = Ticket()
            self._jobs.tell_send(job, to, phone, ticket, is_unseen=is_unseen)
            accepted: Accepted = await ticket
            if accepted.code not in ("SUPPRESSED", "BOUND"):
                return _encode(intake.receipt(job, phone, when, accepted))
            picture.take_back(phone)
            if accepted.code == "SUPPRESSED":
                raise suppressed()
            sticky, is_unseen = accepted.sticky, False
        return _encode(await beside(self._at_length(job, to), request_id))

    async def _at_length(self, job: Job, to: str) -> SendAccepted:
        """What the picture alone cannot tell."""
        is_suppressed, sticky = await self._jobs.person(to)
        if is_suppressed:
            raise suppressed()
        return await self._intake.accept_send(job, Contact(to), sticky, None, job.accepted_at)


def _is_seen(text: str) -> bool:
    """Whether there is anything to see in it; of most texts the first character tells."""
    return "!" <= text[0] <= "~" or not is_blank(text)
