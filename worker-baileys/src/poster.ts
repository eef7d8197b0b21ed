/**
 * Posting webhooks: one after the other, in the order they were given but for receipts, which wait for all else; each
 * until it is answered; pings in between. A loop of its own, because a call to an orchestrator that stands still takes
 * ten seconds, and whoever takes in driver events must not wait for that. What was said of messages is on the disk until
 * it is answered (`event-file.ts`); what is said of the session itself is only good for this life.
 *
 * What something in between does not let through (a firewall that dislikes a person's text) is put aside after a few
 * tries and tried again when nothing else waits. Words on the session still come in their order: a later one waits for it.
 */
import type { ReceiptKind } from "./book.js";
import type { Clock, Wake } from "./clock.js";
import { backoffMs } from "./decisions.js";
import { failpoint } from "./failpoint.js";
import { log } from "./log.js";
import {
  Blocked,
  BLOCKED_TRIES,
  ProtocolError,
  RequestRefused,
  Unavailable,
  type WorkerEvent,
  type WorkerProtocol,
} from "./protocol.js";
import type { Rng } from "./rng.js";
import type { Shift } from "./shift.js";

// Five days of receipts of the busiest phone; beyond that something is dropped, see `rankOf`.
export const MAX_WAITING = 5_000;
// Until the next of those that were put aside is tried: each try is a line in the log.
const ASIDE_MS = 60_000;
// Whoever has something to post wakes the poster; this only says "for long".
const IDLE_MS = 3_600_000;

type Data = Readonly<Record<string, unknown>>;

const RECEIPTS: Readonly<Record<string, ReceiptKind>> = { MESSAGE_DELIVERED: "delivered", MESSAGE_READ: "read" };

/** Where events wait over a crash. All calls are durable when they return. */
export interface EventStore {
  /** What an earlier life left, in order. */
  all(): readonly WorkerEvent[];
  /** False if that event waits already. */
  add(event: WorkerEvent): boolean;
  remove(event: WorkerEvent): void;
}

interface Post {
  readonly event: WorkerEvent;
  readonly isKept: boolean;
  blocked: number;
  triedAtMs: number;
}

function newPost(event: WorkerEvent, isKept: boolean): Post {
  return { event, isKept, blocked: 0, triedAtMs: 0 };
}

function isAside({ blocked }: Post): boolean {
  return blocked >= BLOCKED_TRIES;
}

/** A later one of these may take back what an earlier one says. */
function isOfSession({ event }: WorkerEvent): boolean {
  return !event.startsWith("MESSAGE_");
}

/**
 * What is missed least comes first: a later word on the connection replaces an earlier one, a receipt is one of several
 * proofs, and what a person wrote is nowhere else.
 */
function rankOf({ event, isKept }: Post): number {
  if (!isKept) return 0;
  return isReceipt(event) ? 1 : 2;
}

/** Nobody waits for it; it must not hold back a "stop", a result or the end of a connection. */
function isReceipt({ event }: WorkerEvent): boolean {
  return event in RECEIPTS;
}

export interface PosterParts {
  readonly shift: Shift;
  readonly protocol: WorkerProtocol;
  readonly store: EventStore;
  readonly clock: Clock;
  readonly rng: Rng;
  readonly wake: Wake;
  /** 0 sends no pings. */
  readonly pingEveryMs: number;
  /** For how long WhatsApp has not been heard; the watchdog is told with each ping. */
  readonly quietMs: () => number | null;
}

/** Where our secret is refused `core` ends, and the event waits for who has the right one. */
function wasNotHeard(error: ProtocolError): boolean {
  return error instanceof Unavailable || (error instanceof RequestRefused && error.isAboutUs);
}

/** Webhooks to the orchestrator. `post` and `tell` only put something in the line; `run` works it off. */
export class Poster {
  readonly #waiting: Post[];
  #events = 0;
  // A runner may start an instance again after a crash; its second life must not repeat the ids of the first.
  readonly #life: number;
  #failures = 0;
  #retryAtMs = 0;
  #asideAtMs = 0;
  #pingAtMs = 0;

  constructor(private readonly parts: PosterParts) {
    this.#life = parts.clock.nowMs();
    this.#waiting = parts.store.all().map((event) => newPost(event, true));
  }

  /** Have this fact told, whatever happens to this process: it is on the disk when this returns. */
  post(event: WorkerEvent): void {
    if (this.parts.store.add(event)) this.#queue(newPost(event, true));
  }

  /** Have an event of the session told, while this process lives. */
  tell(name: string, data: Data, atMs?: number): void {
    this.#queue(newPost(this.#sessionEvent(name, this.#ofNow(data), atMs), false));
  }

