/** WhatsApp's own limits as the library asks for them and is told of them: reach-out time lock, new-chat quota, 463. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { waitFor } from "./client.js";
import { startFake } from "./support.js";
import type { Running } from "./support.js";

let running: Running;
before(async () => void (running = await startFake()));
after(() => running.stop());

let lastPhone = 972550000000;
const newPhone = (): string => String(++lastPhone);
const jidOf = (phone: string): string => `${phone}@s.whatsapp.net`;
/** The wire has seconds. */
const IN_AN_HOUR_MS = (Math.floor(Date.now() / 1000) + 3600) * 1000;

test("no limits: the time lock is not active, the quota says NONE", async () => {
  const client = await running.linked(newPhone());
  const lock = await client.socket.fetchAccountReachoutTimelock();
  assert.deepEqual(lock, { isActive: false, timeEnforcementEnds: undefined, enforcementType: "DEFAULT" });
  assert.equal((await client.socket.fetchNewChatMessageCap()).capping_status, "NONE");
});

test("a time lock is told, can be asked for, and refuses new chats with 463 but not those that exist", async () => {
  const phone = newPhone();
  const client = await running.linked(phone);
  await client.socket.sendMessage(jidOf("972559999999"), { text: "before" }, { messageId: "BEFORELOCK" });
  await client.ack("BEFORELOCK");
  await running.admin.behave({ phone, timeLock: { endsAtMs: IN_AN_HOUR_MS, enforcementType: "BIZ_QUALITY" } });
  const expected = { isActive: true, timeEnforcementEnds: new Date(IN_AN_HOUR_MS), enforcementType: "BIZ_QUALITY" };
  const told = await waitFor("the notification", () => client.updates.find(({ reachoutTimeLock }) => reachoutTimeLock));
  assert.deepEqual(told.reachoutTimeLock, expected);
  assert.deepEqual(await client.socket.fetchAccountReachoutTimelock(), expected);

  await client.socket.sendMessage(jidOf("972559999998"), { text: "new" }, { messageId: "NEWCHAT" });
  assert.equal((await client.ack("NEWCHAT")).attrs.error, "463");
  await client.socket.sendMessage(jidOf("972559999999"), { text: "known" }, { messageId: "KNOWNCHAT" });
  assert.equal((await client.ack("KNOWNCHAT")).attrs.error, undefined);
  await running.admin.call("POST", "/inbound", { from: "972559999997", to: phone, text: "I write first" });
  await client.socket.sendMessage(jidOf("972559999997"), { text: "answer" }, { messageId: "ANSWER" });
  assert.equal((await client.ack("ANSWER")).attrs.error, undefined);

  await running.admin.behave({ phone, timeLock: null });
  await client.socket.sendMessage(jidOf("972559999998"), { text: "new" }, { messageId: "UNLOCKED" });
  assert.equal((await client.ack("UNLOCKED")).attrs.error, undefined);
});

test("the quota of new chats is counted, told, and refuses with 463 once it is used up", async () => {
  const phone = newPhone();
  const client = await running.linked(phone);
  await running.admin.behave({ phone, newChatQuota: { total: 2, cycleEndsAtMs: IN_AN_HOUR_MS } });
  await waitFor("the notification", () => client.cappings.length === 1);
  const codes: (string | undefined)[] = [];
  for (const to of ["972559999996", "972559999995", "972559999996", "972559999994"]) {
    const id = `QUOTA${codes.length}`;
    await client.socket.sendMessage(jidOf(to), { text: "hello" }, { messageId: id });
    codes.push((await client.ack(id)).attrs.error);
  }
  assert.deepEqual(codes, [undefined, undefined, undefined, "463"]);
  const { total_quota, used_quota, capping_status, cycle_end_timestamp } = await client.socket.fetchNewChatMessageCap();
  assert.deepEqual([total_quota, used_quota, capping_status], [2, 2, "CAPPED"]);
  assert.equal(cycle_end_timestamp, String(IN_AN_HOUR_MS / 1000));
});

test("a query that the platform refuses rejects", async () => {
  const phone = newPhone();
  const client = await running.linked(phone);
  await running.admin.behave({ phone, queryFaults: [{ xmlns: "w:mex", code: 500, text: "internal-server-error" }] });
  await assert.rejects(client.socket.fetchNewChatMessageCap(), /internal-server-error/);
});
