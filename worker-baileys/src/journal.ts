/**
 * The worker's memory on its volume: append-only JSON lines, on the disk before anything goes out. The file is the same
 * as the Python worker's `journal.jsonl`. First line: `{"journalId": …}`; a journal with another id is another memory,
 * and the orchestrator treats a worker that comes back with one as a worker that remembers nothing.
 *
 * All writing is synchronous: an fsync blocks for some milliseconds a program that has nothing else to do meanwhile,
 * and whoever hears of a receipt can have it on the disk before the library acknowledges it to the server.
 */
import { randomUUID } from "node:crypto";
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { Book, type Entry, type Intent, type JournalRecord, type ReceiptKind, type Result } from "./book.js";
import { log } from "./log.js";

// About 10 MB of lines; a worker that runs for months must not fill its volume between two starts.
export const COMPACT_EVERY_RECORDS = 60_000;

/** A line before the last one cannot be read: the disk lied, and nothing after it can be trusted. */
export class JournalCorrupt extends Error {}

/** An append failed half way. Nothing may be sent by a worker that can no longer remember. */
export class JournalBroken extends Error {}

const KINDS = new Set(["greeted", "intent", "result", "reported", "receipt"]);

export interface Loaded {
  readonly journalId: string | null;
  readonly book: Book;
}

/** Read a journal's text. A torn last line was never acted upon, so it counts as not written. */
export function load(text: string): Loaded {
  const book = new Book();
  let journalId: string | null = null;
  const lines = text.split("\n");
  lines.pop(); // What follows the last line feed is empty, or torn.
  for (const [index, line] of lines.entries()) {
    try {
      const value = JSON.parse(line) as { journalId?: unknown; kind?: unknown };
      if (journalId === null) {
        if (typeof value.journalId !== "string") throw new Error("no journalId");
        journalId = value.journalId;
      } else {
        if (typeof value.kind !== "string" || !KINDS.has(value.kind)) throw new Error("no record");
        book.apply(value as JournalRecord);
      }
    } catch (error) {
      if (index < lines.length - 1) throw new JournalCorrupt(`line ${index + 1}: ${String(error)}`);
      break;
    }
  }
  return { journalId, book };
}

export class Journal {
  #descriptor = -1;
  #broken = false;
  #appended = 0;
  #book: Book;

  private constructor(
    private readonly path: string,
    readonly journalId: string,
    loaded: Book,
    private readonly nowMs: () => number,
  ) {
    this.#book = loaded;
    this.#compact();
  }

  /**
   * Open or create. A journal that cannot be read is put aside and counts as lost, which is the safe side: what it knew
   * becomes unknown, and unknown is never sent again unasked.
   */
  static open(volume: string, nowMs: () => number): Journal {
    mkdirSync(volume, { recursive: true });
    const path = join(volume, "journal.jsonl");
    let loaded: Loaded;
    try {
      loaded = load(existsSync(path) ? readFileSync(path, "utf8") : "");
    } catch (error) {
      if (!(error instanceof JournalCorrupt)) throw error;
      const aside = join(volume, `journal.corrupt-${nowMs()}.jsonl`);
      log.error("the journal cannot be read and is put aside", { path: aside, reason: error.message });
      renameSync(path, aside);
      loaded = load("");
    }
    return new Journal(path, loaded.journalId ?? randomUUID().replaceAll("-", ""), loaded.book, nowMs);
  }

  close(): void {
    closeSync(this.#descriptor);
    this.#descriptor = -1;
    this.#broken = true;
  }

  /** False for a journal that has not yet seen a `hello` through: it cannot vouch for earlier claims. */
  get greeted(): boolean {
    return this.#book.greetedAt !== null;
  }

  entry(taskId: string): Entry | null {
    return this.#book.entry(taskId);
  }

  find(whatsappId: string): Entry | null {
    return this.#book.find(whatsappId);
  }

  unreported(): Entry[] {
    return this.#book.entries().filter((entry) => entry.unreported);
  }

  greet(atMs: number): void {
    this.#write({ kind: "greeted", at: atMs }, true);
  }

  intend(intent: Omit<Intent, "kind">): void {
    this.#write({ kind: "intent", ...intent }, true);
  }

  conclude(result: Omit<Result, "kind">): void {
    this.#write({ kind: "result", ...result }, true);
  }

  /** Not forced to the disk: losing it costs one repeated report. */
  markReported(taskId: string): void {
    this.#write({ kind: "reported", taskId }, false);
  }

  /** Not forced to the disk: losing it costs one repeated webhook. */
  markReceipt(whatsappId: string, receipt: ReceiptKind): void {
    this.#write({ kind: "receipt", whatsappId, receipt }, false);
  }

  #write(record: JournalRecord, durable: boolean): void {
    // The disk first: a record that could not be kept must not be believed.
    this.#append(`${JSON.stringify(record)}\n`, durable);
    this.#book.apply(record);
    if (this.#appended >= COMPACT_EVERY_RECORDS) this.#compact();
  }

  #append(line: string, durable: boolean): void {
    if (this.#broken) throw new JournalBroken("an earlier append failed; the journal must be opened anew");
    // Stays set if anything below throws: a line written by half must not be followed by another.
    this.#broken = true;
    const bytes = Buffer.from(line);
    if (writeSync(this.#descriptor, bytes) !== bytes.length) {
      throw new JournalBroken("the disk took only a part of the line (full?)");
    }
    if (durable) fsyncSync(this.#descriptor);
    this.#broken = false;
    this.#appended += 1;
  }

  /** Write what is still needed to a new file and put it in the place of the old one, all or nothing. */
  #compact(): void {
    const draft = this.path.replace(/\.jsonl$/, ".draft");
    const lines = [{ journalId: this.journalId }, ...this.#book.records(this.nowMs())];
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    const descriptor = openSync(draft, "w", 0o600);
    try {
      const bytes = Buffer.from(text);
      if (writeSync(descriptor, bytes) !== bytes.length) throw new JournalBroken("the disk is full");
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(draft, this.path);
    fsyncDirectory(dirname(this.path));
    if (this.#descriptor >= 0) closeSync(this.#descriptor);
    this.#descriptor = openSync(this.path, "a", 0o600);
    this.#appended = 0;
    this.#book = load(text).book;
  }
}

/** A rename is on the disk only when its directory is. */
export function fsyncDirectory(directory: string): void {
  const descriptor = openSync(directory, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
