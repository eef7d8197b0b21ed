/** Two hundred devices on one server: all linked, all logged in, all sending, in a process whose size is printed. */

import "../../fake-whatsapp/src/quiet.js";
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Curve } from "baileys";
import { trustRoot } from "../trust-preload.js";
import { Client, waitFor } from "./client.js";
import { killFake, spawnFake } from "./process.js";
import { AdminClient } from "./support.js";

/** Fewer where all tests of the repository share the machine (`tools/run-tests`). */
const DEVICES = Number(process.env["FAKE_WHATSAPP_DEVICES"] || 200);
/** How many link at the same time; more does not go faster on two cores. */
const AT_ONCE = 20;

test(`${DEVICES} devices are linked, online and sending at the same time`, async (context) => {
  const directory = await mkdtemp(join(tmpdir(), "fake-whatsapp-"));
  const fake = await spawnFake("--ledger", join(directory, "ledger.jsonl"), "--state", join(directory, "state.jsonl"));
  context.after(async () => {
    await killFake(fake, "SIGTERM");
    await rm(directory, { recursive: true });
  });
  trustRoot(fake.rootFile);
  const admin = new AdminClient(fake.adminUrl);
  // 812 keys for each of 200 devices would be this test's own work, not the server's.
  await admin.behave({ preKeyCount: 100 });
  // The library throws the answer away, and asking for it is most of what its side of this test costs.
  Curve.verify = () => true;
  const clients = Array.from({ length: DEVICES }, () => new Client(fake.url, { fireInitQueries: false }));
  const startedMs = performance.now();
  for (let from = 0; from < DEVICES; from += AT_ONCE) {
    const group = clients.slice(from, from + AT_ONCE);
    await Promise.all(group.map((client, index) => admin.link(client, String(972590000000 + from + index))));
  }
  const linkedMs = performance.now();
  for (let from = 0; from < DEVICES; from += AT_ONCE) {
    const group = clients.slice(from, from + AT_ONCE);
    await Promise.all(group.map((client, index) => send(client, from + index)));
  }
  const sentMs = performance.now();
  const stats = await admin.call<{ devices: number; connected: number; rssBytes: number }>("GET", "/stats");
  assert.deepEqual([stats.devices, stats.connected], [DEVICES, DEVICES]);
  const texts = new Set((await admin.ledger()).map(({ text, whatsappId }) => `${whatsappId} ${text}`));
  assert.equal(texts.size, DEVICES);
  assert.deepEqual(await admin.events("server-error"), []);
  context.diagnostic(
    `linked in ${Math.round(linkedMs - startedMs)} ms, sent and read in ${Math.round(sentMs - linkedMs)} ms; ` +
      `the server has ${Math.round(stats.rssBytes / 2 ** 20)} MB (RSS)`,
  );
  for (const client of clients) client.end();
  await waitFor("all to be gone", async () => {
    const { connected } = await admin.call<{ connected: number }>("GET", "/stats");
    return connected === 0;
  });
});

async function send(client: Client, index: number): Promise<void> {
  const messageId = `MANY${index}`;
  const to = `${972591000000 + index}@s.whatsapp.net`;
  await client.socket.sendMessage(to, { text: `from device ${index}` }, { messageId });
  await client.ack(messageId);
  await client.status(messageId, 4);
}
