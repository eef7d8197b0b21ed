/**
 * What a journal says, apart from where it is kept: its records and the state they add up to. The records are the same,
 * letter for letter, as those of `paceline.worker.book`, so a volume may change its driver.
 *
 * `journal.ts` stores the records as JSON lines; `Book` is the sum of them and decides nothing. One entry per task,
 * because a task has one message id for ever, whatever the number of attempts.
 */
import type { SendError } from "./failures.js";

// A job's messages are kept 30 days, so no task older than that can be offered again.
export const KEEP_MS = 30 * 24 * 3600 * 1000;
// Twenty days of the busiest phone (500 a day).
export const KEEP_ENTRIES = 10_000;

export type ReceiptKind = "delivered" | "read";
/** What came of an attempt. Nothing recorded means that the attempt was cut off: its outcome is open. */
export type Outcome = "sent" | "not_sent" | "refused" | "unknown";

/** From here on this journal knows every task that its session claims (see `recovery`). */
export interface Greeted {
  readonly kind: "greeted";
  readonly at: number;
}

/** Written before the socket write: from here on the message may be out. */
export interface Intent {
  readonly kind: "intent";
  readonly taskId: string;
  readonly whatsappId: string;
  readonly to: string;
  readonly attempt: number;
  readonly at: number;
  /** Carried over by compaction: an earlier attempt of this task ended without an answer. */
  readonly inDoubt?: boolean;
}

/** What came of the last intent of that task. */
export interface Result {
  readonly kind: "result";
  readonly taskId: string;
  readonly outcome: Outcome;
  readonly at: number;
  readonly error?: SendError;
}

/** The orchestrator answered to the report of that result. */
export interface Reported {
  readonly kind: "reported";
  readonly taskId: string;
}

/** The orchestrator answered to the report of that receipt, so it need not be told again. */
export interface Receipt {
  readonly kind: "receipt";
  readonly whatsappId: string;
  readonly receipt: ReceiptKind;
}

export type JournalRecord = Greeted | Intent | Result | Reported | Receipt;

/** All the journal knows of one task. */
export class Entry {
  outcome: Outcome | null = null;
  error: SendError | null = null;
  resultAt = 0;
  reported = false;
  readonly receipts = new Set<ReceiptKind>();

  constructor(
    readonly intent: Intent,
    /** An earlier attempt ended without an answer; only a proof of sending clears this. */
    readonly inDoubt: boolean,
  ) {}

  get taskId(): string {
    return this.intent.taskId;
  }

  get whatsappId(): string {
    return this.intent.whatsappId;
  }

  get to(): string {
    return this.intent.to;
  }

  get sent(): boolean {
    return this.outcome === "sent";
  }

  /** Whether any attempt may have reached WhatsApp without our knowing. */
  get maybeSent(): boolean {
    return !this.sent && (this.inDoubt || this.outcome === null || this.outcome === "unknown");
  }

  get unreported(): boolean {
    return this.outcome !== null && !this.reported;
  }

  /**
   * Still to be answered for, however old it seems: a host without a clock may have dated it years back, and a
   * forgotten intent is answered as not sent.
   */
  get unsettled(): boolean {
    return this.outcome === null || !this.reported;
  }

  records(): JournalRecord[] {
    const { inDoubt: _, ...intent } = this.intent;
    const records: JournalRecord[] = [this.inDoubt ? { ...intent, inDoubt: true } : intent];
    if (this.outcome !== null) {
      records.push({
        kind: "result",
        taskId: this.taskId,
        outcome: this.outcome,
        at: this.resultAt,
        ...(this.error && { error: this.error }),
      });
    }
    if (this.reported) records.push({ kind: "reported", taskId: this.taskId });
    for (const receipt of [...this.receipts].sort()) {
      records.push({ kind: "receipt", whatsappId: this.whatsappId, receipt });
    }
    return records;
  }
}

/** The sum of a journal's records. Applying a record twice changes nothing. */
export class Book {
  greetedAt: number | null = null;
  // A Map keeps the order of insertion: that of the last attempts.
  readonly #byTask = new Map<string, Entry>();
  readonly #byWhatsappId = new Map<string, Entry>();

  entry(taskId: string): Entry | null {
    return this.#byTask.get(taskId) ?? null;
  }

  find(whatsappId: string): Entry | null {
    return this.#byWhatsappId.get(whatsappId) ?? null;
  }

  entries(): Entry[] {
    return [...this.#byTask.values()];
  }

  apply(record: JournalRecord): void {
    switch (record.kind) {
      case "greeted":
        this.greetedAt ??= record.at;
        break;
      case "intent":
        this.#intend(record);
        break;
      case "result":
        this.#conclude(record);
        break;
      case "reported": {
        const entry = this.#byTask.get(record.taskId);
        if (entry) entry.reported = true;
        break;
      }
      case "receipt":
        this.#byWhatsappId.get(record.whatsappId)?.receipts.add(record.receipt);
    }
  }

  /** The shortest list of records that says what is still needed. */
  records(nowMs: number): JournalRecord[] {
    const entries = this.entries().filter((entry) => entry.unsettled || entry.intent.at > nowMs - KEEP_MS);
    const surplus = entries.length - KEEP_ENTRIES;
    const kept = entries.filter((entry, age) => age >= surplus || entry.unsettled || entry.maybeSent);
    const greeted: JournalRecord[] = this.greetedAt === null ? [] : [{ kind: "greeted", at: this.greetedAt }];
    return [...greeted, ...kept.flatMap((entry) => entry.records())];
  }

  #intend(intent: Intent): void {
    const before = this.#byTask.get(intent.taskId);
    this.#byTask.delete(intent.taskId);
    if (before?.sent) {
      // A sent message stays sent: re-inserted only to keep the order of attempts.
      this.#byTask.set(intent.taskId, before);
      return;
    }
    const entry = new Entry(intent, intent.inDoubt === true || before?.maybeSent === true);
    this.#byTask.set(intent.taskId, entry);
    this.#byWhatsappId.set(intent.whatsappId, entry);
  }

  #conclude(result: Result): void {
    const entry = this.#byTask.get(result.taskId);
    if (!entry || entry.sent) return;
    entry.outcome = result.outcome;
    entry.error = result.error ?? null;
    entry.resultAt = result.at;
    entry.reported = false;
  }
}
