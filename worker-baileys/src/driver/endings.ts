/**
 * Why a connection ended, from what Baileys gives as `lastDisconnect.error`. Its codes are ambiguous (408 is the
 * network or a QR code that nobody scanned, 401 our own logout or the server's, 500 the server or the proxy), so the
 * message is looked at as well. `disconnects.ts` says what follows from each.
 */
import {
  CONNECTION_CLOSED,
  LOGGED_OUT,
  NO_LINKED_DEVICES,
  QR_ENDED,
  SERVER_FAILED,
  TOO_MANY,
  WRONG_NUMBER,
} from "../disconnects.js";
import { redactString } from "../redaction.js";

export interface Ending {
  readonly code: number;
  readonly reason: string;
  /** The server itself said that the device is logged out, so its keys are worth nothing any more. */
  readonly isServerLogout: boolean;
  /** Of a ban for a time (402). */
  readonly expireSeconds?: number;
}

// Logged out, banned, locked: what is said of the account and not of the connection.
const OF_THE_ACCOUNT = new Set([LOGGED_OUT, 402, 403, 406]);
// What the orchestrator keeps of a reason.
const REASON_LIMIT = 200;

/** An error in the form in which Baileys reads a code from it. */
export function endError(message: string, statusCode: number): Error {
  return Object.assign(new Error(message), { isBoom: true, output: { statusCode } });
}

/**
 * The code of an upgrade that was answered with an HTTP status instead. Whatever stands between us and WhatsApp may say
 * 401 or 403, and that is no word on the account: only 429 and 5xx mean here what they mean there.
 */
export function upgradeCode(status: number): number {
  return status === TOO_MANY || status >= SERVER_FAILED ? status : SERVER_FAILED;
}

export function endingOf(error: unknown): Ending {
  const { message, output, data } = (error ?? {}) as {
    message?: string;
    output?: { statusCode?: number };
    data?: { expire?: string; code?: string };
  };
  const code = output?.statusCode ?? CONNECTION_CLOSED;
  const text = message ?? "closed";
  if (text === "QR refs attempts ended") return { code, reason: QR_ENDED, isServerLogout: false };
  const isServerWord = text === "Connection Failure" || text.startsWith("Stream Errored");
  const expire = Number(data?.expire);
  return {
    code,
    reason: redactString(text).slice(0, REASON_LIMIT),
    isServerLogout: code === LOGGED_OUT && isServerWord,
    ...(Number.isFinite(expire) && expire > 0 ? { expireSeconds: expire } : {}),
  };
}

/**
 * The end of a connection of another account than the session's. What the platform says of that one is no word on our
 * number, and its login is of no use to us.
 */
export function ofAnotherNumber(ending: Ending): Ending {
  if (!OF_THE_ACCOUNT.has(ending.code)) return ending;
  return { code: NO_LINKED_DEVICES, reason: WRONG_NUMBER, isServerLogout: true };
}
