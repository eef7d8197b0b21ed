"""Routes of the API keys, for admins; and what a key may ask about itself. What they do is in `api_keys`."""

from typing import Any

from litestar import Response, delete, get, post
from litestar.params import FromPath

from paceline.edge import Keys, holder
from paceline.gateway.api_keys import ApiKeys, KeyCreated, KeyPage, KeyRequest, KeyView, key_view
from paceline.gateway.routes_common import KEY, Cursor, Limit
from paceline.kits.clock import Clock
from paceline.kits.web import AnyRequest, Handler, read_body


def key_routes(api_keys: ApiKeys, keys: Keys, clock: Clock) -> list[Handler]:
    admin: dict[str, Any] = {"tags": ["Keys"], "guards": [keys.requires("admin")], "security": KEY}

    @get(
        "/v1/keys/self",
        summary="What the key of this request is good for",
        tags=["Keys"],
        guards=[keys.requires("send", "read")],
        security=KEY,
    )
    async def own_key(request: AnyRequest) -> KeyView:
        """For any valid key: its name, scopes and expiry."""
        return key_view(request.auth, now_ms=clock.now_ms())

    @get("/v1/keys", summary="All API keys", **admin)
    async def list_keys(cursor: Cursor = "", limit: Limit = 100) -> KeyPage:
        """Also those that have expired or were revoked. Never the key itself, which nobody has."""
        return await api_keys.page(cursor, limit, now_ms=clock.now_ms())

    @post("/v1/keys", status_code=201, summary="Make an API key", opt={"body": KeyRequest}, **admin)
    async def create_key(request: AnyRequest) -> Response[KeyCreated]:
        """`key` is shown in this answer and never again. To rotate a key, make a second one, move its users over, then
        revoke the first."""
        asked = await read_body(request, KeyRequest)
        created = await api_keys.create(asked, by=holder(request), now_ms=clock.now_ms())
        keys.forget()
        return Response(created, status_code=201, headers={"Cache-Control": "no-store"})

    @delete("/v1/keys/{key_id:str}", status_code=200, summary="Revoke an API key", **admin)
    async def revoke_key(request: AnyRequest, key_id: FromPath[str]) -> KeyView:
        """Refused within a second everywhere. Its record stays, so that it can still be told who asked for a job."""
        revoked = await api_keys.revoke(key_id, by=holder(request), now_ms=clock.now_ms())
        keys.forget()
        return revoked

    return [own_key, list_keys, create_key, revoke_key]
