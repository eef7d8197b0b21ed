"""Single sends with nothing but a number and a text, which most are: the short way of `POST /api/v1/send`.

It asks what `intake` asks and stores what that stores. Whatever it cannot tell at once, and whatever has to be refused,
is left to the long way: before anything was counted (`begin`), or beside it once the person is known. Neighbours:
`routes_sending` has both ways, `kits.brief` steps this one.
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
        if to is None or len(text) > TEXT_LIMIT or "{{" in text or is_blank(text):
            return None
        lines = self._keys.counted(record, now_ms)
        if lines is None:
            return None
        return Begun(self._send(to, text, record.key_id, request_id, now_ms), lines)

    async def _send(self, to: str, text: str, by: str, request_id: str, now_ms: int) -> bytes:
        """Awaits tickets alone."""
        person = Ticket()
        self._jobs.tell_person(to, person)
        is_suppressed, sticky = await person
        if is_suppressed:
            raise suppressed()
        intake = self._intake
        job = Job(
            job_id=intake.new_job_id(now_ms), total=1, text=text, accepted_at=now_ms, accepted_by=by,
            validity_seconds=SINGLE_VALIDITY_S, single=True, request_id=request_id,
        )  # fmt: skip
        picture = intake.watcher.at_hand(now_ms)
        phone = picture and intake.numbers.at_once(sticky, picture, now_ms=now_ms)
        if not picture or not phone:
            answer: SendAccepted = await beside(intake.accept_send(job, Contact(to), sticky, None, now_ms))
            return _encode(answer)
        when = picture.single(phone, priority=1, now_ms=now_ms)
        accepted = Ticket()
        self._jobs.tell_send(job, to, phone, accepted, now_ms=now_ms, is_bound=sticky is not None)
        return _encode(intake.receipt(job, phone, when, await accepted))
