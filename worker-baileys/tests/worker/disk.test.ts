/** The disk takes nothing more: what cannot be kept is not confirmed; the worker ends, the next one is told again. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, test } from "node:test";
import { node } from "../../fake-whatsapp/src/nodes.js";
import { PHONE, Stage, until, type Worker } from "./stage.js";

const PERSON = "972541110001";
let stage: Stage;
let worker: Worker;

before(async () => {
  stage = await Stage.start();
  worker = await stage.linked();
  await stage.behave({ deliveredRatio: 0 });
});
after(() => stage.stop());

/** From now on every write of the worker to a file fails. */
function fillDisk(): void {
  execFileSync("prlimit", ["--pid", String(worker.process.pid), "--fsize=0"]);
}

test("a receipt", async () => {
  const task = stage.orchestrator.add({ to: PERSON, text: "to be delivered" });
  await stage.settled(task);
  await until("MESSAGE_SENT", () => stage.orchestrator.named("MESSAGE_SENT", task).length);
  fillDisk();
  const [device] = stage.fake.context.devices.ofPhone(PHONE);
  assert.ok(device);
  const receipt = { from: `${PERSON}@s.whatsapp.net`, id: task.whatsappId, t: String(Math.floor(Date.now() / 1_000)) };
  stage.fake.context.outbox.deliver(device, node("receipt", receipt));
  assert.equal(await worker.ended(), 1);
  assert.equal(stage.orchestrator.named("MESSAGE_DELIVERED", task).length, 0);
  worker = stage.work();
  await until("MESSAGE_DELIVERED", () => stage.orchestrator.named("MESSAGE_DELIVERED", task).length);
});

test("what a person wrote", async () => {
  await stage.online(1);
  fillDisk();
  await stage.admin("POST", "/inbound", { from: PERSON, to: PHONE, text: "hear me" });
  assert.equal(await worker.ended(), 1);
  assert.deepEqual(stage.orchestrator.named("MESSAGE_RECEIVED"), []);
  worker = stage.work();
  const [told] = await stage.events("MESSAGE_RECEIVED");
  assert.equal(told?.data["text"], "hear me");
});
