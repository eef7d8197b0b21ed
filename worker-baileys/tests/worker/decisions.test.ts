/** The worker's decisions as tables: what may be written, what is said of the past, when, and after which pause. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Book, type Entry, type JournalRecord, type Outcome } from "../../src/book.js";
import {
  answerForPending,
  backoffMs,
  beforeSending,
  leaseNeedsExtension,
  outcomeOf,
  planSending,
  SEND_BEFORE_MARGIN_MS,
  unproven,
  windowOpen,
} from "../../src/decisions.js";
import type { SendError } from "../../src/failures.js";
import { seededRng } from "../../src/rng.js";

const TASK = "01JAR7Z3V5W8Q2M4N6P8R0T2V4:0";
const ERROR: SendError = { code: "RATE_LIMIT", message: "too many" };

/** The entry after these outcomes of one attempt each; null is an attempt that was cut off. */
function after(...outcomes: (Outcome | null)[]): Entry {
  const book = new Book();
  for (const [attempt, outcome] of outcomes.entries()) {
    book.apply({ kind: "intent", taskId: TASK, whatsappId: "3EB0", to: "1", attempt, at: 1 });
    if (outcome) {
      const error = outcome === "refused" || outcome === "unknown" ? { error: ERROR } : {};
      book.apply({ kind: "result", taskId: TASK, outcome, at: 2, ...error } satisfies JournalRecord);
    }
  }
  const entry = book.entry(TASK);
  assert.ok(entry);
  return entry;
}

describe("may this task be written", () => {
  const rows: [string, Entry | null, boolean, string][] = [
    ["a task the journal does not know", null, false, "may_send"],
    ["a task that was sent", after("sent"), false, "sent"],
    ["a task that was sent, asked for again", after("sent"), true, "sent"],
    ["a task that was given back", after("not_sent"), false, "may_send"],
    ["a task that was refused", after("refused"), false, "may_send"],
    ["an attempt that was cut off", after(null), false, "look_first"],
    ["an attempt that was cut off, to be repeated", after(null), true, "may_send"],
    ["an unknown outcome", after("unknown"), false, "look_first"],
    ["an unknown outcome, to be repeated", after("unknown"), true, "may_send"],
    ["given back after an attempt that was cut off", after(null, "not_sent"), false, "look_first"],
    ["refused after an unknown outcome", after("unknown", "refused"), false, "look_first"],
  ];
  for (const [name, entry, resend, expected] of rows) {
    test(`${name}: ${expected}`, () => assert.equal(beforeSending(entry, resend), expected));
  }
});

describe("what is said of a task that an earlier life had claimed", () => {
  test("nothing in the journal: not sent", () => assert.deepEqual(answerForPending(null), { kind: "not_sent" }));
  test("sent: sent", () => assert.deepEqual(answerForPending(after("sent")), { kind: "sent" }));
  test("given back: given back", () => assert.deepEqual(answerForPending(after("not_sent")), { kind: "not_sent" }));
  test("refused and not told: the refusal", () => {
    assert.deepEqual(answerForPending(after("refused")), { kind: "not_sent", error: ERROR });
  });
  test("refused and told: that was the attempt before", () => {
    const entry = after("refused");
    entry.reported = true;
    assert.deepEqual(answerForPending(entry), { kind: "not_sent" });
  });
  for (const outcome of [null, "unknown"] as const) {
    test(`${outcome ?? "cut off"}: look for receipts first`, () => {
      assert.deepEqual(answerForPending(after(outcome)), { kind: "look_first" });
    });
  }
});

test("without a proof the recorded reason stays, and a cut-off attempt gets one", () => {
  assert.deepEqual(unproven(after("unknown")), { kind: "unknown", error: ERROR });
  assert.equal(outcomeOf(unproven(after(null))).error?.code, "UNKNOWN_OUTCOME");
  assert.equal(outcomeOf(unproven(null)).outcome, "unknown");
});

describe("when to type and when to write", () => {
  const rows: [string, number, [number, number], number, [number, number] | null][] = [
    ["early: typing ends when it may go", 0, [10_000, 60_000], 2_000, [8_000, 10_000]],
    ["late: typed for as long as usual", 20_000, [10_000, 60_000], 2_000, [20_000, 22_000]],
    ["close to the end: typed for less", 58_500, [10_000, 60_000], 2_000, [58_500, 59_749]],
    ["at the last moment: at once", 59_749, [10_000, 60_000], 2_000, [59_749, 59_749]],
    ["too late: not at all", 59_750, [10_000, 60_000], 2_000, null],
    ["a window that was never open", 0, [60_000, 60_000], 0, null],
  ];
  for (const [name, nowMs, [sendAfterMs, sendBeforeMs], typingMs, expected] of rows) {
    test(name, () => {
      const plan = planSending(nowMs, { sendAfterMs, sendBeforeMs }, typingMs);
      assert.deepEqual(plan && [plan.typeAtMs, plan.sendAtMs], expected);
    });
  }
});

test("the window is open only if it surely is, by both bounds of the server's time", () => {
  const window = { sendAfterMs: 1_000, sendBeforeMs: 2_000 };
  const last = 2_000 - SEND_BEFORE_MARGIN_MS;
  assert.equal(windowOpen({ earliestMs: 999, latestMs: 1_100 }, window), false);
  assert.equal(windowOpen({ earliestMs: 1_000, latestMs: 1_100 }, window), true);
  assert.equal(windowOpen({ earliestMs: 1_000, latestMs: last - 1 }, window), true);
  assert.equal(windowOpen({ earliestMs: 1_000, latestMs: last }, window), false);
});

test("a lease is extended in its second half", () => {
  assert.equal(leaseNeedsExtension(0, 120_000, 120_000), false);
  assert.equal(leaseNeedsExtension(60_000, 120_000, 120_000), false);
  assert.equal(leaseNeedsExtension(60_001, 120_000, 120_000), true);
});

test("pauses double up to ten seconds and never fall below half", () => {
  const rng = seededRng(7);
  for (const [failures, whole] of [
    [0, 250],
    [1, 500],
    [4, 4_000],
    [6, 10_000],
    [99, 10_000],
  ] as const) {
    const pause = backoffMs(failures, rng);
    assert.ok(pause >= whole / 2 && pause <= whole, `${failures}: ${pause}`);
  }
});
