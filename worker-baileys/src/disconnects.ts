/**
 * How connections end, as one table: what each code means and what the worker does about it. The codes are Baileys'
 * `DisconnectReason` and the numbers WhatsApp's server gives; the orchestrator reads the same codes in
 * `paceline.domain.sessions`, whose rows these match. Walked by `pump`; `driver/endings.ts` finds the code.
 */
import type { Rng } from "./rng.js";

/**
 * at_once: normal, connect again · backoff: with growing pauses · long_pause: we asked too often · stop: a person's
 * turn.
 */
export type Action = "at_once" | "backoff" | "long_pause" | "stop";

export interface Rule {
  readonly action: Action;
  readonly why: string;
}

export const LOGGED_OUT = 401;
export const TIMED_OUT = 408;
export const NO_LINKED_DEVICES = 411;
export const CONNECTION_CLOSED = 428;
export const TOO_MANY = 429;
export const SERVER_FAILED = 500;
export const QR_ENDED = "QR_ENDED";
export const WRONG_NUMBER = "WRONG_NUMBER";

export const TABLE: Readonly<Record<string, Rule>> = {
  "401": { action: "stop", why: "logged out by the phone or the platform; a new link is an operator's decision" },
  "402": { action: "stop", why: "banned for a time; the link is kept for when the ban ends" },
  "403": { action: "stop", why: "banned" },
  "405": { action: "stop", why: "the client is outdated; only a newer worker helps" },
  "406": { action: "stop", why: "locked by the platform" },
  "408": { action: "backoff", why: "timed out" },
  "408 QR_ENDED": { action: "stop", why: "nobody scanned; an operator asks for a new code by a start" },
  "409": { action: "stop", why: "the client was rejected" },
  "411": { action: "stop", why: "the account takes no linked devices" },
  "411 WRONG_NUMBER": { action: "stop", why: "another number was linked than the session is for; it is logged out" },
  "428": { action: "backoff", why: "the connection was closed" },
  "429": { action: "long_pause", why: "too many tries" },
  "440": { action: "stop", why: "another client took the link over; two would throw each other out for ever" },
  "500": { action: "backoff", why: "the server or the proxy failed; the link is kept" },
  "503": { action: "backoff", why: "the service is not available" },
  "515": { action: "at_once", why: "restart required, normal right after pairing" },
  "516": { action: "backoff", why: "the server ended the stream" },
};

const OTHER: Rule = { action: "backoff", why: "any other code" };

/** The rule of one code; `reason` tells apart what shares a code. */
export function ruleOf(code: number, reason = ""): Rule {
  return TABLE[`${code} ${reason}`] ?? TABLE[String(code)] ?? OTHER;
}

export interface Pauses {
  readonly firstMs: number;
  readonly longestMs: number;
  /** After 429. */
  readonly longMs: number;
}

export const PAUSES: Pauses = { firstMs: 1_000, longestMs: 300_000, longMs: 900_000 };

/** How long to wait before the next try, after so many failures in a row; null for never. */
export function pauseMs(rule: Rule, failures: number, pauses: Pauses, rng: Rng): number | null {
  switch (rule.action) {
    case "stop":
      return null;
    case "at_once":
      // A server that says so again and again must not be asked in a tight loop.
      return failures === 0 ? 0 : jittered(pauses, failures - 1, rng);
    case "long_pause":
      return rng.integer(pauses.longMs, Math.floor(pauses.longMs * 1.5));
    case "backoff":
      return jittered(pauses, failures, rng);
  }
}

/** Doubling and capped, between half and whole: many workers must not come back in step. */
function jittered(pauses: Pauses, failures: number, rng: Rng): number {
  const wholeMs = Math.min(pauses.firstMs * 2 ** Math.min(failures, 16), pauses.longestMs);
  return rng.integer(Math.floor(wholeMs / 2), wholeMs);
}
