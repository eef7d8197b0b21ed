/**
 * Is the number on WhatsApp, under which address, and do we know its devices? Without this Baileys "sends" to nobody
 * and reports success. Answers are kept, questions are paced, and a 429 silences us for a while: asking for many
 * numbers is itself what the platform watches for.
 */
import { CONNECTION_LOST, NOT_ON_WHATSAPP, RATE_LIMIT, type SendError } from "../failures.js";
import type { Clock } from "../clock.js";

/** The questions the guard asks, as a Baileys socket answers them. */
export interface Directory {
  /** "" for a number that is not there; null for no answer, or none that speaks of it. */
  addressOf(number: string): Promise<string | null>;
  /** The addresses of all devices of these people, ours included. */
  devicesOf(jid: string): Promise<string[]>;
}

export type Found =
  { readonly kind: "found"; readonly jid: string } | { readonly kind: "refused"; readonly error: SendError };

export interface GuardTimes {
  readonly guardGapMs: number;
  readonly guardPauseMs: number;
}

// A number that exists today exists tomorrow; one that does not may be registered within the hour.
const FOUND_KEEP_MS = 24 * 3600 * 1000;
const MISSING_KEEP_MS = 3600 * 1000;
const KEEP_NUMBERS = 10_000;

const MISSING: SendError = { code: NOT_ON_WHATSAPP, message: "the number is not on WhatsApp" };

interface Known {
  /** "" for a number that is not there. */
  readonly jid: string;
  readonly untilMs: number;
}

export class Guard {
  readonly #known = new Map<string, Known>();
  #askedAtMs = Number.NEGATIVE_INFINITY;
  #silentUntilMs = 0;

  constructor(
    private readonly clock: Clock,
    private readonly times: GuardTimes,
  ) {}

  async check(number: string, directory: Directory): Promise<Found> {
    try {
      const jid = this.#recall(number) ?? (await this.#ask(number, directory));
      if (jid === "") return { kind: "refused", error: MISSING };
      if (jid === null) return unanswered("the number check");
      const devices = await this.#paced(() => directory.devicesOf(jid), false);
      // The library keeps devices for five minutes, so this is mostly no question at all.
      return devices.length > 0 ? { kind: "found", jid } : unanswered("the question for its devices");
    } catch (error) {
      if (!isRateLimit(error)) throw error;
      if (!(error instanceof StillSilent)) this.#silentUntilMs = this.clock.nowMs() + this.times.guardPauseMs;
      return { kind: "refused", error: { code: RATE_LIMIT, message: "429: too many number checks" } };
    }
  }

  /** The contact's picture was stale (479): ask anew. */
  forget(number: string): void {
    this.#known.delete(number);
  }

  async #ask(number: string, directory: Directory): Promise<string | null> {
    const jid = await this.#paced(() => directory.addressOf(number), true);
    if (jid === null) return null;
    const untilMs = this.clock.nowMs() + (jid ? FOUND_KEEP_MS : MISSING_KEEP_MS);
    this.#known.delete(number);
    this.#known.set(number, { jid, untilMs });
    // A Map gives its keys in the order they were set: the first is the oldest.
    if (this.#known.size > KEEP_NUMBERS) this.#known.delete(this.#known.keys().next().value ?? "");
    return jid;
  }

  #recall(number: string): string | null {
    const known = this.#known.get(number);
    return known && known.untilMs > this.clock.nowMs() ? known.jid : null;
  }

  async #paced<T>(question: () => Promise<T>, isCounted: boolean): Promise<T> {
    const nowMs = this.clock.nowMs();
    if (nowMs < this.#silentUntilMs) throw new StillSilent();
    const waitMs = isCounted ? this.#askedAtMs + this.times.guardGapMs - nowMs : 0;
    if (waitMs > 0) await this.clock.sleepMs(waitMs);
    if (isCounted) this.#askedAtMs = this.clock.nowMs();
    return question();
  }
}

/** We were told 429 a moment ago and do not ask again yet. */
class StillSilent extends Error {
  readonly data = 429;
}

function unanswered(what: string): Found {
  return { kind: "refused", error: { code: CONNECTION_LOST, message: `${what} got no answer` } };
}

function isRateLimit(error: unknown): boolean {
  const { data, output } = (error ?? {}) as { data?: unknown; output?: { statusCode?: number } };
  return Number(data) === 429 || output?.statusCode === 429;
}
