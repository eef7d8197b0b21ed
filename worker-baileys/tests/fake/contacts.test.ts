/** Who is on WhatsApp, and what contacts write: usync, canonical numbers, slow and missing answers, inbound messages. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startFake } from "./support.js";
import type { Running } from "./support.js";

let running: Running;
before(async () => void (running = await startFake()));
after(() => running.stop());

let lastPhone = 972540000000;
const newPhone = (): string => String(++lastPhone);
const jidOf = (phone: string): string => `${phone}@s.whatsapp.net`;

test("every number is on WhatsApp, under itself", async () => {
  const client = await running.linked(newPhone());
  const found = await client.socket.onWhatsApp("972549999999");
  assert.deepEqual(found, [{ jid: jidOf("972549999999"), exists: true }]);
});

test("a missing number is absent from the answer and has no devices; a message to it reaches nobody", async () => {
  const client = await running.linked(newPhone());
  const missing = newPhone();
  await running.admin.call("DELETE", `/accounts/${missing}`);
  assert.deepEqual(await client.socket.onWhatsApp(missing), []);
  assert.deepEqual(await client.socket.getUSyncDevices([jidOf(missing)], false, false), []);
  await client.socket.sendMessage(jidOf(missing), { text: "to nobody" }, { messageId: "NOBODY" });
  assert.equal((await client.ack("NOBODY")).attrs.error, undefined);
  const line = (await running.admin.ledger()).find(({ whatsappId }) => whatsappId === "NOBODY");
  assert.deepEqual([line?.text, line?.noRecipient], ["to nobody", true]);
  await running.admin.call("POST", "/accounts", { phone: missing });
  assert.equal((await client.socket.onWhatsApp(missing))?.length, 1);
});

test("a number known under another form: the canonical one is answered, and only it has devices", async () => {
  const client = await running.linked(newPhone());
  await running.admin.call("POST", "/accounts", { phone: "5511987654321", canonical: "551187654321" });
  const [found] = (await client.socket.onWhatsApp("5511987654321")) ?? [];
  assert.equal(found?.jid, jidOf("551187654321"));
  assert.equal((await client.socket.getUSyncDevices([jidOf("551187654321")], false, false)).length, 1);
  assert.deepEqual(await client.socket.getUSyncDevices([jidOf("5511987654321")], false, false), []);
});

test("usync answered with 429 rejects, with the code as data", async () => {
  const phone = newPhone();
  const client = await running.linked(phone);
  await running.admin.behave({ phone, queryFaults: [{ xmlns: "usync", code: 429, text: "rate-overlimit", times: 1 }] });
  await assert.rejects(client.socket.onWhatsApp("972549999998"), (error: Error & { data?: unknown }) => {
    assert.deepEqual([error.message, error.data], ["rate-overlimit", 429]);
    return true;
  });
  assert.equal((await client.socket.onWhatsApp("972549999998"))?.length, 1);
});

test("usync that is never answered is undefined after defaultQueryTimeoutMs; a slow one is only slow", async () => {
  const phone = newPhone();
  const client = await running.linked(phone, { defaultQueryTimeoutMs: 300 });
  const silent = { xmlns: "usync", kind: "silent", times: 1 };
  const slow = { xmlns: "usync", kind: "slow", delayMs: 150, times: 1 };
  await running.admin.behave({ phone, queryFaults: [silent, slow] });
  assert.equal(await client.socket.onWhatsApp("972549999997"), undefined);
  assert.equal((await client.socket.onWhatsApp("972549999997"))?.length, 1);
});

test("an inbound text arrives, with the lid, the number and the name of who wrote it", async () => {
  const phone = newPhone();
  const client = await running.linked(phone);
  const text = "תודה רבה 🙏";
  const sent = await running.admin.call("POST", "/inbound", { from: "972549999996", to: phone, text, name: "Noa" });
  const { type, message } = await client.message(text);
  assert.equal(type, "notify");
  assert.equal(message.key.id, sent.id);
  assert.equal(message.key.remoteJid, "10972549999996@lid");
  assert.equal(message.key.remoteJidAlt, jidOf("972549999996"));
  assert.equal(message.pushName, "Noa");
});

test("one linked number writes to another: its device gets the message", async () => {
  const [phone, other] = [newPhone(), newPhone()];
  const client = await running.linked(phone);
  const recipient = await running.linked(other);
  await client.socket.sendMessage(jidOf(other), { text: "between sessions" }, { messageId: "BETWEEN" });
  const { message } = await recipient.message("between sessions");
  assert.deepEqual([message.key.id, message.key.remoteJidAlt], ["BETWEEN", jidOf(phone)]);
});

test("a conversation in both directions stays readable", async () => {
  const phone = newPhone();
  const client = await running.linked(phone);
  const contact = "972549999995";
  for (let turn = 0; turn < 5; turn++) {
    await client.socket.sendMessage(jidOf(contact), { text: `out ${turn}` }, { messageId: `TURN${turn}` });
    await client.ack(`TURN${turn}`);
    await running.admin.call("POST", "/inbound", { from: contact, to: phone, text: `in ${turn}` });
    await client.message(`in ${turn}`);
  }
  const texts = (await running.admin.ledger()).filter((line) => line.phone === phone).map(({ text }) => text);
  assert.deepEqual(texts, ["out 0", "out 1", "out 2", "out 3", "out 4"]);
});

test("what was written to a device that is away comes at its next login, as `append`", async () => {
  const phone = newPhone();
  const client = await running.linked(phone);
  client.end();
  await client.close();
  await running.admin.call("POST", "/inbound", { from: "972549999994", to: phone, text: "while you were away" });
  client.connect();
  const { type } = await client.message("while you were away");
  assert.equal(type, "append");
});
