/**
 * Takes out of a log line what must not be in a log. Three nets, because each has holes: field names that hold secrets,
 * text and numbers; patterns anywhere in a string; and the secrets of this process by their value. The same rules as
 * `paceline.kits.logging`.
 */

export const MASK = "[redacted]";

const SECRET_FIELDS = new Set([
  "apikey",
  "authkey",
  "authorization",
  "webhooksecret",
  "xwebhooksecret",
  "secret",
  "password",
  "cookie",
  "setcookie",
  "qr",
  "pairingcode",
  "creds",
  "privkey",
  "private",
  "mediakey",
  "advsecretkey",
]);
const TEXT_FIELDS = new Set(["text", "caption", "body", "messagetext", "conversation"]);
const NUMBER_FIELDS = new Set(["to", "phone", "from", "recipient", "jid", "sender"]);

const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/(?<=:\/\/)[^/\s]+@/g, `${MASK}@`],
  [/\b(bearer|basic)\s+\S+/gi, `$1 ${MASK}`],
  [/\b(x-api-key|x-webhook-secret)(['"]?\s*[:=,]\s*)\S+/gi, `$1$2${MASK}`],
  [/\bpk_[A-Za-z0-9_-]{20,}/g, MASK],
  [/\bwhsec_[A-Za-z0-9+/=_-]{20,}/g, MASK],
  [/\b\d{3,15}(?=\d{4}(?::\d+)?@(?:s\.whatsapp\.net|c\.us|lid))/g, "…"],
];

// Shorter values would blank ordinary words.
const MIN_SECRET_LENGTH = 6;
const MAX_DEPTH = 6;
const MAX_STRING = 2_000;
const knownSecrets = new Set<string>();

/** Blank this value in every line from now on. */
export function registerSecret(value: string | undefined): void {
  if (value && value.length >= MIN_SECRET_LENGTH) knownSecrets.add(value);
}

/** The value as it may be shown, all the way down. `field` is the name it stands under. */
export function redact(value: unknown, field = "", depth = 0): unknown {
  const name = field.toLowerCase().replace(/[_\- ]/g, "");
  if (value === null || value === undefined) return value;
  if (SECRET_FIELDS.has(name)) return MASK;
  if (typeof value === "boolean") return value;
  // Bytes are keys or ciphertext; neither belongs in a log.
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (value instanceof Error) return redactString(`${value.name}: ${value.message}`);
  if (depth >= MAX_DEPTH) return MASK;
  if (Array.isArray(value)) return value.map((item) => redact(item, field, depth + 1));
  if (typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, redact(item, key, depth + 1)]));
  }
  return redactScalar(value, name);
}

function redactScalar(value: unknown, name: string): unknown {
  if (TEXT_FIELDS.has(name)) return `[${String(value).length} characters]`;
  if (NUMBER_FIELDS.has(name)) return lastFour(String(value));
  return typeof value === "number" ? value : redactString(String(value));
}

/** A free string without the secrets we know and the patterns that look like one. */
export function redactString(value: string): string {
  let shown = value.length > MAX_STRING ? `${value.slice(0, MAX_STRING)}…` : value;
  for (const secret of knownSecrets) shown = shown.replaceAll(secret, MASK);
  for (const [pattern, replacement] of PATTERNS) shown = shown.replace(pattern, replacement);
  return shown;
}

function lastFour(number: string): string {
  const digits = number.replace(/@.*/, "").replace(/:\d+$/, "").replace(/\D/g, "");
  return digits.length > 4 ? `…${digits.slice(-4)}` : MASK;
}
