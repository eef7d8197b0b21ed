"""The HTTP of proxies and profiles: uploads, the pools, marks, and the state of the whole inventory."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal

from litestar import delete, get, post
from litestar.params import FromPath, QueryParameter

from paceline.apidoc import KEY
from paceline.domain.errors import BadRequest, TooLarge
from paceline.edge import Keys, holder
from paceline.kits.clock import Clock
from paceline.kits.forms import BINARY, form_content, read_form
from paceline.kits.logging import redact_string
from paceline.kits.web import AnyRequest, Handler, read_body
from paceline.orchestrator.inventory import Inventory
from paceline.orchestrator.inventory_views import InventoryStatus, MarkBody, Marked, ProfilePage, ProxyPage, Uploaded

MAX_FILE = 5 * 1_048_576
"""Some 80,000 proxies; a larger file is another file."""
FORM_OVERHEAD = 65_536
"""What a form may have around its file: boundaries, headers."""

Cursor = Annotated[int, QueryParameter(ge=0, le=10**15, description="nextCursor of the page before")]
Limit = Annotated[int, QueryParameter(ge=1, le=1_000, description="items in a page")]


def inventory_routes(inventory: Inventory, keys: Keys, clock: Clock) -> list[Handler]:
    admin: dict[str, Any] = {
        "guards": [keys.requires("admin")],
        "security": KEY,
        "tags": ["Inventory"],
    }
    return [
        *_upload_routes(inventory, clock, admin),
        *_pool_routes(inventory, clock, {**admin, "guards": [keys.requires("read")]}),
        *_decision_routes(inventory, clock, admin),
    ]


def _upload_routes(inventory: Inventory, clock: Clock, admin: dict[str, Any]) -> list[Handler]:
    form: dict[str, Any] = {
        "status_code": 200,
        "opt": {"content": form_content(["file"], file=BINARY)},
        "request_max_body_size": MAX_FILE + FORM_OVERHEAD,
        **admin,
    }

    @post("/upload/proxies", summary="Add proxies, one per line", **form)
    async def upload_proxies(request: AnyRequest) -> Uploaded:
        """`http://user:password@host:port`, `https://…` or `socks5h://…`. Every bad line is reported with its number;
        the rest is stored. The same file again adds nothing. Blank lines and `#` comments are skipped."""
        return await _taken(request, inventory.upload_proxies, clock)

    @post("/upload/profiles", summary="Add profiles, one per line", **form)
    async def upload_profiles(request: AnyRequest) -> Uploaded:
        """A JSON object may hold `displayName`, `timezone`, `tags` and `createdAt`, which become the settings of the
        session that gets it; any other text is kept as it is. Every bad line is reported with its number; the rest is
        stored."""
        return await _taken(request, inventory.upload_profiles, clock)

    return [upload_proxies, upload_profiles]


async def _taken(request: AnyRequest, take: Callable[..., Awaitable[Uploaded]], clock: Clock) -> Uploaded:
    async with read_form(request) as form:
        form.only(("file",))
        file = form.file("file")
        if file is None:
            raise BadRequest("INVALID_REQUEST", "the form has no file", field="file")
        data = await file.read()
    if len(data) > MAX_FILE:
        raise TooLarge("BODY_TOO_LARGE", "the file is too large", field="file", details={"limit": MAX_FILE})
    return await take(data, by=holder(request), now_ms=clock.now_ms())


def _pool_routes(inventory: Inventory, clock: Clock, reading: dict[str, Any]) -> list[Handler]:
    @get("/status", summary="Inventory, rules and sessions at a glance", **reading)
    async def status() -> InventoryStatus:
        """How many proxies and profiles are left, how many sessions may share one, and how many there are of each
        status."""
        return await inventory.status(now_ms=clock.now_ms())

    @get("/api/proxies", summary="All proxies", **reading)
    async def list_proxies(cursor: Cursor = 0, limit: Limit = 100) -> ProxyPage:
        """With their load, their health and who holds them; credentials are masked."""
        return await inventory.proxies(cursor, limit)

    @get("/api/profiles", summary="All profiles", **reading)
    async def list_profiles(cursor: Cursor = 0, limit: Limit = 100) -> ProfilePage:
        """What each says about its session, and who has it; the lines themselves are not shown."""
        return await inventory.profiles(cursor, limit)

    return [status, list_proxies, list_profiles]


def _decision_routes(inventory: Inventory, clock: Clock, admin: dict[str, Any]) -> list[Handler]:
    async def mark(request: AnyRequest, proxy: str, state: Literal["OK", "BAD"]) -> Marked:
        # A decision is worth more than its reason: whoever sends no body at all is not refused.
        body = await read_body(request, MarkBody) if await request.body() else MarkBody()
        if not body.reason.isprintable():
            raise BadRequest("INVALID_REQUEST", "has control characters", field="reason")
        # Somebody may paste the proxy itself.
        reason = redact_string(body.reason)
        return await inventory.mark(proxy, state, reason=reason, by=holder(request), now_ms=clock.now_ms())

    marking: dict[str, Any] = {"status_code": 200, "opt": {"body": MarkBody, "body_optional": True}, **admin}

    @post("/api/proxies/{proxy_id:str}/bad", summary="A proxy is bad: move its sessions", **marking)
    async def mark_bad(request: AnyRequest, proxy_id: FromPath[str]) -> Marked:
        """Nobody gets it any more, and each session that holds it is restarted with another, once. Sessions of banned
        numbers stay where they are."""
        return await mark(request, proxy_id, "BAD")

    @post("/api/proxies/{proxy_id:str}/ok", summary="A proxy is good again", **marking)
    async def mark_ok(request: AnyRequest, proxy_id: FromPath[str]) -> Marked:
        """It is given out again. Sessions that were moved away from it stay where they are."""
        return await mark(request, proxy_id, "OK")

    @delete("/api/proxies/{proxy_id:str}", summary="Take a proxy out of the pool", **admin)
    async def drop_proxy(request: AnyRequest, proxy_id: FromPath[str]) -> None:
        """409 while sessions hold it."""
        await inventory.drop_proxy(proxy_id, by=holder(request), now_ms=clock.now_ms())

    @delete("/api/profiles/{profile_id:str}", summary="Take a profile out of the pool", **admin)
    async def drop_profile(request: AnyRequest, profile_id: FromPath[str]) -> None:
        """409 while a session has it."""
        await inventory.drop_profile(profile_id, by=holder(request), now_ms=clock.now_ms())

    return [mark_bad, mark_ok, drop_proxy, drop_profile]
