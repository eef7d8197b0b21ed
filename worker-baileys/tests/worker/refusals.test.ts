/** What the server refuses, limits or keeps silent about, and what is said of it. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { PHONE, Stage, until } from "./stage.js";

let stage: Stage;
let recipients = 972_541_200_000;
const somebody = (): string => String((recipients += 1));

before(async () => {
  stage = await Stage.start();
  Object.assign(stage.timings, { guardPauseMs: 300, uploadMs: 1_500 });
  await stage.linked();
});
after(() => stage.stop());

describe("nacks", () => {
  for (const [nack, code] of [
    [463, "RESTRICTED_463"],
    [479, "SEND_FAILED"],
    [421, "SEND_FAILED"],
    [429, "RATE_LIMIT"],
    [400, "SEND_FAILED"],
    [403, "SEND_FAILED"],
    [404, "SEND_FAILED"],
    [500, "SEND_FAILED"],
  ] as const) {
    test(`${nack}: ${code}`, async () => {
      const to = somebody();
      await stage.behave({ nacks: [{ code: nack, to }] });
      const task = stage.orchestrator.add({ to, text: "no" });
      await stage.settled(task, "failed");
      assert.deepEqual(task.nacks, [`refused ${code}`]);
      assert.ok(task.error?.message.startsWith(String(nack)));
    });
  }

  test("a second 479 of the same message is final, and the next message to that person goes through", async () => {
    const to = somebody();
    await stage.behave({ nacks: [{ code: 479, to, times: 2 }] });
    const task = stage.orchestrator.add({ to, text: "stale" });
    await stage.settled(task, "failed");
    task.state = "queued";
    await until("the second refusal", () => task.nacks.length === 2);
    assert.deepEqual(task.nacks, ["refused SEND_FAILED", "refused INVALID_RECIPIENT"]);
    await stage.settled(stage.orchestrator.add({ to, text: "fresh" }));
    await stage.behave({ nacks: [] });
  });
});

for (const status of [404, 403, 200]) {
  test(`${status} of something in between is no answer: the refusal is told, the words are not lost`, async () => {
    const [to, text] = [somebody(), `stop ${status}`];
    await stage.behave({ nacks: [{ code: 463, to }] });
    const { orchestrator } = stage;
    Object.assign(orchestrator, { broken: status, brokenCalls: ["nack", "MESSAGE_RECEIVED"] });
    orchestrator.inVain.length = 0;
    const task = orchestrator.add({ to, text: "refused" });
    await stage.admin("POST", "/inbound", { from: to, to: PHONE, text });
    const tries = (name: string): number => orchestrator.inVain.filter((call) => call === name).length;
    await until("two tries of each", () => tries("nack") >= 2 && tries("MESSAGE_RECEIVED") >= 2);
    orchestrator.broken = null;
    await stage.settled(task, "failed");
    await until("the words", () => orchestrator.named("MESSAGE_RECEIVED").some(({ data }) => data["text"] === text));
    assert.deepEqual([task.nacks, task.attempt], [["refused RESTRICTED_463"], 1]);
  });
}

test("an answer that says nothing of the number is no word that it does not exist", async () => {
  await stage.behave({ queryFaults: [{ xmlns: "usync", kind: "empty", times: 1 }] });
  const task = stage.orchestrator.add({ to: somebody(), text: "checked again" });
  await stage.settled(task, "failed");
  assert.equal(task.error?.code, "CONNECTION_LOST");
  await stage.behave({ queryFaults: [] });
  task.state = "queued";
  await stage.settled(task);
});

test("too many number checks: RATE_LIMIT, nothing sent, and later it goes on", async () => {
  const to = somebody();
  await stage.behave({ queryFaults: [{ xmlns: "usync", kind: "error", code: 429, times: 1 }] });
  const task = stage.orchestrator.add({ to, text: "checked" });
  await stage.settled(task, "failed");
  assert.equal(task.error?.code, "RATE_LIMIT");
  await stage.behave({ queryFaults: [] });
  await until("it goes through", async () => {
    if (task.state === "failed") task.state = "queued";
    return (await stage.ledger()).some(({ whatsappId }) => whatsappId === task.whatsappId);
  });
});

test("an upload that is never answered is given up, and the next message goes", async () => {
  await stage.behave({ mediaFault: { kind: "hang" } });
  const media = { content: Buffer.from("%PDF-1.7"), type: "application/pdf", kind: "pdf", name: "a.pdf" };
  const task = stage.orchestrator.add({ to: somebody(), text: "", mode: "document", media });
  await stage.settled(task, "failed");
  assert.deepEqual(task.nacks, ["refused MEDIA_UNAVAILABLE"]);
  await stage.behave({ mediaFault: null });
  await stage.settled(stage.orchestrator.add({ to: somebody(), text: "after it" }));
});

test("an ack that is lost is made up for by a receipt, and nothing is sent again", async () => {
  await stage.behave({ loseAcks: 1, deliveredDelayMs: 200 });
  const task = stage.orchestrator.add({ to: somebody(), text: "ack lost" });
  await stage.settled(task);
  assert.deepEqual(task.nacks, []);
  assert.equal((await stage.ledger()).filter(({ whatsappId }) => whatsappId === task.whatsappId).length, 1);
});

test("cut after it was taken: the receipt after the reconnect proves it", async () => {
  await stage.behave({ cutAfterAccept: 1, deliveredDelayMs: 50 });
  const task = stage.orchestrator.add({ to: somebody(), text: "cut after" });
  await stage.settled(task);
  assert.equal((await stage.ledger()).filter(({ whatsappId }) => whatsappId === task.whatsappId).length, 1);
});

test("cut before it was taken: unknown, and then sent once under the same id", async () => {
  await stage.behave({ cutBeforeAccept: 1 });
  const task = stage.orchestrator.add({ to: somebody(), text: "cut before" });
  await stage.settled(task);
  assert.deepEqual(task.nacks, ["unknown NO_ACK"]);
  assert.equal((await stage.ledger()).filter(({ whatsappId }) => whatsappId === task.whatsappId).length, 1);
});

describe("the platform's own limits", () => {
  const last = (): unknown[] => {
    const [event] = stage.orchestrator.named("RESTRICTION").slice(-1);
    return [event?.data["kind"], event?.data["until"]];
  };

  test("a time lock is told with its end; a 463 under it is a refusal; its lifting is told", async () => {
    const endsAtMs = (Math.floor(Date.now() / 1_000) + 3_600) * 1_000;
    await stage.behave({ phone: PHONE, timeLock: { active: true, endsAtMs } });
    await until("TIME_LOCKED", () => last()[0] === "TIME_LOCKED");
    assert.deepEqual(last(), ["TIME_LOCKED", endsAtMs]);
    const task = stage.orchestrator.add({ to: somebody(), text: "new chat" });
    await stage.settled(task, "failed");
    assert.equal(task.error?.code, "RESTRICTED_463");
    await stage.behave({ phone: PHONE, timeLock: null });
    await until("NONE", () => last()[0] === "NONE");
  });

  test("a cap on new chats is told with the end of its cycle", async () => {
    const cycleEndsAtMs = (Math.floor(Date.now() / 1_000) + 7_200) * 1_000;
    await stage.behave({ phone: PHONE, newChatQuota: { total: 5, used: 5, cycleEndsAtMs } });
    await until("CAPPED", () => last()[0] === "CAPPED");
    assert.deepEqual(last(), ["CAPPED", cycleEndsAtMs]);
    await stage.behave({ phone: PHONE, newChatQuota: null });
  });

  describe("a worker whose clock is wrong tells them by the orchestrator's", () => {
    const HOUR_MS = 3_600_000;
    const ahead = async (hours: number): Promise<void> => {
      for (const worker of stage.workers) if (!worker.isOver) await worker.kill();
      stage.orchestrator.aheadMs = hours * HOUR_MS;
      stage.orchestrator.events.length = 0;
      stage.work();
      await stage.online();
    };

    test("two hours ahead: a cap for another hour is not over", async () => {
      await ahead(-2);
      const cycleEndsAtMs = (Math.floor(Date.now() / 1_000) - 3_600) * 1_000;
      await stage.behave({ phone: PHONE, newChatQuota: { total: 5, used: 5, cycleEndsAtMs } });
      await until("CAPPED", () => last()[0] === "CAPPED");
      assert.deepEqual(last(), ["CAPPED", cycleEndsAtMs]);
      await stage.behave({ phone: PHONE, newChatQuota: null });
    });

    for (const hours of [2, -2]) {
      test(`${-hours} hours ahead: a lock without an end lasts a minute, from now`, async () => {
        await ahead(hours);
        const fromMs = Date.now() + hours * HOUR_MS + 60_000;
        await stage.behave({ phone: PHONE, timeLock: { active: true } });
        await until("TIME_LOCKED", () => last()[0] === "TIME_LOCKED");
        const [told] = stage.orchestrator.named("RESTRICTION").slice(-1);
        const untilMs = Number(told?.data["until"]);
        assert.ok(Math.abs(untilMs - fromMs) < HOUR_MS / 2, String(untilMs - fromMs));
        assert.ok(Math.abs(Number(told?.timestamp) - fromMs) < HOUR_MS / 2);
        await stage.behave({ phone: PHONE, timeLock: null });
      });
    }
  });
});
