/** Orders to pair and to log out, whenever they come: before the first code, before the connection, after a death. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { PHONE, Stage, until, type Worker } from "./stage.js";

let stage: Stage;
let worker: Worker;

before(async () => {
  stage = await Stage.start();
});
after(() => stage.stop());

type End = { readonly ok: unknown; readonly error: unknown; readonly pairingCode: unknown };

/** How so many orders ended: the last of them. */
async function end(count: number): Promise<End> {
  const events = await stage.events("COMMAND_DONE", count);
  assert.equal(events.length, count);
  const { ok, error, pairingCode } = events[count - 1]?.data ?? {};
  return { ok, error, pairingCode };
}

const devices = async (): Promise<number> =>
  (await stage.admin<{ devices: unknown[] }>("GET", "/devices")).devices.length;

test("an order to pair that waits at the hello gets its code once codes are shown", async () => {
  stage.orchestrator.command("pair");
  worker = stage.work();
  const { ok, error, pairingCode } = await end(1);
  assert.equal(ok, true, String(error));
  await stage.admin("POST", "/enter-code", { phone: PHONE, code: pairingCode });
  await stage.online();
});

test("an order to log out waits for the connection, and is then carried out once", async () => {
  await worker.kill();
  await stage.behave({ refuseUpgrade: { status: 503 } });
  stage.orchestrator.command("logout");
  worker = stage.work();
  await until("a try in vain", () => stage.orchestrator.named("DISCONNECTED").length > 0);
  assert.equal(stage.orchestrator.named("COMMAND_DONE").length, 1);
  await stage.behave({ refuseUpgrade: null });
  const { ok, error } = await end(2);
  assert.equal(ok, true, String(error));
  await until("the link is gone", async () => (await devices()) === 0);
});

test("a logout that was carried out and not told is told as done by the next life", async () => {
  await worker.kill();
  const shown = stage.orchestrator.named("QR").length;
  stage.orchestrator.command("logout");
  worker = stage.work();
  const { ok, error } = await end(3);
  assert.equal(ok, true, String(error));
  await stage.events("QR", shown + 1);
});

test("an order that waits for a connection which never comes is refused in words", async () => {
  const times = stage.orchestrator.named("CONNECTED").length;
  await stage.scan();
  await stage.online(times);
  await worker.kill();
  await stage.behave({ refuseUpgrade: { status: 503 } });
  const lost = stage.orchestrator.named("DISCONNECTED").length;
  stage.orchestrator.command("logout");
  worker = stage.work();
  await until("a try in vain", () => stage.orchestrator.named("DISCONNECTED").length > lost);
  await stage.behave({ refuseUpgrade: null, loginFailure: { reason: 403 } });
  const { ok, error } = await end(4);
  assert.deepEqual([ok, error], [false, "there is no connection to log out over"]);
});
