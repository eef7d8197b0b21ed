/**
 * Posting webhooks: one after the other, in the order they were given, each until it is answered; pings in between. A
 * loop of its own, because a call to an orchestrator that stands still takes ten seconds, and whoever takes in driver
 * events must not wait for that.
 */
import type { ReceiptKind } from "./book.js";
import type { Clock, Wake } from "./clock.js";
import { backoffMs } from "./decisions.js";
import { log } from "./log.js";
import { ProtocolError, Unavailable, type WorkerEvent, type WorkerProtocol } from "./protocol.js";
import type { Rng } from "./rng.js";
import type { Shift } from "./shift.js";

// Five days of receipts of the busiest phone; beyond that the oldest are dropped, and told again after a restart.
const MAX_WAITING = 5_000;
// Whoever has something to post wakes the poster; this only says "for long".
const IDLE_MS = 3_600_000;

type Data = Readonly<Record<string, unknown>>;

interface Post {
  readonly event: WorkerEvent;
  readonly receipt?: readonly [string, ReceiptKind];
}

export interface PosterParts {
  readonly shift: Shift;
  readonly protocol: WorkerProtocol;
  readonly clock: Clock;
  readonly rng: Rng;
  readonly wake: Wake;
  /** 0 sends no pings. */
  readonly pingEveryMs: number;
  /** For how long WhatsApp has not been heard; the watchdog is told with each ping. */
  readonly quietMs: () => number | null;
}

/** Webhooks to the orchestrator. `post` and `tell` only put something in the line; `run` works it off. */
export class Poster {
  readonly #waiting: Post[] = [];
  #events = 0;
  // A runner may start an instance again after a crash; its second life must not repeat the ids of the first.
  readonly #life: number;
  #failures = 0;
  #retryAtMs = 0;
  #pingAtMs = 0;

  constructor(private readonly parts: PosterParts) {
    this.#life = parts.clock.nowMs();
  }

  /** Have this told. That a receipt was told is noted in the journal. */
  post(event: WorkerEvent, receipt?: readonly [string, ReceiptKind]): void {
    this.#waiting.push(receipt ? { event, receipt } : { event });
    if (this.#waiting.length > MAX_WAITING) this.#waiting.shift();
    this.parts.wake.notify();
  }

  /** Have an event of the session told. */
  tell(name: string, data: Data): void {
    this.post(this.#sessionEvent(name, data));
  }

  /** Post one event of the session now, once, whatever becomes of it. */
  async say(name: string, data: Data): Promise<void> {
    try {
      await this.parts.protocol.webhook(this.#sessionEvent(name, data));
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      log.info("webhook not delivered", { name, reason: error.message });
    }
  }

  async run(): Promise<never> {
    const { clock, wake, quietMs, pingEveryMs } = this.parts;
    for (;;) {
      const nowMs = clock.nowMs();
      if (this.#pings && this.#pingAtMs <= nowMs) {
        this.#pingAtMs = nowMs + pingEveryMs;
        const quiet = quietMs();
        await this.say("PING", quiet === null ? {} : { quietMs: quiet });
      } else if (this.#waiting.length > 0 && this.#retryAtMs <= nowMs) {
        await this.#postFirst();
      } else {
        await wake.waitMs(this.#idleMs(nowMs));
      }
    }
  }

  get #pings(): boolean {
    return this.parts.pingEveryMs > 0 && this.parts.shift.terms !== null;
  }

  #idleMs(nowMs: number): number {
    const timers = [IDLE_MS];
    if (this.#waiting.length > 0) timers.push(this.#retryAtMs - nowMs);
    if (this.#pings) timers.push(this.#pingAtMs - nowMs);
    return Math.min(...timers);
  }

  async #postFirst(): Promise<void> {
    const { clock, rng, protocol, shift } = this.parts;
    const post = this.#waiting[0];
    if (!post) return;
    try {
      await protocol.webhook(post.event);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      if (error instanceof Unavailable) {
        this.#retryAtMs = clock.nowMs() + backoffMs(this.#failures, rng);
        this.#failures += 1;
        log.warning("webhook not answered; posting it again", { name: post.event.event, reason: error.message });
        return;
      }
      log.error("webhook refused; it is not repeated", { name: post.event.event, reason: error.message });
    }
    this.#failures = 0;
    // A line that is full drops its head, perhaps this one, while it is on its way.
    if (this.#waiting[0] === post) this.#waiting.shift();
    if (post.receipt) shift.journal.markReceipt(...post.receipt);
  }

  #sessionEvent(name: string, data: Data): WorkerEvent {
    const { shift, clock } = this.parts;
    this.#events += 1;
    return {
      sessionId: shift.sessionId,
      event: name,
      // With the epoch a late word of an old instance can be told from one of the present.
      data: { ...data, epoch: shift.terms?.epoch ?? 0 },
      timestamp: clock.nowMs(),
      eventId: `${shift.instanceId}:${this.#life}:${this.#events}`,
    };
  }
}
