"""The registry of sessions and what workers say about them."""

from collections import Counter
from typing import Any

import msgspec

from paceline.store import keys
from paceline.store.caller import Answer, Caller
from paceline.store.jobs import _pairs
from paceline.store.session_views import PHONE_FIELDS, SessionFilter, SessionView, view_of
from paceline.store.wishes import Secret

FILTERED_AT_ONCE = 500
"""Rows read in one go while a list is filtered."""


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
        direct: bool | None = None,
        proxy: str | None = None,
        profile: str | None = None,
        by: str = "",
    ) -> str:
        """`proxy` is an id or URL of the pool, `profile` an id; `direct`: it goes out without a proxy. See
        register_session.lua for the codes."""
        answer = await self._caller.call(
            "register_session", Answer, session=session, phone=phone, driver=driver, createdAt=created_at_ms,
            timezone=timezone, tags=msgspec.json.encode(tags).decode(), limit=limit, now=now_ms,
            direct=direct, proxy=proxy, profile=profile, by=by,
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
        word: str | None = None,
        connection: str | None = None,
        authorisation: str | None = None,
        quarantine: str | None = None,
        failed: str | None = None,
        alarm: bool = False,
        qr: Secret | None = None,
        quiet_ms: int | None = None,
    ) -> EventAnswer:
        """`word` is the name that what was said has in its epoch: a copy of it changes nothing."""
        return await self._caller.call(
            "session_event", EventAnswer, session=session, now=now_ms, at=at_ms, event=event, epoch=epoch, word=word,
            connection=connection, authorisation=authorisation, quarantine=quarantine, failed=failed,
            alarm=alarm or None, quietMs=quiet_ms,
            qr=None if qr is None else msgspec.json.encode(qr).decode(),
            qrTtl=None if qr is None else qr.until - now_ms,
        )  # fmt: skip

    async def restriction(
        self,
        session: str,
        kind: str,
        until_ms: int | None,
        *,
        epoch: int | None,
        at_ms: int,
        now_ms: int,
        word: str | None = None,
    ) -> EventAnswer:
        """The platform's word on a number's limits; one that is older than its worker's last, or a copy, changes
        nothing."""
        return await self._caller.call(
            "restriction_event", EventAnswer, session=session, kind=kind, untilMs=until_ms, epoch=epoch, word=word,
            at=at_ms, now=now_ms,
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
        phones = [("HMGET", keys.phone(row.get("phone", "")), *PHONE_FIELDS) for row in rows]
        numbers = [("ZSCORE", keys.proxies_numbers(), row.get("proxy", "")) for row in rows]
        known = await self._caller.read(*phones, *numbers)
        return [
            view_of(id_, row, about, number, now_ms) if row.get("phone") else None
            for id_, row, about, number in zip(ids, rows, known[: len(ids)], known[len(ids) :], strict=True)
        ]

    async def ids(self) -> list[str]:
        """Of all of them, in order."""
        return sorted(await self._caller.read_one("SMEMBERS", keys.sessions()))

    async def drivers(self) -> dict[str, int]:
        """How many sessions there are of each."""
        ids = await self.ids()
        found: Counter[str] = Counter()
        for start in range(0, len(ids), FILTERED_AT_ONCE):
            rows = [("HGET", keys.session(id_), "driver") for id_ in ids[start : start + FILTERED_AT_ONCE]]
            found.update(driver or "" for driver in await self._caller.read(*rows))
        return dict(found)

    async def page(
        self, after: str, limit: int, *, now_ms: int, wanted: SessionFilter | None = None
    ) -> tuple[list[SessionView], str | None]:
        """Sessions in the order of their ids, after a given one."""
        ids = [id_ for id_ in await self.ids() if id_ > after]
        if wanted is None or wanted == SessionFilter():
            found = [view for view in await self.many(ids[:limit], now_ms=now_ms) if view] if ids else []
            return found, ids[limit - 1] if len(ids) > limit else None
        found = []
        for start in range(0, len(ids), FILTERED_AT_ONCE):
            views = await self.many(ids[start : start + FILTERED_AT_ONCE], now_ms=now_ms)
            found += [view for view in views if view and wanted.takes(view)]
            if len(found) > limit:
                return found[:limit], found[limit - 1].session_id
        return found, None

    async def events(self, session: str) -> list[dict[str, Any]]:
        """What its worker said, newest first; the last 200."""
        lines = await self._caller.read_one("LRANGE", keys.session_events(session), 0, -1)
        return [msgspec.json.decode(line) for line in lines]

    async def change(
        self,
        session: str,
        *,
        by: str,
        now_ms: int,
        created_at_ms: int | None = None,
        timezone: str | None = None,
        tags: list[str] | None = None,
    ) -> str:
        """OK | UNKNOWN_SESSION | REMOVING. What is None stays."""
        answer = await self._caller.call(
            "change_session", Answer, session=session, createdAt=created_at_ms, timezone=timezone,
            tags=None if tags is None else msgspec.json.encode(tags).decode(), by=by, now=now_ms,
        )  # fmt: skip
        return answer.code

    async def phone_of(self, session: str) -> str | None:
        phone: str | None = await self._caller.read_one("HGET", keys.session(session), "phone")
        return phone

    async def owner_of(self, session: str) -> tuple[str | None, bool]:
        """The number of a session, and whether that is on its way out."""
        phone, removing = await self._caller.read_one("HMGET", keys.session(session), "phone", "removing")
        return phone, removing == "1"

    async def is_registered(self, phone: str) -> bool:
        """Whether it has a session that stays. What waits for a number without one waits in vain."""
        ids = await self._caller.read_one("SMEMBERS", keys.phone_sessions(phone))
        removing = await self._caller.read(*[("HGET", keys.session(id_), "removing") for id_ in ids]) if ids else []
        return any(value != "1" for value in removing)

    async def phone_timezone(self, phone: str) -> str | None:
        zone: str | None = await self._caller.read_one("HGET", keys.phone(phone), "timezone")
        return zone
