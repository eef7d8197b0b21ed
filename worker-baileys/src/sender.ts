/**
 * Sending one claimed task: look in the journal, get its file, ask for the recipient, wait, type, note the intent,
 * write, wait for the server's ack.
 *
 * The order of the steps is the promise: the intent is on the disk before the write, the window is checked after the
 * intent and in the very moment of the write, and the verdict is in the journal before anybody is told.
 */
import type { Clock } from "./clock.js";
import {
  beforeSending,
  GIVEN_BACK,
  leaseNeedsExtension,
  outcomeOf,
  planSending,
  refused,
  SENT,
  unproven,
  type Verdict,
  windowOpen,
} from "./decisions.js";
import {
  type Driver,
  NotConnected,
  NotWritten,
  type OutgoingMessage,
  type Ready,
  type SendOutcome,
} from "./driver/port.js";
import { failpoint } from "./failpoint.js";
import { MEDIA_UNAVAILABLE, NO_ACK, SEND_FAILED } from "./failures.js";
import { whatsappId } from "./ids.js";
import { log } from "./log.js";
import { lookForReceipts } from "./lookout.js";
import { MediaKeeper, MediaUnavailable } from "./media.js";
import { type ClaimedTask, RequestRefused, StaleEpoch, Unavailable, type WorkerProtocol } from "./protocol.js";
import type { Rng } from "./rng.js";
import type { Lease, Shift } from "./shift.js";

// How often the wait for an ack looks at the lease and at receipts, which prove the same.
const ACK_SLICE_MS = 1_000;
// A worker that is asked to stop gives an unsent task back within this.
const NAP_MS = 500;

const MODES = new Set(["message", "image", "document"]);

export interface SenderParts {
  readonly shift: Shift;
  readonly protocol: WorkerProtocol;
  readonly driver: Driver;
  readonly clock: Clock;
  readonly rng: Rng;
  readonly ackMs: number;
}

/** Brings one task at a time to a verdict, which is in the journal when it is returned. */
export class Sender {
  readonly #media: MediaKeeper;

  constructor(private readonly parts: SenderParts) {
    this.#media = new MediaKeeper(parts.protocol);
  }

  async send(task: ClaimedTask, lease: Lease): Promise<Verdict> {
    const mode = task.mode ?? "message";
    if (!MODES.has(mode) || (mode === "message") !== !task.mediaRef) {
      return refused({ code: SEND_FAILED, message: `this worker cannot send mode ${mode} so` });
    }
    const entry = this.parts.shift.journal.entry(task.taskId);
    switch (beforeSending(entry, task.resend === true)) {
      case "sent":
        return SENT;
      case "look_first":
        return this.#look(task, lease, unproven(entry));
      case "may_send":
        return this.#sendNew(task, lease);
    }
  }

