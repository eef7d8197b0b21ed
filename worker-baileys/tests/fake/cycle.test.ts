/** One device's whole life: pairing by QR, the restart, login, sending, ack, receipts, answers. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startFake } from "./support.js";
import type { Running } from "./support.js";

let running: Running;
before(async () => void (running = await startFake()));
after(() => running.stop());

const PHONE = "972500000001";
const CONTACT = "972500000099";

const TEXTS = {
  hebrew: "שלום, ההזמנה שלך מוכנה לאיסוף",
  arabic: "مرحبًا، طلبك جاهز للاستلام",
  emoji: "Ready! 🎉👩🏽‍🚀 🇮🇱",
  "text of the full 4,096 characters": "א".repeat(4096),
};

test("pairing by QR restarts the stream with 515 and then logs in", async () => {
  const client = running.client();
  client.connect();
  const qr = await client.qr();
  const scanned = await running.admin.call("POST", "/scan", { qr, phone: PHONE });
  const { code, message } = await client.close();
  assert.equal(code, 515);
  assert.equal(message, "Stream Errored (restart required)");
  assert.equal(client.jid, scanned.jid);
  client.connect();
  await client.open();
  assert.equal(client.creds.routingInfo?.toString(), "fake-route");
  assert.match(client.creds.me?.lid ?? "", /^10972500000001:1@lid$/);
});

for (const [name, text] of Object.entries(TEXTS)) {
  test(`${name}: in the ledger as it was sent, then acked, delivered and read`, async () => {
    const client = await running.linked(`97250001${String(name.length).padStart(4, "0")}`);
    const id = `3EB0${Buffer.from(name).toString("hex").toUpperCase().slice(0, 18)}`;
    await client.socket.sendMessage(`${CONTACT}@s.whatsapp.net`, { text }, { messageId: id });
    const { attrs } = await client.ack(id);
    assert.equal(attrs.error, undefined);
    const line = (await running.admin.ledger()).find(({ whatsappId }) => whatsappId === id);
    assert.equal(line?.text, text);
    assert.equal(line?.to, CONTACT);
    assert.equal(line?.phone, client.phone);
    assert.equal(line?.repeat, undefined);
    await client.status(id, 3);
    await client.status(id, 4);
  });
}
