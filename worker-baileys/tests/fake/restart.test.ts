/** Killed and started again on the same files, the fake is still the WhatsApp that its devices and contacts know. */

import "../../fake-whatsapp/src/quiet.js";
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { trustRoot } from "../trust-preload.js";
import { Client } from "./client.js";
import { killFake, spawnFake } from "./process.js";
import { AdminClient } from "./support.js";

const PHONE = "972570000001";
const CONTACT = "972570000099";
const TO = `${CONTACT}@s.whatsapp.net`;

test("kill -9 and a restart with --state keep the link, the sessions, the keys and the ledger", async (context) => {
  const directory = await mkdtemp(join(tmpdir(), "fake-whatsapp-"));
  const files = ["--ledger", join(directory, "ledger.jsonl"), "--state", join(directory, "state.jsonl")];
  const first = await spawnFake(...files);
  context.after(() => rm(directory, { recursive: true }));
  trustRoot(first.rootFile);
  const client = new Client(first.url);
  const admin = new AdminClient(first.adminUrl);
  await admin.link(client, PHONE);
  await client.socket.sendMessage(TO, { text: "before" }, { messageId: "BEFORE" });
  await client.ack("BEFORE");
  // Both directions, so that the client no longer sends what would open a session anew.
  await admin.call("POST", "/inbound", { from: CONTACT, to: PHONE, text: "answer" });
  await client.message("answer");
  const root = await readFile(first.rootFile, "utf8");
  await killFake(first, "SIGKILL");
  assert.equal((await client.close()).code, 428);

  const port = new URL(first.url).port;
  const second = await spawnFake(...files, "--port", port);
  context.after(() => killFake(second, "SIGTERM"));
  assert.equal(await readFile(second.rootFile, "utf8"), root);
  client.connect();
  await client.open();
  await client.socket.sendMessage(TO, { text: "after" }, { messageId: "AFTER" });
  await client.ack("AFTER");
  await client.socket.sendMessage(TO, { text: "before" }, { messageId: "BEFORE" });
  await client.ack("BEFORE");
  const again = new AdminClient(second.adminUrl);
  await again.call("POST", "/inbound", { from: CONTACT, to: PHONE, text: "still here" });
  await client.message("still here");
  const lines = await again.ledger();
  assert.deepEqual(
    lines.map(({ whatsappId, text, repeat, undecryptable }) => [whatsappId, text, repeat, undecryptable]),
    [
      ["BEFORE", "before", undefined, undefined],
      ["AFTER", "after", undefined, undefined],
      ["BEFORE", "before", true, undefined],
    ],
  );
  const file = await readFile(join(directory, "ledger.jsonl"), "utf8");
  assert.deepEqual(
    file
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line)),
    lines,
  );
  client.end();
});

test("a bad argument names itself and ends with 2", async () => {
  await assert.rejects(spawnFake("--ledger", "/dev/null", "--port", "x"), /the fake ended with 2/);
});
