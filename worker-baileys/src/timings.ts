/**
 * Every waiting time of the driver in one place. A test against the fake server may shorten them with WORKER_TIMINGS, a
 * JSON object of the same names; against the real WhatsApp the variable is refused.
 */

export interface Timings {
  /** For the TCP and websocket connection, and for the first bytes of the handshake. */
  readonly connectMs: number;
  /** From the start of a connection to its first sign: open, a QR code, or its end. */
  readonly watchdogMs: number;
  /** Between two keep-alive pings to WhatsApp. */
  readonly keepAliveMs: number;
  /** Silence after which an open connection is cut, pings included. */
  readonly silenceMs: number;
  /** For one question to the server. */
  readonly queryMs: number;
  /** For the upload of a file, whole: half of a lease. */
  readonly uploadMs: number;
  /** How long a QR code is shown; 0 leaves WhatsApp's own 60 s and then 20 s. */
  readonly qrMs: number;
  /** What whatsmeow gives the server before it calls a message unanswered. */
  readonly ackMs: number;
  /** Pauses between connections. */
  readonly backoffFirstMs: number;
  readonly backoffLongestMs: number;
  readonly longPauseMs: number;
  /** At least so long between two questions whether a number exists. */
  readonly guardGapMs: number;
  /** No such question for so long after the server said 429. */
  readonly guardPauseMs: number;
  /** PING webhooks; three missed ones make a worker silent for the watchdog (LIVENESS_MS 60,000). */
  readonly pingMs: number;
}

const DEFAULTS: Timings = {
  connectMs: 20_000,
  watchdogMs: 45_000,
  keepAliveMs: 25_000,
  silenceMs: 45_000,
  queryMs: 20_000,
  uploadMs: 60_000,
  qrMs: 0,
  ackMs: 75_000,
  backoffFirstMs: 1_000,
  backoffLongestMs: 300_000,
  longPauseMs: 900_000,
  guardGapMs: 1_000,
  guardPauseMs: 300_000,
  pingMs: 15_000,
};

export function readTimings(text?: string, isTest = false): Timings {
  if (!text) return DEFAULTS;
  if (!isTest) throw new Error("is for a WHATSAPP_URL on loopback only");
  const given = JSON.parse(text) as Record<string, unknown>;
  for (const [name, value] of Object.entries(given)) {
    if (!(name in DEFAULTS)) throw new Error(`knows no ${name}`);
    if (typeof value !== "number" || !Number.isInteger(value) || value < 0) throw new Error(`${name} must be a number`);
  }
  return { ...DEFAULTS, ...given };
}