  /** Have an event of the session told, whatever happens to this process: it is true in any epoch. */
  tellSurely(name: string, data: Data): void {
    this.post(this.#sessionEvent(name, data));
  }

  /** Post one event of the session now, once, whatever becomes of it. */
  async say(name: string, data: Data): Promise<void> {
    try {
      await this.parts.protocol.webhook(this.#sessionEvent(name, this.#ofNow(data)));
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      log.info("webhook not delivered", { name, reason: error.message });
    }
  }

  async run(): Promise<never> {
    const { clock, wake, quietMs, pingEveryMs } = this.parts;
    for (;;) {
      const nowMs = clock.nowMs();
      const post = this.#next();
      if (this.#pings && this.#pingAtMs <= nowMs) {
        this.#pingAtMs = nowMs + pingEveryMs;
        const quiet = quietMs();
        await this.say("PING", quiet === null ? {} : { quietMs: quiet });
      } else if (post && this.#dueAtMs(post) <= nowMs) {
        await this.#post(post, nowMs);
      } else {
        await wake.waitMs(this.#idleMs(post, nowMs));
      }
    }
  }

  #queue(post: Post): void {
    this.#waiting.push(post);
    if (this.#waiting.length > MAX_WAITING) this.#dropOne();
    this.parts.wake.notify();
  }

  /** The oldest of those that are missed least. */
  #dropOne(): void {
    const least = Math.min(...this.#waiting.map(rankOf));
    const [dropped] = this.#waiting.splice(this.#waiting.findIndex((post) => rankOf(post) === least), 1);
    if (!dropped) return;
    if (dropped.isKept) this.parts.store.remove(dropped.event);
    log.error("too many webhooks wait; one is dropped", { name: dropped.event.event });
  }

  get #pings(): boolean {
    return this.parts.pingEveryMs > 0 && this.parts.shift.terms !== null;
  }

  #idleMs(post: Post | undefined, nowMs: number): number {
    const timers = [IDLE_MS];
    if (post) timers.push(this.#dueAtMs(post) - nowMs);
    if (this.#pings) timers.push(this.#pingAtMs - nowMs);
    return Math.min(...timers);
  }

  /** The first in line. If all that may go are put aside: the one that was tried longest ago. */
  #next(): Post | undefined {
    let receipt: Post | undefined;
    let aside: Post | undefined;
    let sessionWaits = false;
    for (const post of this.#waiting) {
      const { event } = post;
      if (sessionWaits && isOfSession(event)) continue;
      if (isAside(post)) {
        sessionWaits ||= isOfSession(event);
        if (!aside || post.triedAtMs < aside.triedAtMs) aside = post;
      } else if (isReceipt(event)) receipt ??= post;
      else return post;
    }
    return receipt ?? aside;
  }

  #dueAtMs(post: Post): number {
    return isAside(post) ? Math.max(this.#retryAtMs, this.#asideAtMs) : this.#retryAtMs;
  }

  #putOff(post: Post, error: ProtocolError): void {
    const { clock, rng } = this.parts;
    const about = { name: post.event.event, reason: error.message };
    if (error instanceof Blocked) post.blocked += 1;
    if (isAside(post)) {
      this.#asideAtMs = clock.nowMs() + ASIDE_MS;
      log.error("webhook not let through; the others go first", about);
      return;
    }
    this.#retryAtMs = clock.nowMs() + backoffMs(this.#failures, rng);
    this.#failures += 1;
    log.warning("webhook not answered; posting it again", about);
  }

  async #post(post: Post, nowMs: number): Promise<void> {
    post.triedAtMs = nowMs;
    try {
      await this.parts.protocol.webhook(post.event);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      if (wasNotHeard(error)) {
        this.#putOff(post, error);
        return;
      }
      log.error("webhook refused; it is not repeated", { name: post.event.event, reason: error.message });
    }
    this.#failures = 0;
    // A line that is full drops one, perhaps this one, while it is on its way.
    const place = this.#waiting.indexOf(post);
    if (place >= 0) this.#waiting.splice(place, 1);
    if (post.isKept) this.#forget(post.event);
  }

  /** It was told. That of a receipt is noted in the journal first, or a repetition of it would be news again. */
  #forget(event: WorkerEvent): void {
    const { shift, store } = this.parts;
    const receipt = RECEIPTS[event.event];
    if (receipt) shift.journal.markReceipt(String(event.data["whatsappId"]), receipt);
    failpoint("told-not-forgotten");
    store.remove(event);
  }

  /** With the epoch a late word of an old instance can be told from one of the present. */
  #ofNow(data: Data): Data {
    return { ...data, epoch: this.parts.shift.terms?.epoch ?? 0 };
  }

  #sessionEvent(name: string, data: Data, atMs?: number): WorkerEvent {
    const { shift, clock } = this.parts;
    this.#events += 1;
    return {
      sessionId: shift.sessionId,
      event: name,
      data,
      timestamp: atMs ?? clock.nowMs(),
      eventId: `${shift.instanceId}:${this.#life}:${this.#events}`,
    };
  }
}
