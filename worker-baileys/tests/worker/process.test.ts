/** The worker as a process: how it stops, with which status it ends, what it survives, and what it takes of memory. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Stage, until, type Worker } from "./stage.js";

// What the product promises of an idle worker.
const IDLE_MEGABYTES = 150;
let stage: Stage;
let worker: Worker;

before(async () => {
  stage = await Stage.start();
  worker = await stage.linked();
});
after(() => stage.stop());

async function restart(env: Record<string, string> = {}): Promise<void> {
  const times = stage.orchestrator.named("CONNECTED").length;
  await worker.kill();
  worker = stage.work(env);
  await stage.online(times);
}

test("a linked worker that is idle takes less than 150 MB, and stays there", async (context) => {
  await stage.settled(stage.orchestrator.add({ to: "972541110001", text: "warm" }));
  const megabytes = (): number => {
    const status = readFileSync(`/proc/${worker.process.pid}/status`, "utf8");
    return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024);
  };
  const busy = megabytes();
  await until(`less than ${IDLE_MEGABYTES} MB`, () => megabytes() < IDLE_MEGABYTES);
  const pings = stage.orchestrator.named("PING").length;
  let most = 0;
  await until("ten pings more", () => {
    most = Math.max(most, megabytes());
    return stage.orchestrator.named("PING").length >= pings + 10;
  });
  assert.ok(most < IDLE_MEGABYTES, `${most} MB`);
  context.diagnostic(`${busy} MB resident right after the link and a message, then at most ${most} MB`);
});

test("what it did with a task is logged under the id of the accepting request", async () => {
  const task = stage.orchestrator.add({ to: "972541110001", text: "followed" });
  await stage.settled(task);
  await until("the line", () =>
    worker.output
      .split("\n")
      .some((line) => line.includes(`"request_id":"request-of-${task.taskId}"`) && line.includes(task.taskId)),
  );
});

test("a second worker of the session is turned away with 4 and does not connect", async () => {
  const second = stage.work();
  assert.equal(await second.ended(), 4);
  assert.ok(!worker.isOver);
});

test("asked to stop while idle it ends with 0 and says so", async () => {
  const said = stage.orchestrator.named("DISCONNECTED").length;
  assert.equal(await worker.kill("SIGTERM"), 0);
  const [event] = stage.orchestrator.named("DISCONNECTED").slice(said);
  assert.deepEqual([event?.data["code"], event?.data["reason"]], [0, "stopped"]);
});

test("asked to stop with a task that is not due, it gives it back", async () => {
  await restart();
  const task = stage.orchestrator.add({ to: "972541110001", text: "later", sendAfterMs: 30_000 });
  await until("the claim", () => task.state === "claimed");
  assert.equal(await worker.kill("SIGTERM"), 0);
  assert.deepEqual(task.nacks, ["returned"]);
  task.state = "failed";
});

test("asked to stop with a message on the wire, it waits for the ack", async () => {
  await restart();
  await stage.behave({ ackDelayMs: 1_000 });
  const task = stage.orchestrator.add({ to: "972541110001", text: "in the air" });
  await until("the message", async () =>
    (await stage.ledger()).some(({ whatsappId }) => whatsappId === task.whatsappId),
  );
  assert.equal(await worker.kill("SIGTERM"), 0);
  assert.equal(task.state, "sent");
  await stage.behave({ ackDelayMs: 0 });
});

test("when a newer instance has said hello it ends with 3, and says nothing", async () => {
  await restart();
  const said = stage.orchestrator.named("DISCONNECTED").length;
  stage.orchestrator.epoch += 1;
  stage.orchestrator.add({ to: "972541110001", text: "for the other" }).state = "failed";
  assert.equal(await worker.ended(), 3);
  assert.equal(stage.orchestrator.named("DISCONNECTED").length, said);
});

test("an orchestrator that refuses it ends it with 1", async () => {
  worker = stage.work({ WEBHOOK_SECRET: "not-the-right-secret" });
  assert.equal(await worker.ended(), 1);
});

test("a bad environment ends it with 2 and names everything", async () => {
  worker = stage.work({ AUTH_KEY: "", PROXY_URL: "socks5://x" });
  assert.equal(await worker.ended(), 2);
  assert.match(worker.output, /AUTH_KEY: is not set; PROXY_URL: /);
});

test("another key ends it with 2 and leaves the login alone", async () => {
  worker = stage.work({ AUTH_KEY: "00".repeat(32) });
  assert.equal(await worker.ended(), 2);
  await restart();
  await stage.settled(stage.orchestrator.add({ to: "972541110001", text: "still linked" }));
});

test("an orphan ends with 5", async () => {
  await restart({ ORPHAN_MS: "600" });
  const port = await stage.orchestrator.stop();
  assert.equal(await worker.ended(), 5);
  await stage.orchestrator.start(port);
});

test("while the orchestrator is away a message is finished, and told when it is back", async () => {
  await restart();
  await stage.behave({ ackDelayMs: 500 });
  const task = stage.orchestrator.add({ to: "972541110001", text: "told late" });
  await until("the message", async () =>
    (await stage.ledger()).some(({ whatsappId }) => whatsappId === task.whatsappId),
  );
  const port = await stage.orchestrator.stop();
  await until("a failed report", () => worker.output.includes("report not answered"));
  await stage.orchestrator.start(port);
  await stage.settled(task);
  await until("READ", () => stage.orchestrator.named("MESSAGE_READ", task).length > 0);
  assert.equal((await stage.ledger()).filter(({ whatsappId }) => whatsappId === task.whatsappId).length, 1);
  await stage.behave({ ackDelayMs: 0 });
});

test("an orchestrator that answers 503 for a while is asked again", async () => {
  stage.orchestrator.broken = 503;
  const task = stage.orchestrator.add({ to: "972541110001", text: "after the 503s" });
  await until("an answer of 503", () => worker.output.includes("answered 503"));
  stage.orchestrator.broken = null;
  await stage.settled(task);
});

test("its lock says who it is, for the runner", () => {
  const [pid, about] = readFileSync(join(stage.volume, "worker.lock"), "utf8").split("\n");
  assert.equal(Number(pid), worker.process.pid);
  assert.deepEqual(Object.keys(JSON.parse(about ?? "{}") as object), ["ticks", "instance", "generation"]);
});

test("linking that wants a passkey is told as LINK_BLOCKED and not tried again", async () => {
  await worker.kill("SIGTERM");
  stage.sessionId = "s2";
  const shown = stage.orchestrator.named("QR").length;
  const ends = stage.orchestrator.named("DISCONNECTED").length;
  worker = stage.work();
  await stage.events("QR", shown + 1);
  for (const connection of stage.fake.sessions.open) {
    connection.send({
      tag: "notification",
      attrs: { from: "s.whatsapp.net", id: "n1", type: "passkey_prologue_request" },
    });
  }
  const [blocked] = await stage.events("LINK_BLOCKED");
  assert.match(String(blocked?.data["reason"]), /passkey/);
  const pings = stage.orchestrator.named("PING").length;
  await until("three pings more", () => stage.orchestrator.named("PING").length >= pings + 3);
  assert.equal(stage.fake.sessions.open.size, 0);
  assert.equal(stage.orchestrator.named("DISCONNECTED").length, ends);
  assert.ok(existsSync(join(stage.volume, "auth.sqlite")));
});
