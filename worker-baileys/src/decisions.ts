/**
 * Everything the worker decides, as pure functions that return values; the same decisions as
 * `paceline.worker.decisions`. No port is touched here. The verdicts are what a worker may say of a task; `reporter`
 * turns each into protocol messages.
 */
import type { Entry, Outcome } from "./book.js";
import { UNKNOWN_OUTCOME, type SendError } from "./failures.js";
import type { Rng } from "./rng.js";

// The claim's answer took some time to reach us and the write takes some to reach WhatsApp.
export const SEND_BEFORE_MARGIN_MS = 250;

const FIRST_BACKOFF_MS = 250;
const MAX_BACKOFF_MS = 10_000;

/**
 * sent: the server accepted it, or a receipt proves that it did · not_sent: certainly not out; without an error the
 * task is given back as if never taken, with one it was refused · unknown: may be out or not, and the time to look is
 * over.
 */
export type Verdict =
  | { readonly kind: "sent" }
  | { readonly kind: "not_sent"; readonly error?: SendError }
  | { readonly kind: "unknown"; readonly error: SendError };

export const SENT: Verdict = { kind: "sent" };
export const GIVEN_BACK: Verdict = { kind: "not_sent" };

export function refused(error: SendError): Verdict {
  return { kind: "not_sent", error };
}

/** It may already be out: wait for a receipt before saying anything, send nothing. */
export const LOOK_FIRST = { kind: "look_first" } as const;
export type LookFirst = typeof LOOK_FIRST;

/**
 * May this task be written to the socket? `resend` is the orchestrator's word that it recorded an unknown outcome and
 * wants the same id once more; without it a message that may be out is never repeated.
 */
export function beforeSending(entry: Entry | null, resend: boolean): "sent" | "look_first" | "may_send" {
  if (entry === null) return "may_send";
  if (entry.sent) return "sent";
  return entry.maybeSent && !resend ? "look_first" : "may_send";
}

/** What to say of a task that an earlier life of this session had claimed. */
export function answerForPending(entry: Entry | null): Verdict | LookFirst {
  switch (entry === null ? "not_sent" : entry.outcome) {
    case "sent":
      return SENT;
    case "not_sent":
      return GIVEN_BACK;
    case "refused":
      // A refusal that was already told belongs to the attempt before the one that was cut off.
      return entry?.error && !entry.reported ? refused(entry.error) : GIVEN_BACK;
    default:
      return LOOK_FIRST;
  }
}

/** The verdict when nothing was found after looking. */
export function unproven(entry: Entry | null): Verdict {
  if (entry?.outcome === "unknown" && entry.error) return { kind: "unknown", error: entry.error };
  return {
    kind: "unknown",
    error: { code: UNKNOWN_OUTCOME, message: "the attempt was cut off and no receipt came" },
  };
}

/** How a verdict stands in the journal. */
export function outcomeOf(verdict: Verdict): { outcome: Outcome; error?: SendError } {
  switch (verdict.kind) {
    case "sent":
      return { outcome: "sent" };
    case "not_sent":
      return verdict.error ? { outcome: "refused", error: verdict.error } : { outcome: "not_sent" };
    case "unknown":
      return { outcome: "unknown", error: verdict.error };
  }
}

export interface Window {
  readonly sendAfterMs: number;
  readonly sendBeforeMs: number;
}

/** When to start typing and when to write, in server time. */
export interface SendPlan {
  readonly typeAtMs: number;
  readonly sendAtMs: number;
}

/**
 * Typing fits into the time before `sendAfterMs`; what is claimed late is typed for as long as the window allows. Null
 * if the window cannot be met any more.
 */
export function planSending(nowMs: number, window: Window, typingMs: number): SendPlan | null {
  const lastMs = window.sendBeforeMs - SEND_BEFORE_MARGIN_MS - 1;
  if (Math.max(nowMs, window.sendAfterMs) > lastMs) return null;
  const typeAtMs = Math.max(nowMs, window.sendAfterMs - typingMs);
  return { typeAtMs, sendAtMs: Math.min(Math.max(window.sendAfterMs, typeAtMs + typingMs), lastMs) };
}

/** Whether now, which lies between the two bounds, is surely inside [sendAfter, sendBefore). */
export function windowOpen(now: { earliestMs: number; latestMs: number }, window: Window): boolean {
  return now.earliestMs >= window.sendAfterMs && now.latestMs < window.sendBeforeMs - SEND_BEFORE_MARGIN_MS;
}

export function leaseNeedsExtension(latestMs: number, leaseUntilMs: number, leaseMs: number): boolean {
  return leaseUntilMs - latestMs < Math.floor(leaseMs / 2);
}

/** For calls to the orchestrator: doubling and capped, between half and whole. */
export function backoffMs(failures: number, rng: Rng): number {
  const wholeMs = Math.min(FIRST_BACKOFF_MS * 2 ** Math.min(failures, 16), MAX_BACKOFF_MS);
  return rng.integer(Math.floor(wholeMs / 2), wholeMs);
}
