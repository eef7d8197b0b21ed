/**
 * The orchestrator is away for a minute, which is longer than any pause between two tries, and the worker is killed
 * meanwhile: what people write, receipts and results arrive all the same, and nothing is sent twice.
 */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { after, before, beforeEach, test } from "node:test";
import { PHONE, Stage, until, type Worker } from "./stage.js";

// The pauses between tries double from 250 ms to 10 s: so many in vain are about a minute.
const TRIES = 12;
const MINUTE_CAP_MS = 180_000;
const PERSON = "972541110001";
let stage: Stage;
let worker: Worker;

before(async () => {
  stage = await Stage.start();
  worker = await stage.linked();
  await stage.settled(stage.orchestrator.add({ to: PERSON, text: "first" }));
});
after(() => stage.stop());
beforeEach(() => stage.behave({ ackDelayMs: 0, deliveredDelayMs: 20, readDelayMs: 40 }));

const texts = (): unknown[] => stage.orchestrator.named("MESSAGE_RECEIVED").map(({ data }) => data["text"]);
const inLedger = async (id: string): Promise<number> =>
  (await stage.ledger()).filter(({ whatsappId }) => whatsappId === id).length;

async function writeToUs(text: string, from = PERSON): Promise<void> {
  await stage.admin("POST", "/inbound", { from, to: PHONE, text });
}

/** Until the device has confirmed all that WhatsApp had for it: from here on nobody tells it again. */
async function allConfirmed(): Promise<void> {
  await until("all to be confirmed", async () => {
    const { devices } = await stage.admin<{ devices: { waiting: number }[] }>("GET", "/devices");
    return devices.every(({ waiting }) => waiting === 0);
  });
}

test("away for a minute: the result, the receipts and what was written meanwhile are told, each once", async () => {
  await stage.behave({ ackDelayMs: 300, deliveredDelayMs: 400, readDelayMs: 800 });
  const task = stage.orchestrator.add({ to: PERSON, text: "just before" });
  await until("the message", () => inLedger(task.whatsappId));
  const port = await stage.orchestrator.stop();
  const queued = stage.orchestrator.add({ to: PERSON, text: "waits for the orchestrator" });
  for (const text of ["one", "two", "three"]) await writeToUs(text);
  await until("a minute of tries", () => worker.output.includes(`"failures":${TRIES}`), MINUTE_CAP_MS);
  await stage.orchestrator.start(port);
  await stage.settled(task);
  await stage.settled(queued);
  for (const about of [task, queued]) {
    await until("READ", () => stage.orchestrator.named("MESSAGE_READ", about).length);
    assert.equal(stage.orchestrator.named("MESSAGE_DELIVERED", about).length, 1);
    assert.equal(await inLedger(about.whatsappId), 1);
  }
  assert.deepEqual(task.nacks, []);
  assert.deepEqual(texts(), ["one", "two", "three"]);
  assert.ok(!worker.isOver);
});

test("killed while it is away: all of it is told by the next worker", async () => {
  await stage.behave({ deliveredDelayMs: 400, readDelayMs: 800 });
  const task = stage.orchestrator.add({ to: PERSON, text: "before the kill" });
  await stage.settled(task);
  const port = await stage.orchestrator.stop();
  await writeToUs("four");
  await until("it to be read", () =>
    stage.fake.context.events.after(0).events.some(({ kind, id }) => kind === "read" && id === task.whatsappId),
  );
  await allConfirmed();
  await worker.kill();
  await stage.orchestrator.start(port);
  worker = stage.work();
  await until("READ", () => stage.orchestrator.named("MESSAGE_READ", task).length);
  assert.equal(stage.orchestrator.named("MESSAGE_DELIVERED", task).length, 1);
  await until("the words", () => texts().includes("four"));
  assert.equal(await inLedger(task.whatsappId), 1);
});

// In the order in which a message that comes in passes them.
const STEPS = ["decrypted-not-kept", "kept-not-ratcheted", "ratcheted-not-confirmed", "told-not-forgotten"];
for (const [index, step] of STEPS.entries()) {
  test(`killed at ${step}: what was written is told`, async () => {
    const text = `killed at ${step}`;
    // Somebody new: of a first message that was opened before, the library asks nobody for another copy.
    const stranger = String(972541110100 + index);
    stage.arm(step);
    // Or the words might be told in the moment before the kill.
    if (step !== "told-not-forgotten") stage.orchestrator.broken = 503;
    await writeToUs(text, stranger);
    await worker.ended();
    assert.equal(worker.signal, "SIGKILL");
    stage.orchestrator.broken = null;
    worker = stage.work();
    await until("the words", () => texts().includes(text));
    // More than once only under the same id, by which the orchestrator knows a repetition.
    const told = stage.orchestrator.named("MESSAGE_RECEIVED").filter(({ data }) => data["text"] === text);
    assert.equal(new Set(told.map(({ eventId }) => eventId)).size, 1);
    await allConfirmed();
    await writeToUs(`after ${text}`, stranger);
    await until("the next words", () => texts().includes(`after ${text}`));
  });
}

test("logged out while it is away, and then killed: the next worker tells of it", async () => {
  const port = await stage.orchestrator.stop();
  await stage.disconnect({ kind: "device-removed" });
  await until("the login to be put aside", () => readdirSync(stage.volume).some((file) => file.includes("logged-out")));
  await worker.kill();
  await stage.orchestrator.start(port);
  worker = stage.work();
  const told = await until("the logout", () =>
    stage.orchestrator.named("DISCONNECTED").find(({ data }) => data["code"] === 401),
  );
  // Not of the epoch in which it happened: it counts all the same.
  assert.equal(told.data["epoch"], undefined);
  await stage.events("QR", 2);
});
