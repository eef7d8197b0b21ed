/**
 * What the parts of one worker share: the terms it works under, what time it is, and what it knows to be out. Plain
 * data with a few questions. `core` owns it; `sender`, `recovery`, `pump`, `poster` and `reporter` read and note.
 */
import type { SendError } from "./failures.js";
import type { Journal } from "./journal.js";
import type { ByRaw, HelloAnswer } from "./protocol.js";
import { ServerTime } from "./servertime.js";

/**
 * The worker was asked to stop while nothing could be said of a task yet. Its journal and the next `hello` see to it.
 */
export class Interrupted extends Error {}

/** Our hold on a claimed task. */
export class Lease {
  lost = false;

  constructor(
    readonly handle: ByRaw,
    public untilMs: number,
  ) {}
}

/** One worker's working life. */
export class Shift {
  terms: HelloAnswer | null = null;
  stopping = false;
  /** Another instance took over; finish what is in the air and go. */
  stale = false;
  /** The connection ended in a way after which none is opened again: no receipt can come any more. */
  endedForGood = false;
  /** An operator asked for the logout that is under way: its end is told as such, not as a loss. */
  loggingOut = false;
  /** The whatsappId that the sender is busy with. */
  inFlight: string | null = null;
  readonly #seen = new Set<string>();
  readonly #refusals = new Map<string, SendError>();

  constructor(
    readonly sessionId: string,
    readonly instanceId: string,
    readonly journal: Journal,
    readonly time = new ServerTime(),
  ) {}

  /** The terms, for those who only work once there are some. */
  get agreed(): HelloAnswer {
    if (this.terms === null) throw new Error("no hello has been answered yet");
    return this.terms;
  }

  takeUp(whatsappId: string): void {
    this.#forget();
    this.inFlight = whatsappId;
  }

  putDown(): void {
    this.#forget();
    this.inFlight = null;
  }

  /** WhatsApp spoke of this message, so it has it. */
  noteProof(whatsappId: string): void {
    this.#seen.add(whatsappId);
  }

  /** The server said no, perhaps after the sender's patience had ended. */
  noteRefusal(whatsappId: string, error: SendError): void {
    if (whatsappId === this.inFlight) this.#refusals.set(whatsappId, error);
  }

  refused(whatsappId: string): SendError | null {
    return this.#refusals.get(whatsappId) ?? null;
  }

  proven(whatsappId: string): boolean {
    return this.#seen.has(whatsappId) || this.journal.find(whatsappId)?.sent === true;
  }

  #forget(): void {
    this.#seen.clear();
    this.#refusals.clear();
  }
}
