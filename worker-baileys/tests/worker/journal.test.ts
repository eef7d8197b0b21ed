/**
 * The journal: what it says after a crash, whom it can be exchanged with, and that it counts as lost rather than lie.
 */
import assert from "node:assert/strict";
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { KEEP_ENTRIES, KEEP_MS } from "../../src/book.js";
import { Journal, JournalBroken } from "../../src/journal.js";

const TASK = "01JAR7Z3V5W8Q2M4N6P8R0T2V4:0";
const WIRE = "3EB094773A396AE4D7AB31";
const INTENT = { taskId: TASK, whatsappId: WIRE, to: "972541112233", attempt: 1, at: 5_000 };
const now = (): number => 10_000;
let volume: string;

beforeEach(() => (volume = mkdtempSync(join(tmpdir(), "journal-"))));
afterEach(() => rmSync(volume, { recursive: true }));

/** As after a crash: nobody closed the one before. */
const reopen = (): Journal => Journal.open(volume, now);

test("an intent without a result may have gone out", () => {
  reopen().intend(INTENT);
  assert.equal(reopen().entry(TASK)?.maybeSent, true);
});

test("results, reports and receipts are remembered, and the id stays", () => {
  const journal = reopen();
  journal.greet(1);
  journal.intend(INTENT);
  journal.conclude({
    taskId: TASK,
    outcome: "refused",
    at: 6_000,
    error: { code: "RATE_LIMIT", message: "slow down" },
  });
  journal.markReported(TASK);
  journal.intend({ ...INTENT, attempt: 2 });
  journal.conclude({ taskId: TASK, outcome: "sent", at: 7_000 });
  journal.markReceipt(WIRE, "delivered");
  const again = reopen();
  const entry = again.find(WIRE);
  assert.equal(again.journalId, journal.journalId);
  assert.equal(again.greeted, true);
  assert.deepEqual([entry?.outcome, entry?.reported, [...(entry?.receipts ?? [])]], ["sent", false, ["delivered"]]);
});

test("a sent message stays sent, whatever is written after it", () => {
  const journal = reopen();
  journal.intend(INTENT);
  journal.conclude({ taskId: TASK, outcome: "sent", at: 6_000 });
  journal.intend({ ...INTENT, attempt: 2 });
  journal.conclude({ taskId: TASK, outcome: "unknown", at: 7_000 });
  assert.equal(reopen().entry(TASK)?.sent, true);
});

test("a doubt outlives later attempts and compaction", () => {
  const journal = reopen();
  journal.intend(INTENT);
  journal.intend({ ...INTENT, attempt: 2 });
  journal.conclude({ taskId: TASK, outcome: "not_sent", at: 6_000 });
  reopen().close();
  assert.equal(reopen().entry(TASK)?.maybeSent, true);
});

test("a torn last line counts as not written", () => {
  reopen().intend(INTENT);
  appendFileSync(join(volume, "journal.jsonl"), '{"kind":"result","taskId":"01JAR7');
  assert.equal(reopen().entry(TASK)?.outcome, null);
});

test("a broken line in the middle puts the journal aside: a new memory under a new id", () => {
  const { journalId } = reopen();
  writeFileSync(join(volume, "journal.jsonl"), `{"journalId":"${journalId}"}\nrubbish\n{"kind":"greeted","at":1}\n`);
  const fresh = reopen();
  assert.notEqual(fresh.journalId, journalId);
  assert.equal(fresh.greeted, false);
  assert.ok(readdirSync(volume).some((name) => name.startsWith("journal.corrupt-")));
});

test("a journal that was closed takes no more, as after a failed write", () => {
  const journal = reopen();
  journal.close();
  assert.throws(() => journal.intend(INTENT), JournalBroken);
});

test("a journal that the Python worker wrote is understood", () => {
  const lines = [
    '{"journalId":"4f0c"}',
    '{"kind":"greeted","at":1}',
    `{"kind":"intent","taskId":"${TASK}","whatsappId":"${WIRE}","to":"972541112233","attempt":1,"at":9000,"inDoubt":true}`,
    `{"kind":"result","taskId":"${TASK}","outcome":"refused","at":9100,"error":{"code":"RATE_LIMIT","message":"m"}}`,
    `{"kind":"reported","taskId":"${TASK}"}`,
    `{"kind":"receipt","whatsappId":"${WIRE}","receipt":"read"}`,
  ];
  writeFileSync(join(volume, "journal.jsonl"), `${lines.join("\n")}\n`);
  const journal = reopen();
  const entry = journal.entry(TASK);
  assert.deepEqual([journal.journalId, entry?.outcome, entry?.maybeSent], ["4f0c", "refused", true]);
  // Opening compacts: what is written again is the same, letter for letter but for the order of fields.
  const kept = readFileSync(join(volume, "journal.jsonl"), "utf8").trim().split("\n");
  assert.deepEqual(
    kept.map((line) => JSON.parse(line) as unknown),
    lines.map((line) => JSON.parse(line) as unknown),
  );
});

test("old entries go, open and unreported ones stay", () => {
  const journal = Journal.open(volume, () => KEEP_MS + 10_000);
  for (const [index, outcome] of (["sent", "unknown", "sent"] as const).entries()) {
    journal.intend({ ...INTENT, taskId: `t:${index}`, whatsappId: `w${index}`, at: index === 2 ? KEEP_MS : 1 });
    journal.conclude({ taskId: `t:${index}`, outcome, at: 2 });
    if (index !== 1) journal.markReported(`t:${index}`);
  }
  const again = Journal.open(volume, () => KEEP_MS + 10_000);
  assert.deepEqual(
    [0, 1, 2].map((index) => again.entry(`t:${index}`) !== null),
    [false, true, true],
  );
  assert.ok(KEEP_ENTRIES >= 10_000);
});

test("an open intent is kept however old it seems: a host without a clock dated it", () => {
  Journal.open(volume, now).intend(INTENT);
  const again = Journal.open(volume, () => KEEP_MS + 10_000);
  assert.equal(again.entry(TASK)?.maybeSent, true);
});
