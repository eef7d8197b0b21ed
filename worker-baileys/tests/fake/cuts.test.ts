/** Connections cut at random moments, of pairing, login and sending: always 428, never a hang, and the server stands. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { seededRandom } from "../../fake-whatsapp/src/timers.js";
import { startFake } from "./support.js";
import type { Running } from "./support.js";

const CUTS = 40;
/** From the upgrade to the last receipt a cycle takes about this long on a quiet machine. */
const CYCLE_MS = 150;

let running: Running;
before(async () => void (running = await startFake()));
after(() => running.stop());

test(`${CUTS} cuts at random moments, and after each the same device sends what it was sending`, async () => {
  const random = seededRandom(20261115);
  const client = await running.linked("972610000001");
  for (let index = 0; index < CUTS; index++) {
    const messageId = `CUT${index}`;
    const content = { text: `number ${index}` };
    const trying = client.socket.sendMessage("972610000099@s.whatsapp.net", content, { messageId });
    trying.catch(() => undefined);
    await delay(random() * CYCLE_MS);
    await running.admin.disconnect(client.jid, { kind: "cut" }).catch(() => undefined);
    assert.equal((await client.close()).code, 428);
    client.connect();
    await client.open();
    await client.socket.sendMessage("972610000099@s.whatsapp.net", content, { messageId });
    await client.ack(messageId);
  }
  const lines = await running.admin.ledger();
  assert.equal(new Set(lines.map(({ whatsappId }) => whatsappId)).size, CUTS);
  for (const { whatsappId, text, undecryptable } of lines) {
    assert.deepEqual([text, undecryptable], [`number ${whatsappId.slice(3)}`, undefined]);
  }
  assert.deepEqual(await running.admin.events("server-error"), []);
});
