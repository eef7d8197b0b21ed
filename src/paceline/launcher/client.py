"""The HTTP calls the launcher makes to the services it has started: is one up, which sessions are there, create one,
the QR code of one.

Neighbour: what is asked of the gateway goes through `paceline.client`, like everybody's.
"""

from typing import Any

import httpx

from paceline.launcher.errors import LauncherError

PAGE_SIZE = 200


class ApiError(LauncherError):
    """A service did not answer, or answered with an error."""


class PlatformClient:
    """A thin client; a call that gets no good answer raises `ApiError`."""

    def __init__(self, api_key: str, *, orchestrator: str) -> None:
        self._orchestrator = orchestrator
        self._http = httpx.AsyncClient(
            headers={"X-API-KEY": api_key},
            timeout=httpx.Timeout(10),
            # Everything is on this machine; a proxy from the environment would only be in the way.
            trust_env=False,
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def is_healthy(self, url: str) -> bool:
        try:
            answer = await self._http.get(f"{url}/health", timeout=2)
        except httpx.HTTPError:
            return False
        return answer.status_code == httpx.codes.OK

    async def sessions(self, **wanted: str) -> list[dict[str, Any]]:
        """All sessions of the registry that are as wanted, page by page."""
        items: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            params = wanted | {"limit": str(PAGE_SIZE)} | ({"cursor": cursor} if cursor else {})
            page = await self._json("GET", f"{self._orchestrator}/api/sessions", params=params)
            items += page["items"]
            cursor = page.get("nextCursor")
            if not cursor:
                return items

    async def create_session(self, session_id: str, phone: str, driver: str, **more: str) -> None:
        """Idempotent: the same session again is answered with the one that exists."""
        body = {"sessionId": session_id, "phone": phone, "driver": driver, **more}
        await self._json("POST", f"{self._orchestrator}/api/sessions", json=body)

    async def qr(self, session_id: str) -> str | None:
        """The QR text that it shows now, if any."""
        try:
            answer = await self._json("GET", f"{self._orchestrator}/api/sessions/{session_id}/qr")
        except ApiError:
            return None
        return str(answer["qr"])

    async def _json(self, method: str, url: str, **request: Any) -> dict[str, Any]:
        try:
            answer = await self._http.request(method, url, **request)
        except httpx.HTTPError as error:
            raise ApiError(f"{method} {url}: {error or type(error).__name__}") from error
        if answer.is_error:
            # The platform's own error says what is wrong; the number alone does not.
            raise ApiError(f"{method} {url} answered {answer.status_code}: {answer.text[:500]}")
        result: dict[str, Any] = answer.json()
        return result
