/**
 * Telling the orchestrator what came of a task, again and again until it answers. The verdict is in the journal before
 * it is told here, so a crash at any point only means that it is told twice.
 */
import type { Entry } from "./book.js";
import type { Clock } from "./clock.js";
import { backoffMs, SENT, type Verdict } from "./decisions.js";
import { failpoint } from "./failpoint.js";
import type { SendError } from "./failures.js";
import { log } from "./log.js";
import {
  Blocked,
  BLOCKED_TRIES,
  type Handle,
  RequestRefused,
  Unavailable,
  type WorkerEvent,
  type WorkerProtocol,
} from "./protocol.js";
import type { Rng } from "./rng.js";
import type { Shift } from "./shift.js";

/** The task that is spoken of. */
export interface Subject {
  readonly taskId: string;
  readonly whatsappId: string;
  readonly to: string;
}

/** A webhook about one message; its id follows from what it says, so a repetition is recognised. */
export function messageEvent(shift: Shift, name: string, subject: Subject, nowMs: number): WorkerEvent {
  return {
    sessionId: shift.sessionId,
    event: name,
    data: { messageId: subject.taskId, to: subject.to, whatsappId: subject.whatsappId },
    timestamp: nowMs,
    eventId: `${name}:${subject.whatsappId}`,
  };
}

/**
 * Verdicts to the orchestrator. Throws StaleEpoch if another instance took over, RequestRefused if our secret is not
 * taken: then nothing was told, and the next life answers from the journal.
 */
export class Reporter {
  constructor(
    private readonly shift: Shift,
    private readonly protocol: WorkerProtocol,
    private readonly clock: Clock,
    private readonly rng: Rng,
  ) {}

  /** Tell the verdict on a task that we hold, and note in the journal that it was told. */
  async report(subject: Subject, handle: Handle, verdict: Verdict): Promise<void> {
    await this.#tell(subject, handle, verdict);
    if (verdict.kind !== "sent" && this.shift.proven(subject.whatsappId)) {
      // A receipt came while we were trying to tell otherwise.
      await this.#tell(subject, handle, SENT);
    }
    this.#noteReported(subject.taskId);
  }

  /**
   * Tell an old result of a task that we no longer hold. That it was sent is a fact at any time; anything else the
   * orchestrator has meanwhile decided for itself.
   */
  async reportLeftover(entry: Entry): Promise<void> {
    if (entry.sent) await this.#tellSent(entry);
    this.#noteReported(entry.taskId);
  }

  async #tell(subject: Subject, handle: Handle, verdict: Verdict): Promise<void> {
    const { epoch } = this.shift.agreed;
    switch (verdict.kind) {
      case "sent":
        await this.#tellSent(subject);
        failpoint("reported-not-acked");
        await this.#untilAnswered(() => this.protocol.ack(handle, epoch, subject.whatsappId));
        failpoint("acked-not-noted");
        break;
      case "not_sent":
        await this.#tellNotSent(handle, true, verdict.error);
        break;
      case "unknown":
        await this.#tellNotSent(handle, false, verdict.error);
    }
  }

  async #tellNotSent(handle: Handle, isCertain: boolean, error?: SendError): Promise<void> {
    const { epoch } = this.shift.agreed;
    const nack = (said?: SendError) => (): Promise<void> => this.protocol.nack(handle, epoch, isCertain, said);
    // The code says what has to be done; the words may be what is not let through.
    await this.#untilAnswered(nack(error), nack(error && { ...error, message: "" }));
  }

  async #tellSent(subject: Subject): Promise<void> {
    const event = messageEvent(this.shift, "MESSAGE_SENT", subject, this.clock.nowMs());
    await this.#untilAnswered(() => this.protocol.webhook(event));
  }

  #noteReported(taskId: string): void {
    if (this.shift.journal.entry(taskId)?.unreported) this.shift.journal.markReported(taskId);
  }

  /** `shorter`: what is said instead if something in between does not let it through. */
  async #untilAnswered(call: () => Promise<void>, shorter = call): Promise<void> {
    let blocked = 0;
    for (let failures = 0; ; failures += 1) {
      try {
        await (blocked < BLOCKED_TRIES ? call() : shorter());
        return;
      } catch (error) {
        if (error instanceof RequestRefused && !error.isAboutUs) {
          log.error("report refused; it is not repeated", { reason: error.message });
          return;
        }
        if (!(error instanceof Unavailable)) throw error;
        if (error instanceof Blocked) blocked += 1;
        log.warning("report not answered; telling it again", { reason: error.message, failures });
      }
      await this.clock.sleepMs(backoffMs(failures, this.rng));
    }
  }
}
