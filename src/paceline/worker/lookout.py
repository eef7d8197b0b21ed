"""Waiting for a proof: receipts of messages whose outcome is open.

The receipts themselves arrive through `pump`; here one only waits, with limits, and asks the shift.
"""

from collections.abc import Awaitable, Callable, Collection

from paceline.kits.clock import Clock
from paceline.worker.drivers.base import Driver
from paceline.worker.shift import Interrupted, Shift

# Receipts need a connection. Without one for this long the outcome is called unknown; a receipt that comes later
# still corrects it.
RECONNECT_WAIT_MS = 60_000

_LOOK_EVERY_MS = 250

KeepLease = Callable[[], Awaitable[None]]


async def look_for_receipts(
    whatsapp_ids: Collection[str], *, shift: Shift, driver: Driver, clock: Clock, keep_lease: KeepLease
) -> None:
    """Return when all are proven or `unknownGraceMs` after the connection stands, whichever is first; at once when no
    connection will ever stand again."""
    if await _connected(whatsapp_ids, shift, driver, clock, keep_lease):
        until_ms = clock.now_ms() + shift.agreed.unknown_grace_ms
        while clock.now_ms() < until_ms and not _over(whatsapp_ids, shift):
            await _moment(shift, keep_lease)
            await clock.sleep_ms(_LOOK_EVERY_MS)


async def _connected(
    whatsapp_ids: Collection[str], shift: Shift, driver: Driver, clock: Clock, keep_lease: KeepLease
) -> bool:
    until_ms = clock.now_ms() + RECONNECT_WAIT_MS
    while not await driver.wait_connected(_LOOK_EVERY_MS):
        if clock.now_ms() >= until_ms or _over(whatsapp_ids, shift):
            return False
        await _moment(shift, keep_lease)
    return True


async def _moment(shift: Shift, keep_lease: KeepLease) -> None:
    if shift.stopping:
        raise Interrupted
    await keep_lease()


def _over(whatsapp_ids: Collection[str], shift: Shift) -> bool:
    """Whether waiting longer changes nothing: all are decided, or no word can come (banned, logged out, replaced)."""
    return shift.ended_for_good or all(shift.proven(id_) or shift.refused(id_) for id_ in whatsapp_ids)
