/**
 * What is made of the driver's events: proofs on the disk before anybody is told, receipts never backwards, ends told
 * once.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { SteadyClock, Wake } from "../../src/clock.js";
import { PAUSES } from "../../src/disconnects.js";
import type { Driver, DriverEvent } from "../../src/driver/port.js";
import { Journal } from "../../src/journal.js";
import { writeLogTo } from "../../src/log.js";
import { Poster } from "../../src/poster.js";
import type { WorkerEvent, WorkerProtocol } from "../../src/protocol.js";
import { EventPump } from "../../src/pump.js";
import { seededRng } from "../../src/rng.js";
import { Shift } from "../../src/shift.js";

const TASK = "01JAR7Z3V5W8Q2M4N6P8R0T2V4:0";
const WIRE = "3EB094773A396AE4D7AB31";
const clock = new SteadyClock();
writeLogTo(() => undefined);
let folder: string;
let journal: Journal;
let shift: Shift;
let pump: EventPump;
let told: string[];
let connects: number;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "pump-"));
  journal = Journal.open(folder, () => clock.nowMs());
  shift = new Shift("s1", "i1", journal);
  told = [];
  connects = 0;
  const poster = new Poster({
    shift,
    clock,
    rng: seededRng(1),
    wake: new Wake(),
    pingEveryMs: 0,
    quietMs: () => null,
    protocol: {} as WorkerProtocol,
    store: { all: () => [], add: () => true, remove: () => undefined },
  });
  const note = (name: string, data: WorkerEvent["data"]): void =>
    void told.push(`${name} ${String(data["code"] ?? data["whatsappId"] ?? "")}`.trim());
  poster.post = ({ event, data }: WorkerEvent) => note(event, data);
  poster.tell = note;
  poster.tellSurely = (name, data) => note(`${name} surely`, data);
  const driver = { connect: () => void (connects += 1), onEvent: () => undefined } as unknown as Driver;
  pump = new EventPump({ shift, driver, poster, clock, rng: seededRng(1), pauses: { ...PAUSES, firstMs: 3_600_000 } });
  journal.intend({ taskId: TASK, whatsappId: WIRE, to: "1", attempt: 1, at: clock.nowMs() });
});
afterEach(() => {
  pump.stop();
  rmSync(folder, { recursive: true });
});

const take = (...events: DriverEvent[]): void => {
  for (const event of events) pump.takeIn(event);
};
const ended = (code: number, reason = ""): DriverEvent => ({ kind: "disconnected", code, reason });
const receipt = (kind: "delivered" | "read" | null): DriverEvent => ({
  kind: "receipt",
  whatsappId: WIRE,
  receipt: kind,
});

test("a receipt of an open message proves it: on the disk, and told as sent, then delivered", () => {
  take(receipt("delivered"));
  assert.equal(Journal.open(folder, () => clock.nowMs()).entry(TASK)?.sent, true);
  assert.deepEqual(told, [`MESSAGE_SENT ${WIRE}`, `MESSAGE_DELIVERED ${WIRE}`]);
});

test("a receipt of the message under way proves it, and the telling is left to its sender", () => {
  shift.takeUp(WIRE);
  take(receipt(null));
  assert.equal(shift.proven(WIRE), true);
  assert.deepEqual(told, []);
});

test("a late ack proves as well; one that is awaited is the sender’s to write down", () => {
  shift.takeUp(WIRE);
  take({ kind: "ack", whatsappId: WIRE, outcome: { kind: "accepted" } });
  assert.equal(journal.entry(TASK)?.sent, false);
  assert.equal(shift.proven(WIRE), true);
  shift.putDown();
  take({ kind: "ack", whatsappId: WIRE, outcome: { kind: "accepted" } });
  assert.deepEqual(told, [`MESSAGE_SENT ${WIRE}`]);
});

test("a refusal counts only for the message under way", () => {
  const refusal: DriverEvent = {
    kind: "ack",
    whatsappId: WIRE,
    outcome: { kind: "refused", error: { code: "X", message: "" } },
  };
  take(refusal);
  assert.equal(shift.refused(WIRE), null);
  shift.takeUp(WIRE);
  take(refusal);
  assert.equal(shift.refused(WIRE)?.code, "X");
});

test("what was read is not delivered afterwards", () => {
  journal.conclude({ taskId: TASK, outcome: "sent", at: 1 });
  take(receipt("read"));
  journal.markReceipt(WIRE, "read");
  take(receipt("delivered"), receipt("read"));
  assert.deepEqual(told, [`MESSAGE_READ ${WIRE}`]);
});

test("a receipt of somebody else’s message is nothing to us", () => {
  take({ kind: "receipt", whatsappId: "OTHER", receipt: "read" });
  assert.deepEqual(told, []);
});

test("a lost connection is told once however often it fails; what is final is always told", () => {
  take({ kind: "connected" }, ended(428), ended(408), ended(500), ended(403, "Connection Failure"));
  assert.deepEqual(told, ["CONNECTED", "DISCONNECTED 428", "DISCONNECTED 403"]);
  assert.equal(shift.endedForGood, true);
});

test("a logout is told surely: its login is gone, and nobody could find out again", () => {
  take({ kind: "connected" }, ended(401, "Stream Errored (conflict)"));
  assert.deepEqual(told, ["CONNECTED", "DISCONNECTED surely 401"]);
  assert.equal(shift.endedForGood, true);
});

test("a link of another number that was ended is told surely, too", () => {
  take(ended(515), ended(411, "WRONG_NUMBER"));
  assert.deepEqual(told, ["DISCONNECTED 515", "DISCONNECTED surely 411"]);
  assert.equal(shift.endedForGood, true);
});

test("ten failures in a row are told as an error, once", () => {
  for (let failures = 0; failures < 15; failures += 1) take(ended(500));
  assert.deepEqual(told, ["DISCONNECTED 500", "ERROR CANNOT_CONNECT"]);
});

test("after LINK_BLOCKED the end of its connection is not told and nothing is tried", () => {
  take({ kind: "link_blocked", reason: "passkey" }, ended(515));
  assert.deepEqual(told, ["LINK_BLOCKED"]);
  assert.equal(connects, 0);
});

test("a logout that was ordered is not told as a loss", () => {
  shift.loggingOut = true;
  take(ended(401, "logged out by an operator"));
  assert.deepEqual(told, []);
  assert.equal(shift.endedForGood, true);
});
