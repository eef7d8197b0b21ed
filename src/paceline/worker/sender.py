"""Sending one claimed task: look in the journal, get its file, wait, type, note the intent, write, wait for the ack.

The order of the steps is the promise: the intent is on the disk before the write, the window is checked after the
intent and directly before the write, and the verdict is in the journal before anybody is told.
"""

from paceline.domain.failures import MEDIA_UNAVAILABLE, NO_ACK, SEND_FAILED
from paceline.domain.ids import whatsapp_id
from paceline.domain.media import MODES, sha256_of
from paceline.kits.clock import Clock
from paceline.kits.failpoint import failpoint
from paceline.kits.rng import Rng
from paceline.worker.book import Intent, Result, SendError
from paceline.worker.decisions import (
    LookFirst,
    MaySend,
    NotSent,
    Sent,
    Unknown,
    Verdict,
    before_sending,
    lease_needs_extension,
    outcome_of,
    plan_sending,
    unproven,
    window_open,
)
from paceline.worker.drivers.base import (
    Accepted,
    Driver,
    Lost,
    NotConnected,
    OutgoingMedia,
    OutgoingMessage,
    Refused,
    SendOutcome,
)
from paceline.worker.lookout import look_for_receipts
from paceline.worker.media import MediaKeeper, MediaUnavailable
from paceline.worker.protocol import (
    ClaimedTask,
    ProtocolUnavailable,
    RequestRefused,
    StaleEpoch,
    WorkerProtocol,
)
from paceline.worker.shift import Lease, Shift

# What whatsmeow gives the server before it calls a message unanswered.
ACK_TIMEOUT_MS = 75_000
# How often the wait for an ack looks at the lease and at receipts, which prove the same.
_ACK_SLICE_MS = 1_000
# A worker that is asked to stop gives an unsent task back within this.
_NAP_MS = 1_000


