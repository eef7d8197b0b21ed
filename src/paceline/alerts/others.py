"""Every other service, through apprise: one channel for each URL of `ALERT_URLS`.

apprise is imported only if there is one: it knows some hundred services. Its calls block, so each channel has a thread
of its own. What it logs may hold addresses and tokens, so all of that is dropped; of its errors the HTTP status is
shown, nothing else.
"""

import asyncio
import logging
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from paceline.alerts.channels import DELIVERED, TIMEOUT_S, Outcome
from paceline.domain.errors import ConfigError
from paceline.policy.alert_kinds import Severity

if TYPE_CHECKING:
    from apprise import Apprise, AppriseResult

_SEPARATOR = re.compile(r"[\s,]+(?=[A-Za-z][A-Za-z0-9+.-]*://)")
"""A comma inside an address (two recipients of a mail) is none."""
_STATUS = re.compile(r"\berror[ =:]+(\d{3})\b")
_SEVERITY = {Severity.INFO: "info", Severity.WARNING: "warning", Severity.CRITICAL: "failure"}


def split_urls(text: str) -> list[str]:
    return [url for url in _SEPARATOR.split(text.strip().strip(",")) if url]


def other_channels(urls: str) -> Sequence["AppriseChannel"]:
    """A channel for each; all that cannot be one are named by their place in the list."""
    # Imported here: only who uses it pays for it.
    from apprise import Apprise, AppriseAsset, PersistentStoreMode

    _silence()
    # Nothing on the disk: a cache there would hold tokens.
    asset = AppriseAsset(storage_mode=PersistentStoreMode.MEMORY.value, app_id="Paceline", app_desc="Paceline")
    made, faults = [], []
    for place, url in enumerate(split_urls(urls), start=1):
        service = Apprise(asset=asset)
        if service.add(url):
            made.append(AppriseChannel(f"{url.partition('://')[0].lower()}#{place}", service))
        else:
            faults.append(f"ALERT_URLS: entry {place} is no address that apprise knows")
    if faults:
        raise ConfigError(faults)
    return made


def _silence() -> None:
    """What apprise says reaches its own results alone; what urllib3 says holds paths, and tokens are in paths."""
    logger = logging.getLogger("apprise")
    logger.propagate = False
    logger.handlers[:] = [logging.NullHandler()]
    logger.setLevel(logging.WARNING)
    logging.getLogger("urllib3").setLevel(logging.CRITICAL)


class AppriseChannel:
    def __init__(self, name: str, service: "Apprise") -> None:
        self._name = name
        self._service = service
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="alert")

    @property
    def name(self) -> str:
        return self._name

    async def send(self, text: str, severity: Severity) -> Outcome:
        title, _, body = text.partition("\n")
        try:
            async with asyncio.timeout(TIMEOUT_S):
                running = asyncio.get_running_loop().run_in_executor(self._thread, self._notify, title, body, severity)
                return await running
        except TimeoutError:
            # The call itself goes on in its thread; the next one waits behind it and is cut off just so.
            return Outcome(ok=False, reason=f"no answer within {TIMEOUT_S:.0f} s")

    def _notify(self, title: str, body: str, severity: Severity) -> Outcome:
        try:
            # Plain text: nothing in it is markup. Its own limit lies below ours, so that the thread ends.
            found = self._service.notify(
                body=body or title,
                title=title,
                notify_type=_SEVERITY[severity],
                body_format="text",
                timeout=TIMEOUT_S * 0.9,
            )
        except Exception as error:
            # A plugin's fault is a failed delivery like any other. Without its words: they may hold the address.
            return Outcome(ok=False, reason=f"it failed ({type(error).__name__})")
        return DELIVERED if found else Outcome(ok=False, reason=_reason(found))


def _reason(found: "AppriseResult") -> str:
    for result in found.results:
        for attempt in result.attempts:
            for entry in attempt.logs:
                if status := _STATUS.search(str(entry.message)):
                    return f"HTTP {status[1]}"
    return "the service did not take it"
