/**
 * JSON lines on stderr, redacted. Also the logger that Baileys gets: of what it says only the sentence is kept, never
 * the objects beside it, because they hold nodes, keys and texts; and only from `warn` on, unless LOG_LEVEL is debug.
 */
import { writeSync } from "node:fs";
import type { ILogger } from "baileys/lib/Utils/logger.js";
import { redact, redactString } from "./redaction.js";

const LEVELS = ["trace", "debug", "info", "warning", "error"] as const;
export type Level = (typeof LEVELS)[number];
type Fields = Readonly<Record<string, unknown>>;

let threshold = LEVELS.indexOf("info");
let bound: Fields = {};
let write = (line: string): void => {
  try {
    writeSync(2, line);
  } catch {
    // A full or closed pipe must not end a worker.
  }
};

export function configureLog(level: string, fields: Fields): void {
  const wanted = level.toLowerCase() === "warn" ? "warning" : level.toLowerCase();
  const found = LEVELS.findIndex((name) => name === wanted);
  threshold = found < 0 ? LEVELS.indexOf("info") : found;
  bound = fields;
}

/** Have lines go elsewhere; for tests. */
export function writeLogTo(sink: (line: string) => void): void {
  write = sink;
}

function say(level: Level, event: string, fields: Fields): void {
  if (LEVELS.indexOf(level) < threshold) return;
  const line = { ...bound, ...fields, event, level, at: new Date().toISOString(), service: "worker-baileys" };
  write(`${JSON.stringify(redact(line))}\n`);
}

export const log = {
  debug: (event: string, fields: Fields = {}): void => say("debug", event, fields),
  info: (event: string, fields: Fields = {}): void => say("info", event, fields),
  warning: (event: string, fields: Fields = {}): void => say("warning", event, fields),
  error: (event: string, fields: Fields = {}): void => say("error", event, fields),
};

/** Baileys' own words. Its warnings are of interest to whoever debugs it, not to an operator. */
export function libraryLogger(): ILogger {
  const drop = (): void => undefined;
  const keep =
    (level: string) =>
    (about: unknown, message?: string): void => {
      const sentence = typeof about === "string" ? about : (message ?? "");
      say("debug", "baileys", { level_said: level, sentence: redactString(sentence) });
    };
  const logger: ILogger = {
    // Never "trace": at that level the library builds every stanza as text first.
    level: "warn",
    child: () => logger,
    trace: drop,
    debug: drop,
    info: drop,
    warn: keep("warn"),
    error: keep("error"),
  };
  return logger;
}
