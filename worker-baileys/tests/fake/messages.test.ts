/** Messages under trouble: repeats, nacks, lost and late acks, cuts around the moment of acceptance, contacts that cannot read. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { waitFor } from "./client.js";
import { startFake } from "./support.js";
import type { Running } from "./support.js";

let running: Running;
before(async () => void (running = await startFake()));
after(() => running.stop());

let lastPhone = 972530000000;
const newPhone = (): string => String(++lastPhone);
const jidOf = (phone: string): string => `${phone}@s.whatsapp.net`;

async function linesOf(id: string) {
  return (await running.admin.ledger()).filter(({ whatsappId }) => whatsappId === id);
}

test("the same message id twice: two lines, the second marked as a repeat", async () => {
  const client = await running.linked(newPhone());
  for (const text of ["once", "once"]) {
    client.acks.length = 0;
    await client.socket.sendMessage(jidOf("972530000999"), { text }, { messageId: "TWICE" });
    await client.ack("TWICE");
  }
  const lines = await linesOf("TWICE");
  assert.deepEqual(
    lines.map(({ text, repeat }) => [text, repeat]),
    [
      ["once", undefined],
      ["once", true],
    ],
  );
});

for (const code of [463, 479, 421, 429, 400, 403, 404, 500]) {
  test(`nack ${code}: sendMessage resolves all the same, then the update says ERROR with the code`, async () => {
    const phone = newPhone();
    const client = await running.linked(phone);
    await running.admin.behave({ phone, nacks: [{ code, to: "972530000998" }] });
    const id = `NACK${code}`;
    await client.socket.sendMessage(jidOf("972530000998"), { text: "refused" }, { messageId: id });
    assert.equal((await client.ack(id)).attrs.error, String(code));
    const { update } = await client.status(id, 0);
    const restricted = code === 463 ? ["Your account has been restricted"] : [];
    assert.deepEqual(update.messageStubParameters, [String(code), ...restricted]);
    assert.deepEqual(await linesOf(id), []);
    await client.socket.sendMessage(jidOf("972530000997"), { text: "to another" }, { messageId: `${id}B` });
    assert.equal((await client.ack(`${id}B`)).attrs.error, undefined);
  });
}

test("every third message is refused, until the rule is used up", async () => {
  const phone = newPhone();
  const client = await running.linked(phone);
  await running.admin.behave({ phone, nacks: [{ code: 500, every: 3, times: 1 }] });
  const codes: (string | undefined)[] = [];
  for (let index = 0; index < 6; index++) {
    await client.socket.sendMessage(jidOf("972530000996"), { text: String(index) }, { messageId: `THIRD${index}` });
    codes.push((await client.ack(`THIRD${index}`)).attrs.error);
  }
  assert.deepEqual(codes, [undefined, undefined, "500", undefined, undefined, undefined]);
});

test("a lost ack: the message is in the ledger, its receipts come, the ack does not", async () => {
  const phone = newPhone();
  const client = await running.linked(phone);
  await running.admin.behave({ phone, loseAcks: 1 });
  await client.socket.sendMessage(jidOf("972530000995"), { text: "lost" }, { messageId: "LOSTACK" });
  await client.status("LOSTACK", 4);
  assert.deepEqual(client.acks, []);
  assert.equal((await linesOf("LOSTACK")).length, 1);
  await client.socket.sendMessage(jidOf("972530000995"), { text: "next" }, { messageId: "NEXTACK" });
  await client.ack("NEXTACK");
});

test("a late ack comes after the line is in the ledger", async () => {
  const phone = newPhone();
  const client = await running.linked(phone);
  await running.admin.behave({ phone, ackDelayMs: 400 });
  const answer = client.socket.waitForMessage("LATE", 5_000);
  await client.socket.sendMessage(jidOf("972530000994"), { text: "late" }, { messageId: "LATE" });
  await waitFor("the line", async () => (await linesOf("LATE")).length === 1);
  assert.deepEqual(client.acks, []);
  assert.equal(((await answer) as { tag: string }).tag, "ack");
});

test("cut before it was accepted: nothing in the ledger; cut after: a line, and receipts at the next login", async () => {
  const phone = newPhone();
  const client = await running.linked(phone);
  const to = jidOf("972530000993");
  await running.admin.behave({ phone, cutBeforeAccept: 1 });
  await client.socket.sendMessage(to, { text: "before" }, { messageId: "BEFORE" }).catch(() => undefined);
  assert.equal((await client.close()).code, 428);
  assert.deepEqual(await linesOf("BEFORE"), []);

  client.connect();
  await client.open();
  await running.admin.behave({ phone, cutAfterAccept: 1 });
  await client.socket.sendMessage(to, { text: "after" }, { messageId: "AFTER" }).catch(() => undefined);
  assert.equal((await client.close()).code, 428);
  assert.equal((await linesOf("AFTER")).length, 1);
  await waitFor("both receipts to wait", async () => {
    const { devices } = await running.admin.call<{ devices: { phone: string; waiting: number }[] }>("GET", "/devices");
    return devices.find((device) => device.phone === phone)?.waiting === 2;
  });

  client.connect();
  // The library holds events back while it catches up, and tells of one message only the last that it learnt.
  await client.status("AFTER", 4);
  await waitFor("them to be confirmed", async () => {
    const { devices } = await running.admin.call<{ devices: { phone: string; waiting: number }[] }>("GET", "/devices");
    return devices.find((device) => device.phone === phone)?.waiting === 0;
  });
});

test("receipts by ratio: nothing delivered with 0, delivered and not read with 1 and 0", async () => {
  const phone = newPhone();
  const client = await running.linked(phone);
  await running.admin.behave({ phone, deliveredRatio: 0, deliveredDelayMs: 0, readDelayMs: 0, receiptsFrom: "pn" });
  await client.socket.sendMessage(jidOf("972530000992"), { text: "a" }, { messageId: "NORECEIPT" });
  await client.ack("NORECEIPT");
  await running.admin.behave({ phone, deliveredRatio: 1, readRatio: 0 });
  await client.socket.sendMessage(jidOf("972530000992"), { text: "b" }, { messageId: "DELIVERED" });
  const { key } = await client.status("DELIVERED", 3);
  assert.equal(key.remoteJid, jidOf("972530000992"));
  await client.socket.sendMessage(jidOf("972530000992"), { text: "c" }, { messageId: "LAST" });
  await client.status("LAST", 3);
  assert.deepEqual(
    client.statuses.map(({ key: { id }, update }) => [id, update.status]),
    [
      ["DELIVERED", 3],
      ["LAST", 3],
    ],
  );
});

for (const receiptsFrom of ["pn", "lid"]) {
  test(`a contact that lost its sessions asks again by its ${receiptsFrom}: the same id comes once more`, async () => {
    const phone = newPhone();
    // The library keeps what it sent under the jid it was sent to, so a retry receipt from the lid needs `getMessage`.
    const getMessage = async () => ({ conversation: "unreadable" });
    const client = await running.linked(phone, receiptsFrom === "lid" ? { getMessage } : {});
    const contact = newPhone();
    const [first, again] = [`FIRST-${receiptsFrom}`, `RETRY-${receiptsFrom}`];
    await running.admin.behave({ phone, receiptsFrom });
    await client.socket.sendMessage(jidOf(contact), { text: "hello" }, { messageId: first });
    await client.ack(first);
    // Once the contact has answered, the client stops sending what would open a session anew.
    await running.admin.call("POST", "/inbound", { from: contact, to: phone, text: "hi" });
    await client.message("hi");
    await running.admin.call("POST", `/accounts/${contact}/forget-sessions`);
    await client.socket.sendMessage(jidOf(contact), { text: "unreadable" }, { messageId: again });
    const lines = await waitFor("the second try", async () => {
      const found = await linesOf(again);
      return found.length === 2 && found;
    });
    assert.deepEqual(
      lines.map(({ text, undecryptable, repeat }) => [text, undecryptable, repeat]),
      [
        ["unreadable", true, undefined],
        ["unreadable", undefined, true],
      ],
    );
    await client.status(again, 4);
  });
}

test("a client that goes back to an older session uses a message key twice, and the line says so", async () => {
  const phone = newPhone();
  const client = await running.linked(phone);
  const contact = "972530000990";
  await client.socket.sendMessage(jidOf(contact), { text: "zero" }, { messageId: "ZERO" });
  await client.ack("ZERO");
  const backup = client.snapshot();
  await client.socket.sendMessage(jidOf(contact), { text: "one" }, { messageId: "ONE" });
  await client.ack("ONE");
  // Not with a new socket: after a device query the library opens a new session anyway.
  client.restore(backup);
  await client.socket.sendMessage(jidOf(contact), { text: "two" }, { messageId: "TWO" });
  await client.ack("TWO");
  assert.deepEqual(
    (await linesOf("ONE")).map(({ counterReused }) => counterReused),
    [undefined],
  );
  assert.deepEqual(
    (await linesOf("TWO")).map(({ text, counterReused }) => [text, counterReused]),
    [["two", true]],
  );
});

test("typing is seen, and no stanza made the server stumble", async () => {
  const client = await running.linked(newPhone());
  await client.socket.sendPresenceUpdate("composing", jidOf("972530000989"));
  await client.socket.sendPresenceUpdate("paused", jidOf("972530000989"));
  const states = await waitFor("both", async () => {
    const events = (await running.admin.events("chatstate")).filter(({ phone }) => phone === client.phone);
    return events.length === 2 && events.map(({ state }) => state);
  });
  assert.deepEqual(states, ["composing", "paused"]);
  assert.deepEqual(await running.admin.events("server-error"), []);
  assert.deepEqual(await running.admin.events("copy-differs"), []);
});
