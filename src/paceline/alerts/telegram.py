"""Telegram's Bot API, directly: apprise's own plugin cannot be pointed at a stand-in and does not say when to come back
after a 429.

The token is part of the address, so nothing that holds the address leaves this file: reasons are made from the answer's
status and description, and errors are named by their kind.
"""

import asyncio
from typing import Any

import httpx
import msgspec

from paceline.alerts.channels import DELIVERED, TIMEOUT_S, Outcome
from paceline.policy.alert_kinds import Severity, shown

TEXT_MAX = 4_000
"""Telegram takes 4,096 characters."""
RETRY_AFTER_S = 30
"""After a 429 that does not say when."""


class Parameters(msgspec.Struct, frozen=True):
    retry_after: float | None = None
    migrate_to_chat_id: int | None = None


class Answer(msgspec.Struct, frozen=True):
    ok: bool
    description: str = ""
    parameters: Parameters = Parameters()


class Telegram:
    name = "telegram"

    def __init__(self, token: str, chat_id: str, *, api_url: str, client: httpx.AsyncClient) -> None:
        self._token = token
        self._url = f"{api_url}/bot{token}/sendMessage"
        self._chat_id = chat_id
        self._client = client

    async def send(self, text: str, severity: Severity) -> Outcome:
        body: dict[str, Any] = {
            "chat_id": self._chat_id,
            "text": text[:TEXT_MAX],
            # No parse_mode: nothing in a text is markup.
            "link_preview_options": {"is_disabled": True},
            "disable_notification": severity is Severity.INFO,
        }
        try:
            async with asyncio.timeout(TIMEOUT_S):
                answer = await self._client.post(self._url, json=body, follow_redirects=False)
        except TimeoutError:
            return Outcome(ok=False, reason=f"no answer within {TIMEOUT_S:.0f} s")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            # Without its words: they may hold the address.
            return Outcome(ok=False, reason=f"no connection ({type(error).__name__})")
        return self._outcome(answer)

    def _outcome(self, answer: httpx.Response) -> Outcome:
        try:
            said = msgspec.json.decode(answer.content, type=Answer)
        except msgspec.DecodeError:
            # A proxy's page, or a stranger at that address: nothing of it is worth showing.
            return Outcome(False, f"HTTP {answer.status_code} with an answer that is none", self._asked(answer, None))
        if answer.is_success and said.ok:
            return DELIVERED
        reason = f"HTTP {answer.status_code}: {shown(said.description.replace(self._token, '[token]'))}"
        if said.parameters.migrate_to_chat_id is not None:
            reason += f"; the group has a new id, set TELEGRAM_CHAT_ID={said.parameters.migrate_to_chat_id}"
        return Outcome(False, reason, self._asked(answer, said.parameters.retry_after))

    def _asked(self, answer: httpx.Response, said_s: float | None) -> int | None:
        """When it wants to be asked again, in ms."""
        if answer.status_code != 429:
            return None
        header = answer.headers.get("retry-after", "")
        seconds = said_s if said_s is not None else int(header) if header.isascii() and header.isdigit() else None
        return int((RETRY_AFTER_S if seconds is None else max(0.0, seconds)) * 1000)
