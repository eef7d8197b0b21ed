/** What counts as told: an answer, also one that says no; but not that we are not let in. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { SteadyClock } from "../../src/clock.js";
import { Journal } from "../../src/journal.js";
import { writeLogTo } from "../../src/log.js";
import { Blocked, type HelloAnswer, RequestRefused, type WorkerProtocol } from "../../src/protocol.js";
import { Reporter } from "../../src/reporter.js";
import { seededRng } from "../../src/rng.js";
import { Shift } from "../../src/shift.js";

const SUBJECT = { taskId: "01JAR7Z3V5W8Q2M4N6P8R0T2V4:0", whatsappId: "3EB094773A396AE4D7AB31", to: "1" };
const ERROR = { code: "RESTRICTED_463", message: "" };
const clock = new SteadyClock();
writeLogTo(() => undefined);
let folder: string;
let journal: Journal;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "reporter-"));
  journal = Journal.open(folder, () => clock.nowMs());
  journal.intend({ ...SUBJECT, attempt: 1, at: clock.nowMs() });
  journal.conclude({ taskId: SUBJECT.taskId, outcome: "refused", at: clock.nowMs(), error: ERROR });
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Tells that it was refused, to an orchestrator that answers with this status. */
function report(status: number): Promise<void> {
  const shift = new Shift("s1", "i1", journal);
  shift.terms = { epoch: 1 } as HelloAnswer;
  const nack = (): Promise<void> => Promise.reject(new RequestRefused(status, "NO", ""));
  const reporter = new Reporter(shift, { nack } as unknown as WorkerProtocol, clock, seededRng(1));
  return reporter.report(SUBJECT, { raw: "{}" }, { kind: "not_sent", error: ERROR });
}

for (const status of [401, 403]) {
  test(`a report that is answered ${status} was heard by nobody: the worker ends, the next one tells it`, async () => {
    await assert.rejects(report(status), RequestRefused);
    assert.equal(journal.entry(SUBJECT.taskId)?.unreported, true);
  });
}

test("a report that is refused for what it says is not repeated", async () => {
  await report(422);
  assert.equal(journal.entry(SUBJECT.taskId)?.unreported, false);
});

test("a report whose words are not let through is told without them", async () => {
  const said: string[] = [];
  const nack = (_handle: unknown, _epoch: number, _notSent: boolean, error: typeof ERROR): Promise<void> => {
    said.push(error.message);
    return error.message ? Promise.reject(new Blocked("403")) : Promise.resolve();
  };
  const shift = new Shift("s1", "i1", journal);
  shift.terms = { epoch: 1 } as HelloAnswer;
  const timeless = { nowMs: () => clock.nowMs(), sleepMs: () => Promise.resolve() };
  const reporter = new Reporter(shift, { nack } as unknown as WorkerProtocol, timeless, seededRng(1));
  await reporter.report(SUBJECT, { raw: "{}" }, { kind: "not_sent", error: { ...ERROR, message: "select * from" } });
  assert.deepEqual(said, [...Array<string>(5).fill("select * from"), ""]);
  assert.equal(journal.entry(SUBJECT.taskId)?.unreported, false);
});
