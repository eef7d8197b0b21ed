"""Reading the audit trail over HTTP: newest first, by kind and session."""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from litestar import get
from litestar.params import QueryParameter

from paceline.apidoc import KEY
from paceline.domain.errors import BadRequest, Unavailable
from paceline.edge import Keys
from paceline.kits.web import Handler
from paceline.orchestrator.audit_db import AuditAway, read_page

SEQ_MAX = 2**63 - 1

KIND_ABOUT = (
    "BINDING: a session's proxy or profile changed; OPERATOR: somebody decided something; SENT: confirmed sends"
)
Kind = Annotated[Literal["BINDING", "OPERATOR", "SENT", ""], QueryParameter(description=KIND_ABOUT)]
Session = Annotated[str, QueryParameter(max_length=64, description="only rows of this session")]
Cursor = Annotated[str, QueryParameter(max_length=19, description="nextCursor of the page before")]
Limit = Annotated[int, QueryParameter(ge=1, le=1_000, description="items in a page")]

ReadPage = Callable[[Callable[[], list[dict[str, Any]]]], Awaitable[list[dict[str, Any]]]]
"""Runs the reading off the loop."""


class AuditRow(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """One fact. Which fields it has depends on its kind."""

    id: int
    kind: str
    at: int
    session_id: str = ""
    phone: str = ""
    proxy_ip: str = ""
    """The proxy's host; never its credentials."""
    profile_id: str = ""
    status: str = ""
    action: str = ""
    by: str = ""
    reason: str = ""
    details: dict[str, Any] = {}
    message_id: str = ""
    whatsapp_id: str = ""


class AuditPage(msgspec.Struct, frozen=True, rename="camel"):
    items: list[AuditRow]
    next_cursor: str | None = None


class AuditPages:
    def __init__(self, path: Path, in_thread: ReadPage) -> None:
        self._path = path
        self._in_thread = in_thread

    async def page(self, kind: str, session: str, cursor: str, limit: int) -> AuditPage:
        if cursor and not (cursor.isascii() and cursor.isdigit()):
            raise BadRequest("INVALID_REQUEST", "not a cursor of this list", field="cursor")
        before = min(int(cursor or SEQ_MAX), SEQ_MAX)
        reading = partial(read_page, self._path, kind=kind, session=session, before=before, limit=limit + 1)
        try:
            found = await self._in_thread(reading)
        except AuditAway as error:
            raise Unavailable("the audit trail cannot be read") from error
        rows = [_row(known) for known in found[:limit]]
        return AuditPage(rows, str(rows[-1].id) if len(found) > limit else None)


def audit_route(pages: AuditPages, keys: Keys) -> Handler:
    @get(
        "/api/audit",
        summary="Who did what, and what went out",
        guards=[keys.requires("admin")],
        security=KEY,
        tags=["Audit"],
    )
    async def audit(kind: Kind = "", session: Session = "", cursor: Cursor = "", limit: Limit = 100) -> AuditPage:
        """Newest first. Facts appear within seconds of what they tell of."""
        return await pages.page(kind, session, cursor, limit)

    return audit


def _row(known: dict[str, Any]) -> AuditRow:
    return AuditRow(
        id=known["seq"],
        kind=known["kind"],
        at=known["at"],
        session_id=known["session"],
        phone=known["phone"],
        proxy_ip=known["proxy_ip"],
        profile_id=known["profile_id"],
        status=known["status"],
        action=known["action"],
        by=known["by"],
        reason=known["reason"],
        details=_details(known["details"]),
        message_id=known["task"],
        whatsapp_id=known["whatsapp"],
    )


def _details(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any]) if text else {}
    except msgspec.DecodeError:
        # Cut, because it was too long.
        return {"cut": text}