  async #sendNew(task: ClaimedTask, lease: Lease): Promise<Verdict> {
    const { shift, driver, clock } = this.parts;
    let ready: Ready;
    try {
      const prepared = await driver.prepare(await this.#outgoing(task));
      if (prepared.kind === "refused") return refused(prepared.error);
      ready = prepared;
      await this.#keep(lease);
      failpoint("prepared-not-typed");
      if (!(await this.#typeUntilDue(task, ready))) return GIVEN_BACK;
      failpoint("typed-not-intended");
    } catch (error) {
      // Nothing of this try is out. What an earlier one left in the journal stays there.
      if (error instanceof MediaUnavailable) return refused({ code: MEDIA_UNAVAILABLE, message: error.message });
      if (error instanceof NotConnected) return GIVEN_BACK;
      throw error;
    }
    const messageId = whatsappId(task.taskId);
    // A receipt of an earlier attempt may have come while we were typing.
    if (shift.proven(messageId)) return SENT;
    const { taskId, to, attempt } = task;
    shift.journal.intend({ taskId, whatsappId: messageId, to, attempt, at: clock.nowMs() });
    failpoint("intent-written");
    return this.#write(task, ready, lease);
  }

  /** The message with its file, before anybody sees us typing. */
  async #outgoing(task: ClaimedTask): Promise<OutgoingMessage> {
    const { mediaRef, mediaSize = 0, mediaType = "", mediaName } = task;
    const media = mediaRef
      ? { type: mediaType, content: await this.#media.get(mediaRef, mediaSize), name: mediaName }
      : null;
    const mode = (task.mode ?? "message") as OutgoingMessage["mode"];
    return { whatsappId: whatsappId(task.taskId), to: task.to, text: task.text, mode, media };
  }

  async #write(task: ClaimedTask, ready: Ready, lease: Lease): Promise<Verdict> {
    const { driver } = this.parts;
    try {
      // The fsync of the intent and the encryption took their time: the driver asks again in the moment of the write.
      if (!this.#windowOpen(task)) return this.#conclude(task, GIVEN_BACK);
      const written = await driver.write(ready, () => this.#windowOpen(task));
      if (!written) return this.#conclude(task, GIVEN_BACK);
    } catch (error) {
      if (error instanceof NotConnected) return this.#conclude(task, GIVEN_BACK);
      if (error instanceof NotWritten)
        return this.#conclude(task, refused({ code: SEND_FAILED, message: error.message }));
      log.warning("the write broke off", { whatsappId: ready.outgoing.whatsappId, reason: String(error) });
      return this.#look(task, lease, unknownBecause(String(error)));
    }
    failpoint("written-not-acked");
    const outcome = await this.#ackOf(ready.outgoing.whatsappId, lease);
    switch (outcome.kind) {
      case "accepted":
        failpoint("sent-not-reported");
        return this.#conclude(task, SENT);
      case "refused":
        return this.#conclude(task, refused(outcome.error));
      case "lost":
        return this.#look(task, lease, unknownBecause(outcome.reason));
    }
  }

  /** Wait and type until the task may go. False if it cannot go any more, or should not because we stop. */
  async #typeUntilDue(task: ClaimedTask, ready: Ready): Promise<boolean> {
    const { shift, clock, rng, driver } = this.parts;
    const { minMs, maxMs } = shift.agreed.typing;
    const plan = planSending(shift.time.earliest(clock.nowMs()), task, rng.integer(minMs, maxMs));
    if (plan === null || !(await this.#waitUntil(plan.typeAtMs))) return false;
    await driver.showTyping(ready);
    return (await this.#waitUntil(plan.sendAtMs)) && this.#windowOpen(task);
  }

  async #waitUntil(serverMs: number): Promise<boolean> {
    const { shift, clock } = this.parts;
    while (!shift.stopping) {
      const leftMs = serverMs - shift.time.earliest(clock.nowMs());
      if (leftMs <= 0) return true;
      await clock.sleepMs(Math.min(leftMs, NAP_MS));
    }
    return false;
  }

  #windowOpen(task: ClaimedTask): boolean {
    const { shift, clock } = this.parts;
    const nowMs = clock.nowMs();
    return windowOpen({ earliestMs: shift.time.earliest(nowMs), latestMs: shift.time.latest(nowMs) }, task);
  }

  async #ackOf(messageId: string, lease: Lease): Promise<SendOutcome> {
    const { shift, clock, driver, ackMs } = this.parts;
    const untilMs = clock.nowMs() + ackMs;
    for (let leftMs = ackMs; leftMs > 0; leftMs = untilMs - clock.nowMs()) {
      const outcome = await driver.waitAck(messageId, Math.min(leftMs, ACK_SLICE_MS));
      if (outcome) return outcome;
      if (shift.proven(messageId)) return { kind: "accepted" };
      await this.#keep(lease);
    }
    return { kind: "lost", reason: `no ack within ${Math.round(ackMs / 1000)} s` };
  }

  /** The verdict once there was time for a receipt. */
  async #look(task: ClaimedTask, lease: Lease, otherwise: Verdict): Promise<Verdict> {
    const { shift, driver, clock } = this.parts;
    const messageId = whatsappId(task.taskId);
    await lookForReceipts([messageId], { shift, driver, clock, keepLease: () => this.#keep(lease) });
    const refusal = shift.refused(messageId);
    return this.#conclude(task, refusal ? refused(refusal) : otherwise);
  }

  /** Put the verdict in the journal; a proof that came meanwhile outweighs any other. */
  #conclude(task: ClaimedTask, verdict: Verdict): Verdict {
    const { shift, clock } = this.parts;
    const final = shift.proven(whatsappId(task.taskId)) ? SENT : verdict;
    shift.journal.conclude({ taskId: task.taskId, at: clock.nowMs(), ...outcomeOf(final) });
    failpoint("concluded-not-reported");
    return final;
  }

  /** Extend the lease in time. Refused or not, one goes on waiting: a SENT is a fact from any epoch. */
  async #keep(lease: Lease): Promise<void> {
    const { shift, clock, protocol } = this.parts;
    const latestMs = shift.time.latest(clock.nowMs());
    if (lease.lost || !leaseNeedsExtension(latestMs, lease.untilMs, shift.agreed.leaseMs)) return;
    try {
      lease.untilMs = await protocol.extend(lease.handle, shift.agreed.epoch);
    } catch (error) {
      if (error instanceof StaleEpoch) lease.lost = shift.stale = true;
      else if (error instanceof RequestRefused) lease.lost = true;
      else if (!(error instanceof Unavailable)) throw error;
    }
  }
}

function unknownBecause(reason: string): Verdict {
  return { kind: "unknown", error: { code: NO_ACK, message: reason } };
}
