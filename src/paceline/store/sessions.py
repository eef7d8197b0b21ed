"""The registry of sessions and what workers say about them."""

import msgspec

from paceline.policy.restriction import standing
from paceline.store import keys
from paceline.store.caller import Answer, Caller
from paceline.store.jobs import _pairs


class SessionView(msgspec.Struct, frozen=True, rename="camel"):
    session_id: str
    phone: str
    driver: str
    connection: str
    authorisation: str
    desired: str
    epoch: int
    created_at: int
    last_seen: int
    timezone: str | None = None
    restriction: str = "NONE"
    """NONE, COOLDOWN, TIME_LOCKED, CAPPED or QUARANTINED: what keeps its number from sending freely."""
    restricted_until: int | None = None
    tags: list[str] = []


class EventAnswer(Answer, frozen=True):
    phone: str = ""


class Sessions:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def register(
        self,
        session: str,
        phone: str,
        *,
        driver: str,
        created_at_ms: int,
        timezone: str | None,
        tags: list[str],
        limit: int,
        now_ms: int,
    ) -> str:
        answer = await self._caller.call(
            "register_session", Answer, session=session, phone=phone, driver=driver, createdAt=created_at_ms,
            timezone=timezone, tags=msgspec.json.encode(tags).decode(), limit=limit, now=now_ms,
        )  # fmt: skip
        return answer.code

    async def event(
        self,
        session: str,
        *,
        now_ms: int,
        at_ms: int,
        event: str | None = None,
        epoch: int | None = None,
        connection: str | None = None,
        authorisation: str | None = None,
        quarantine: str | None = None,
    ) -> EventAnswer:
        return await self._caller.call(
            "session_event", EventAnswer, session=session, now=now_ms, at=at_ms, event=event, epoch=epoch,
            connection=connection, authorisation=authorisation, quarantine=quarantine,
        )  # fmt: skip

    async def restriction(
        self, session: str, kind: str, until_ms: int | None, *, epoch: int | None, at_ms: int, now_ms: int
    ) -> EventAnswer:
        """The platform's word on a number's limits; an older one than the last changes nothing."""
        return await self._caller.call(
            "restriction_event", EventAnswer, session=session, kind=kind, untilMs=until_ms, epoch=epoch, at=at_ms,
            now=now_ms,
        )  # fmt: skip

    async def received(
        self,
        session: str,
        sender: str,
        *,
        at_ms: int,
        now_ms: int,
        whatsapp_id: str | None = None,
        text: str | None = None,
    ) -> EventAnswer:
        """Somebody wrote to this session's number. With an id customers are told, once; the text passes through."""
        return await self._caller.call(
            "chat_received", EventAnswer, session=session, **{"from": sender}, at=at_ms, id=whatsapp_id, text=text,
            now=now_ms,
        )  # fmt: skip

    async def get(self, session: str, *, now_ms: int) -> SessionView | None:
        return (await self.many([session], now_ms=now_ms))[0]

    async def many(self, ids: list[str], *, now_ms: int) -> list[SessionView | None]:
        rows = [_pairs(row) for row in await self._caller.read(*[("HGETALL", keys.session(id_)) for id_ in ids])]
        about = ("timezone", "quarantined", "cooldownUntil", "restriction", "restrictedUntil")
        phones = await self._caller.read(*[("HMGET", keys.phone(row.get("phone", "")), *about) for row in rows])
        return [
            _view(id_, row, known, now_ms) if row.get("phone") else None
            for id_, row, known in zip(ids, rows, phones, strict=True)
        ]

    async def page(self, after: str, limit: int, *, now_ms: int) -> tuple[list[SessionView], str | None]:
        """Sessions in the order of their ids, after a given one."""
        ids = sorted(id_ for id_ in await self._caller.read_one("SMEMBERS", keys.sessions()) if id_ > after)
        found = [view for view in await self.many(ids[:limit], now_ms=now_ms) if view] if ids else []
        return found, ids[limit - 1] if len(ids) > limit else None

    async def phone_of(self, session: str) -> str | None:
        phone: str | None = await self._caller.read_one("HGET", keys.session(session), "phone")
        return phone

    async def is_registered(self, phone: str) -> bool:
        return await self._caller.read_one("ZSCORE", keys.phones(), phone) is not None

    async def phone_timezone(self, phone: str) -> str | None:
        zone: str | None = await self._caller.read_one("HGET", keys.phone(phone), "timezone")
        return zone


def _view(session: str, row: dict[str, str], about: list[str | None], now_ms: int) -> SessionView:
    known = standing(
        quarantined=about[1] == "1",
        cooldown_until=int(about[2] or 0),
        restriction=about[3] or "",
        restricted_until=int(about[4] or 0),
        now_ms=now_ms,
    )
    return SessionView(
        session_id=session,
        phone=row["phone"],
        driver=row["driver"],
        connection=row["connection"],
        authorisation=row["authorisation"],
        desired=row["desired"],
        epoch=int(row["epoch"]),
        created_at=int(row["createdAt"]),
        last_seen=int(row.get("lastSeen", 0)),
        timezone=about[0],
        restriction=known.kind,
        restricted_until=known.until,
        tags=msgspec.json.decode(row["tags"], type=list[str]),
    )
