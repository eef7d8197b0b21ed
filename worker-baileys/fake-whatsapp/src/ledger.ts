/**
 * The ledger: what this WhatsApp accepted, one JSON line each, in the shape of Paceline's simulated driver.
 *
 * A message counts as accepted when its line is in the file; the ack comes after. An id seen before, also by an earlier
 * process on the same file, is marked `repeat`. Fields at their default are left out, as the simulated ledger does.
 */

import { closeSync, existsSync, ftruncateSync, openSync, readFileSync, truncateSync, writeSync } from "node:fs";
import { Recent } from "./recent.js";

/** Lines in memory for `GET /ledger`; the file has all of them. */
const LINE_LIMIT = 100_000;

export interface LedgerLine {
  at: number;
  /** From the websocket URL (`?session=`), else the device's jid: the protocol does not carry Paceline's ids. */
  sessionId: string;
  to: string;
  whatsappId: string;
  /** Empty: the protocol does not carry it; it is known by the message id, which derives from it. */
  taskId: string;
  text: string;
  mode?: "image" | "document" | "other";
  mediaSha256?: string;
  repeat?: true;
  /** The sending phone, which the simulated ledger has in its file name. */
  phone: string;
  /** The recipient is not on WhatsApp: only the sender's own phone got a copy. */
  noRecipient?: true;
  /** See `Decrypted.counterReused`: a real recipient would not have seen this one. */
  counterReused?: true;
  /** The contact could not decrypt it, and asks for it again; the text is that of the own phone's copy, if any. */
  undecryptable?: true;
}

/** `whatsappId` alone is not enough: two phones may choose the same. */
type Key = `${string}/${string}`;

export class Ledger {
  private readonly lines = new Recent<LedgerLine>(LINE_LIMIT);
  private readonly seen = new Set<Key>();
  private readonly chats = new Set<Key>();
  private readonly started = new Map<string, number>();
  private readonly descriptor: number | undefined;

  constructor(path: string | undefined) {
    if (path === undefined) return;
    if (existsSync(path)) this.recall(path);
    this.descriptor = openSync(path, "a", 0o600);
  }

  append(line: LedgerLine): LedgerLine {
    const full: LedgerLine = this.has(line.phone, line.whatsappId) ? { ...line, repeat: true } : line;
    if (this.descriptor !== undefined) writeSync(this.descriptor, `${JSON.stringify(full)}\n`);
    this.remember(full);
    return full;
  }

  has(phone: string, whatsappId: string): boolean {
    return this.seen.has(`${phone}/${whatsappId}`);
  }

  /** Whether this phone has written to that one, or been written to by it. */
  knowsChat(phone: string, other: string): boolean {
    return this.chats.has(`${phone}/${other}`);
  }

  noteChat(phone: string, other: string): void {
    this.chats.add(`${phone}/${other}`);
  }

  /** How many chats this phone has begun itself. */
  chatsStarted(phone: string): number {
    return this.started.get(phone) ?? 0;
  }

  after(index: number, most: number): { lines: LedgerLine[]; next: number } {
    const { entries, next } = this.lines.after(index, most);
    return { lines: entries, next };
  }

  get length(): number {
    return this.lines.length;
  }

  clear(): void {
    this.lines.clear();
    this.seen.clear();
    this.chats.clear();
    this.started.clear();
    if (this.descriptor !== undefined) ftruncateSync(this.descriptor);
  }

  close(): void {
    if (this.descriptor !== undefined) closeSync(this.descriptor);
  }

  /** What an earlier process wrote. A line torn by a kill was never acked, and is cut off before the next is written. */
  private recall(path: string): void {
    const raw = readFileSync(path);
    const whole = raw.subarray(0, raw.lastIndexOf("\n") + 1);
    if (whole.length < raw.length) truncateSync(path, whole.length);
    for (const line of whole.toString("utf8").split("\n")) {
      if (line !== "") this.remember(JSON.parse(line) as LedgerLine);
    }
  }

  private remember(line: LedgerLine): void {
    this.lines.add(line);
    this.seen.add(`${line.phone}/${line.whatsappId}`);
    if (line.noRecipient || this.knowsChat(line.phone, line.to)) return;
    this.noteChat(line.phone, line.to);
    this.started.set(line.phone, this.chatsStarted(line.phone) + 1);
  }
}
