/**
 * The account that is linked must be the number that the session is for: from another one not a word goes out, and its
 * link is ended.
 */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { afterEach, beforeEach, test } from "node:test";
import { PHONE, Stage, until } from "./stage.js";

const OTHER = "972500000002";
let stage: Stage;

beforeEach(async () => {
  stage = await Stage.start();
});
afterEach(() => stage.stop());

const devices = async (): Promise<unknown[]> =>
  (await stage.admin<{ devices: unknown[] }>("GET", "/devices")).devices;

async function scanWith(phone: string): Promise<void> {
  const [qr] = (await stage.events("QR", stage.orchestrator.named("QR").length || 1)).slice(-1);
  await stage.admin("POST", "/scan", { qr: qr?.data["qr"], phone });
}

/** What was told of the connection, but for the restart that follows every scan. */
const told = (): string[] =>
  stage.orchestrator.events
    .filter(({ event, data }) => ["CONNECTED", "DISCONNECTED"].includes(event) && data["code"] !== 515)
    .map(({ event, data }) => `${event} ${String(data["code"] ?? "")} ${String(data["reason"] ?? "")}`.trim());

async function refused(): Promise<void> {
  await until("the refusal", () => told().includes("DISCONNECTED 411 WRONG_NUMBER"));
  const pings = stage.orchestrator.named("PING").length;
  await until("two pings more", () => stage.orchestrator.named("PING").length >= pings + 2);
}

test("a code that the wrong phone scanned: logged out again, 411, nothing sent; the right phone may scan", async () => {
  const task = stage.orchestrator.add({ to: "972541110001", text: "from the right number alone" });
  const worker = stage.work();
  await scanWith(OTHER);
  await refused();
  assert.deepEqual(told(), ["DISCONNECTED 411 WRONG_NUMBER"]);
  assert.deepEqual([await devices(), await stage.ledger(), task.attempt], [[], [], 0]);
  await worker.kill();
  const shown = stage.orchestrator.named("QR").length;
  stage.work();
  await stage.events("QR", shown + 1);
  await scanWith(PHONE);
  await stage.settled(task);
});

test("a session that was registered anew for another number does not send from the first", async () => {
  const worker = await stage.linked();
  await worker.kill();
  await stage.admin("POST", "/inbound", { from: "972541110001", to: PHONE, text: "to the first number" });
  const task = stage.orchestrator.add({ to: "972541110001", text: "from the second number alone" });
  stage.work({ PHONE: OTHER });
  await refused();
  assert.deepEqual(told(), ["CONNECTED", "DISCONNECTED 411 WRONG_NUMBER"]);
  assert.deepEqual([await devices(), await stage.ledger(), task.attempt], [[], [], 0]);
  // What people write to another number is no word to this one.
  assert.deepEqual(stage.orchestrator.named("MESSAGE_RECEIVED"), []);
});

for (const [name, reason] of [
  ["logged out", 401],
  ["banned", 403],
] as const) {
  test(`the wrong account is ${name}: that is no word on the number of this session`, async () => {
    await stage.behave({ loginFailure: { reason } });
    stage.work();
    await scanWith(OTHER);
    await refused();
    assert.deepEqual(told(), ["DISCONNECTED 411 WRONG_NUMBER"]);
    assert.ok(readdirSync(stage.volume).some((file) => file.includes("logged-out")));
  });
}

test("the same number in WhatsApp’s own notation is the right one", async () => {
  stage.work({ PHONE: "5511987654321" });
  await scanWith("551187654321");
  await stage.online();
  await stage.settled(stage.orchestrator.add({ to: "972541110001", text: "hello" }));
});

test("a number whose country made all numbers longer is not logged out", async () => {
  stage.work({ PHONE: "2290197123456" });
  await scanWith("22997123456");
  await stage.online();
  await stage.settled(stage.orchestrator.add({ to: "972541110001", text: "hello" }));
});
