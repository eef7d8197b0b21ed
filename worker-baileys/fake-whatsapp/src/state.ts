/**
 * What outlives the process: a file of JSON lines `[key, value]`, the last line of a key being the one that counts.
 *
 * Appending is one write, so a killed server loses nothing that it had answered. The file is rewritten without its old
 * lines at every start, and when it has grown much since. Without a file everything is kept in memory by its owner.
 */

import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";

/** How much may be appended before the old lines are thrown out: some 20,000 messages' worth of sessions. */
const COMPACT_AFTER_BYTES = 64 * 1024 * 1024;

export class StateFile {
  private appendedBytes = 0;
  private values: Map<string, unknown>;

  constructor(private readonly path: string | undefined) {
    this.values = path === undefined ? new Map() : readLines(path);
    this.compact();
  }

  /** What was stored under keys with this prefix, by the rest of the key. Each owner asks once, at the start. */
  take<Value>(prefix: string): Map<string, Value> {
    const found = new Map<string, Value>();
    for (const [key, value] of this.values) {
      if (!key.startsWith(prefix)) continue;
      found.set(key.slice(prefix.length), value as Value);
      this.values.delete(key);
    }
    return found;
  }

  /** null forgets the key. */
  put(key: string, value: unknown): void {
    if (this.path === undefined) return;
    const line = `${JSON.stringify([key, value])}\n`;
    appendFileSync(this.path, line, { mode: 0o600 });
    this.appendedBytes += line.length;
    if (this.appendedBytes > COMPACT_AFTER_BYTES) this.compact();
  }

  private compact(): void {
    if (this.path === undefined || !existsSync(this.path)) return;
    const lines = [...readLines(this.path)].map((entry) => `${JSON.stringify(entry)}\n`);
    const draft = `${this.path}.draft`;
    writeFileSync(draft, lines.join(""), { mode: 0o600 });
    renameSync(draft, this.path);
    this.appendedBytes = 0;
  }
}

function readLines(path: string): Map<string, unknown> {
  const values = new Map<string, unknown>();
  if (!existsSync(path)) return values;
  for (const line of readFileSync(path, "utf8").split("\n")) {
    const entry = parseLine(line);
    if (!entry) continue;
    const [key, value] = entry;
    if (value === null) values.delete(key);
    else values.set(key, value);
  }
  return values;
}

/** A line torn by a kill in the middle of a write is the last one, and was never answered. */
function parseLine(line: string): [string, unknown] | undefined {
  try {
    const entry: unknown = JSON.parse(line);
    if (Array.isArray(entry) && typeof entry[0] === "string") return [entry[0], entry[1]];
  } catch {
    // Torn, or the empty rest after the last newline.
  }
  return undefined;
}