class Sender:
    """Brings one task at a time to a verdict, which is in the journal when it is returned."""

    def __init__(self, shift: Shift, *, protocol: WorkerProtocol, driver: Driver, clock: Clock, rng: Rng) -> None:
        self._shift = shift
        self._journal = shift.journal
        self._protocol = protocol
        self._media = MediaKeeper(protocol)
        self._driver = driver
        self._clock = clock
        self._rng = rng

    async def send(self, task: ClaimedTask, lease: Lease) -> Verdict:
        if task.mode not in MODES or (task.mode == "message") != (task.media_ref is None):
            return NotSent(SendError(SEND_FAILED, f"this worker cannot send mode {task.mode!r} so"))
        match before_sending(self._journal.entry(task.task_id), resend=task.resend):
            case Sent():
                return Sent()
            case LookFirst():
                return await self._look(task, lease, unproven(self._journal.entry(task.task_id)))
            case MaySend():
                return await self._send_new(task, lease)

    async def _send_new(self, task: ClaimedTask, lease: Lease) -> Verdict:
        try:
            media = await self._media_of(task, lease)
        except MediaUnavailable as error:
            # Nothing of this try is out. What an earlier one left in the journal stays there.
            return NotSent(SendError(MEDIA_UNAVAILABLE, str(error)))
        try:
            if not await self._type_until_due(task):
                return NotSent()
        except NotConnected:
            return NotSent()
        message_id = whatsapp_id(task.task_id)
        if self._shift.proven(message_id):
            # A receipt of an earlier attempt came while we were typing.
            return Sent()
        await self._journal.intend(
            Intent(
                task_id=task.task_id,
                whatsapp_id=message_id,
                to=task.to,
                attempt=task.attempt,
                at=self._clock.now_ms(),
                request_id=task.request_id,
            )
        )
        failpoint("intent-written")
        outgoing = OutgoingMessage(task.task_id, message_id, task.to, task.text, task.mode, media)
        return await self._write(task, outgoing, lease)

    async def _media_of(self, task: ClaimedTask, lease: Lease) -> OutgoingMedia | None:
        """The task's file, before anybody sees us typing."""
        if task.media_ref is None:
            return None
        content = await self._media.get(task.media_ref, task.media_size)
        await self._keep(lease)
        return OutgoingMedia(sha256_of(task.media_ref), task.media_type, content, task.media_name)

    async def _write(self, task: ClaimedTask, outgoing: OutgoingMessage, lease: Lease) -> Verdict:
        # The fsync of the intent may have taken its time: the window is checked again, directly before the write.
        if not self._window_open(task):
            return await self._conclude(task, NotSent())
        try:
            await self._driver.write(outgoing)
        except NotConnected:
            return await self._conclude(task, NotSent())
        match await self._ack_of(outgoing.whatsapp_id, lease):
            case Accepted():
                failpoint("sent-not-reported")
                return await self._conclude(task, Sent())
            case Refused(code=code, message=message):
                return await self._conclude(task, NotSent(SendError(code, message)))
            case Lost(reason=reason):
                return await self._look(task, lease, Unknown(SendError(NO_ACK, reason)))

    async def _type_until_due(self, task: ClaimedTask) -> bool:
        """Wait and type until the task may go. False if it cannot go any more, or should not because we stop."""
        typing = self._shift.agreed.typing
        plan = plan_sending(
            self._shift.time.earliest(self._clock.now_ms()),
            send_after_ms=task.send_after_ms,
            send_before_ms=task.send_before_ms,
            typing_ms=self._rng.randint(typing.min_ms, typing.max_ms),
        )
        if plan is None or not await self._wait_until(plan.type_at_ms):
            return False
        await self._driver.show_typing(task.to)
        return await self._wait_until(plan.send_at_ms) and self._window_open(task)

    async def _wait_until(self, server_ms: int) -> bool:
        while not self._shift.stopping:
            left_ms = server_ms - self._shift.time.earliest(self._clock.now_ms())
            if left_ms <= 0:
                return True
            await self._clock.sleep_ms(min(left_ms, _NAP_MS))
        return False

    def _window_open(self, task: ClaimedTask) -> bool:
        now_ms = self._clock.now_ms()
        return window_open(
            earliest_ms=self._shift.time.earliest(now_ms),
            latest_ms=self._shift.time.latest(now_ms),
            send_after_ms=task.send_after_ms,
            send_before_ms=task.send_before_ms,
        )

    async def _ack_of(self, message_id: str, lease: Lease) -> SendOutcome:
        until_ms = self._clock.now_ms() + ACK_TIMEOUT_MS
        while (left_ms := until_ms - self._clock.now_ms()) > 0:
            outcome = await self._driver.wait_ack(message_id, min(left_ms, _ACK_SLICE_MS))
            if outcome is not None:
                return outcome
            if self._shift.proven(message_id):
                return Accepted()
            await self._keep(lease)
        return Lost(f"no ack within {ACK_TIMEOUT_MS // 1000} s")

    async def _look(self, task: ClaimedTask, lease: Lease, otherwise: Verdict) -> Verdict:
        """The verdict once there was time for a receipt."""
        await look_for_receipts(
            {whatsapp_id(task.task_id)},
            shift=self._shift,
            driver=self._driver,
            clock=self._clock,
            keep_lease=lambda: self._keep(lease),
        )
        if refusal := self._shift.refused(whatsapp_id(task.task_id)):
            otherwise = NotSent(SendError(refusal.code, refusal.message))
        return await self._conclude(task, otherwise)

    async def _conclude(self, task: ClaimedTask, verdict: Verdict) -> Verdict:
        """Put the verdict in the journal; a proof that came meanwhile outweighs any other."""
        if self._shift.proven(whatsapp_id(task.task_id)):
            verdict = Sent()
        outcome, error = outcome_of(verdict)
        await self._journal.conclude(Result(task.task_id, outcome, self._clock.now_ms(), error))
        return verdict

    async def _keep(self, lease: Lease) -> None:
        """Extend the lease in time. Refused or not, one goes on waiting: a SENT is a fact from any epoch."""
        latest_ms = self._shift.time.latest(self._clock.now_ms())
        if lease.lost or not lease_needs_extension(
            latest_ms=latest_ms, lease_until_ms=lease.until_ms, lease_ms=self._shift.agreed.lease_ms
        ):
            return
        try:
            lease.until_ms = await self._protocol.extend(lease.handle, epoch=self._shift.agreed.epoch)
        except StaleEpoch:
            lease.lost = self._shift.stale = True
        except RequestRefused:
            lease.lost = True
        except ProtocolUnavailable:
            return
