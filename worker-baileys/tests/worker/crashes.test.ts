/**
 * Power cuts: kill -9 between every two steps of sending. Whatever the step, in the server's book stands one message id
 * per task, with the right text, and no message key was used twice.
 */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, before, test } from "node:test";
import { PHONE, Stage, until } from "./stage.js";

/** In the order in which a send passes them, and how often the message may then stand in the server's book. */
const STEPS: readonly (readonly [string, number])[] = [
  ["claimed-not-sent", 1],
  ["prepared-not-typed", 1],
  ["typed-not-intended", 1],
  ["intent-written", 1],
  ["at-the-wire", 1],
  // From here on it is out. What is known of it decides whether it is written again, under the same id.
  ["written-not-kept", 2],
  ["written-not-acked", 2],
  ["sent-not-reported", 2],
  ["concluded-not-reported", 1],
  ["reported-not-acked", 1],
  ["acked-not-noted", 1],
];

/** A receipt ends the wait, however late a busy machine brings it; where none comes, all of it passes. */
const graceMs = (receipts: boolean): number => (receipts ? 30_000 : 1_000);

let stage: Stage;

before(async () => {
  stage = await Stage.start();
  const worker = await stage.linked();
  // So that there are sessions in use, whose keys a crash could use twice.
  await stage.settled(stage.orchestrator.add({ to: "972541110001", text: "first" }));
  await worker.kill();
});
after(() => stage.stop());

for (const receipts of [true, false]) {
  for (const [step, most] of STEPS) {
    test(`killed at ${step}, ${receipts ? "with receipts" : "and no receipt ever comes"}: one id, text equal`, async () => {
      await stage.behave({ deliveredRatio: receipts ? 1 : 0, readRatio: receipts ? 1 : 0, deliveredDelayMs: 300 });
      stage.orchestrator.unknownGraceMs = graceMs(receipts);
      stage.arm(step);
      const text = `קטיעה ${step} 🙂 ${receipts}`;
      const task = stage.orchestrator.add({ to: "972541110001", text });
      const first = stage.work();
      await first.ended();
      assert.equal(first.signal, "SIGKILL");
      const second = stage.work();
      await stage.settled(task);
      // One more after it: the chain of keys must go on where it was.
      const next = stage.orchestrator.add({ to: "972541110001", text: `after ${text}` });
      await stage.settled(next);
      await second.kill();
      const lines = await stage.ledger();
      const own = lines.filter((line) => line.text === text);
      assert.deepEqual([...new Set(own.map(({ whatsappId }) => whatsappId))], [task.whatsappId]);
      assert.ok(own.length <= most, `${own.length} times`);
      if (receipts) assert.equal(own.length, 1, "a receipt proved it, and it was sent again all the same");
      assert.deepEqual(
        lines.filter(({ counterReused, undecryptable }) => counterReused || undecryptable),
        [],
      );
      assert.equal(lines.filter(({ whatsappId }) => whatsappId === next.whatsappId).length, 1);
    });
  }
}

test("a device that could not read a message asks the next life for it, and gets it under the same id", async () => {
  await stage.behave({ deliveredRatio: 1, readRatio: 1 });
  stage.orchestrator.unknownGraceMs = graceMs(true);
  const to = "972541110002";
  const first = stage.work();
  await stage.settled(stage.orchestrator.add({ to, text: "before" }));
  await stage.admin("POST", "/inbound", { from: to, to: PHONE, text: "so that a session is in use" });
  await stage.events("MESSAGE_RECEIVED");
  await stage.admin("POST", `/accounts/${to}/forget-sessions`);
  stage.arm("written-not-acked");
  const text = "unreadable at first 🙂";
  const task = stage.orchestrator.add({ to, text });
  await first.ended();
  const second = stage.work();
  // That the server has it is proven by the question; so nobody needs to send it again.
  await stage.settled(task);
  assert.deepEqual(task.nacks, []);
  await until("READ", () => stage.orchestrator.named("MESSAGE_READ", task).length);
  await second.kill();
  const lines = (await stage.ledger()).filter((line) => line.text === text);
  assert.deepEqual(
    lines.map(({ whatsappId, undecryptable, repeat }) => [whatsappId, undecryptable, repeat]),
    [
      [task.whatsappId, true, undefined],
      [task.whatsappId, undefined, true],
    ],
  );
});

test("a journal that is lost with its volume: what was claimed is never sent again unasked", async () => {
  await stage.behave({ deliveredRatio: 0, readRatio: 0 });
  stage.orchestrator.unknownGraceMs = graceMs(false);
  stage.arm("written-not-acked");
  const task = stage.orchestrator.add({ to: "972541110001", text: "lost journal" });
  await stage.work().ended();
  rmSync(`${stage.volume}/journal.jsonl`);
  const worker = stage.work();
  await until("the answer", () => task.nacks.length > 0);
  assert.deepEqual(task.nacks, ["unknown UNKNOWN_OUTCOME"]);
  await worker.kill();
});
