"""Which number a request goes to: the one it names, directly or by a session; for a single send without a name the one
chosen when it is accepted.

Neighbours: `intake` asks, `picture` knows the fleet, `policy.routing` decides.
"""

from paceline.domain.errors import BadRequest, Conflict, NotFound
from paceline.domain.jobs import Job
from paceline.gateway import checks
from paceline.gateway.picture import LATER, Picture
from paceline.gateway.watcher import Watcher
from paceline.policy.routing import RESTRICTED_ASKED, NotNow, Sticky, To
from paceline.store.store import Store


class Choosing:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._chosen = 0
        """Single sends that a number was chosen for; round_robin goes on from here."""

    async def owner_of(self, session_id: str) -> str:
        """The number of a session."""
        owner = await self._store.sessions.phone_of(session_id) if checks.is_session_id(session_id) else None
        if owner is None:
            raise _unknown_session()
        return owner

    async def _staying(self, session_id: str) -> str:
        """Its number. If it is on its way out, nobody might be left to send what is taken now."""
        is_id = checks.is_session_id(session_id)
        owner, is_removed = await self._store.sessions.owner_of(session_id) if is_id else (None, False)
        if owner is None:
            raise _unknown_session()
        if is_removed:
            raise Conflict("SESSION_REMOVING", "this session is being removed", field="sessionId")
        return owner

    async def named(self, session_id: str | None, phone: str | None) -> str | None:
        """The number a request names."""
        digits = None if phone is None else checks.number(phone, "phone")
        if session_id is not None:
            owner = await self._staying(session_id)
            if digits is not None and digits != owner:
                raise BadRequest("PHONE_MISMATCH", "this session belongs to another number", field="phone")
            return owner
        if digits is not None and not await self._store.sessions.is_registered(digits):
            raise NotFound("UNKNOWN_PHONE", "there is no session of this number", field="phone")
        return digits

    async def single(
        self, job: Job, to: str, sticky: Sticky | None, watcher: Watcher, *, now_ms: int
    ) -> tuple[str | None, Picture]:
        """The number a single send goes to, or None while there is none that could take it."""
        picture = await watcher.look(now_ms)
        if job.phone is not None:
            if job.phone not in picture.phones:
                picture = await watcher.look(now_ms, fresh=True)
            # One that cannot be read is in no picture; what it may, the scripts say.
            if job.send_at is None and job.phone in picture.phones:
                checks.budget(picture.sender(job.phone, now_ms=now_ms), now_ms)
            return job.phone, picture
        self._chosen += 1
        decision = await self._route(picture, job, to, sticky, now_ms)
        if not isinstance(decision, To):
            # A number may have come a moment ago.
            picture = await watcher.look(now_ms, fresh=True)
            decision = await self._route(picture, job, to, sticky, now_ms)
        if isinstance(decision, To) and decision.phone in picture.phones:
            return decision.phone, picture
        return None, picture

    def at_once(self, sticky: Sticky | None, picture: Picture, *, now_ms: int) -> str | None:
        """The same for a send for now that names none and has no priority, as far as the picture alone can tell."""
        fleet = picture.fleet(priority=1, turn=self._chosen + 1, now_ms=now_ms)
        # Whom a locked number knows has to be asked.
        if fleet.restricted or (sticky is not None and picture.is_locked(sticky.phone, now_ms=now_ms)):
            return None
        self._chosen += 1
        decision = fleet.route(sticky, now_ms=now_ms)
        return decision.phone if isinstance(decision, To) and decision.phone in picture.phones else None

    async def knows(self, phone: str, to: str, picture: Picture, *, now_ms: int) -> bool:
        """Whether the number may write to them whatever the platform keeps it from; worth asking of a locked one alone,
        and of the same chats as the dispatcher does."""
        if not picture.is_locked(phone, now_ms=now_ms):
            return True
        (known,) = await self._store.jobs.known_by([phone], [to])
        return phone in known

    async def _route(self, picture: Picture, job: Job, to: str, sticky: Sticky | None, now_ms: int) -> To | NotNow:
        priority = job.priority if job.scheduled_at(0) <= now_ms else LATER
        fleet = picture.fleet(priority=priority, turn=self._chosen, now_ms=now_ms)
        known: frozenset[str] = frozenset()
        if fleet.restricted:
            (known,) = await self._store.jobs.known_by(fleet.restricted[:RESTRICTED_ASKED], [to])
        return fleet.route(sticky, known=known, now_ms=now_ms)


def _unknown_session() -> NotFound:
    return NotFound("UNKNOWN_SESSION", "there is no such session", field="sessionId")
