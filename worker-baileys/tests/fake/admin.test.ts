/** The admin API itself: what it refuses, what it resets, and the doors of the server beside the plain socket. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { Client, trusting } from "./client.js";
import { startFake } from "./support.js";
import type { Running } from "./support.js";

let running: Running;
before(async () => void (running = await startFake()));
after(() => running.stop());

const REFUSED: [string, string, unknown, RegExp][] = [
  ["PATCH", "/behaviour", { ackDelay: 5 }, /400 ackDelay: no such setting/],
  ["PATCH", "/behaviour", { ackDelayMs: -1 }, /400 ackDelayMs: must be a number from 0/],
  ["PATCH", "/behaviour", { nacks: [{ code: "x" }] }, /400 nacks: 0: code: must be a whole number/],
  ["PATCH", "/behaviour", { phone: "+1", ackDelayMs: 1 }, /400 must be a phone number/],
  ["POST", "/accounts", { phone: "me" }, /400 phone: must be a phone number/],
  ["POST", "/accounts", {}, /400 phone: missing/],
  ["POST", "/inbound", { from: "972500000001", to: "972500000002", text: "x" }, /404 no device is linked/],
  ["POST", "/devices/nobody/disconnect", { kind: "cut" }, /404 no such device/],
  ["GET", "/ledger?after=-1", undefined, /400 after: must be a whole number/],
  ["POST", "/scan", {}, /400 qr: missing/],
  ["POST", "/devices/nobody/disconnect", {}, /404/],
  ["GET", "/nothing", undefined, /404 no such endpoint/],
];

for (const [method, path, body, error] of REFUSED) {
  test(`${method} ${path} ${JSON.stringify(body) ?? ""} is refused, and says what is wrong`, async () => {
    await assert.rejects(running.admin.call(method, path, body), error);
  });
}

test("a refused change of behaviour changes nothing", async () => {
  await assert.rejects(running.admin.behave({ ackDelayMs: 7, readRatio: 2 }));
  const { ackDelayMs } = await running.admin.call<{ ackDelayMs: number }>("GET", "/behaviour");
  assert.equal(ackDelayMs, 0);
});

test("another Host than loopback is refused: a web page must not reach it by a name of its own", async () => {
  const status = await new Promise((resolve, reject) => {
    const url = new URL("/health", running.fake.adminUrl);
    request(url, { headers: { host: "evil.example" } }, (response) => resolve(response.statusCode))
      .on("error", reject)
      .end();
  });
  assert.equal(status, 400);
});

test("the ledger is read on from where one was", async () => {
  const client = await running.linked("972600000001");
  for (const id of ["PAGE1", "PAGE2"]) {
    await client.socket.sendMessage("972600000099@s.whatsapp.net", { text: id }, { messageId: id });
    await client.ack(id);
  }
  interface Page {
    lines: { whatsappId: string }[];
    next: number;
  }
  const first = await running.admin.call<Page>("GET", "/ledger?after=1");
  assert.deepEqual([first.lines.map(({ whatsappId }) => whatsappId), first.next], [["PAGE2"], 2]);
  assert.deepEqual(await running.admin.call<Page>("GET", "/ledger?after=2"), { lines: [], next: 2 });
});

test("reset: settings, ledger and connections are gone; links stay unless told", async () => {
  const client = await running.linked("972600000002");
  await running.admin.behave({ ackDelayMs: 9 });
  await running.admin.call("POST", "/reset", {});
  assert.equal((await client.close()).code, 428);
  assert.deepEqual(await running.admin.ledger(), []);
  assert.equal((await running.admin.call<{ ackDelayMs: number }>("GET", "/behaviour")).ackDelayMs, 0);
  await running.admin.behave({ preKeyCount: 100 });
  client.connect();
  await client.open();
  await running.admin.call("POST", "/reset", { links: true });
  await client.close();
  client.connect();
  assert.equal((await client.close()).code, 401);
  await running.admin.behave({ preKeyCount: 100 });
});

test("the number and the session in the URL: the scan needs no phone, the ledger has the session", async () => {
  const client = new Client(`${running.fake.url}?phone=972600000003&session=wa-3`);
  client.connect();
  await running.admin.call("POST", "/scan", { qr: await client.qr() });
  await client.close();
  client.connect();
  await client.open();
  assert.equal(client.phone, "972600000003");
  await client.socket.sendMessage("972600000099@s.whatsapp.net", { text: "named" }, { messageId: "NAMED" });
  await client.ack("NAMED");
  const line = (await running.admin.ledger()).find(({ whatsappId }) => whatsappId === "NAMED");
  assert.equal(line?.sessionId, "wa-3");
  client.end();
});

test("wss with the CA works like ws", async () => {
  const agent = trusting(readFileSync(running.fake.caFile, "utf8"));
  const client = new Client(running.fake.secureUrl, { agent });
  await running.admin.link(client, "972600000004");
  client.end();
});

test("a process with NODE_EXTRA_CA_CERTS trusts the media host by address and by name", async () => {
  const host = new URL(running.fake.secureUrl).host;
  const script = `fetch('https://${host}/o/none').then((answer) => console.log(answer.status))`;
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: running.fake.caFile };
  const { stdout } = await promisify(execFile)(process.execPath, ["-e", script], { env });
  assert.equal(stdout.trim(), "404");
  const byName = script.replace(host, `localhost:${new URL(running.fake.secureUrl).port}`);
  const named = await promisify(execFile)(process.execPath, ["-e", byName], { env });
  assert.equal(named.stdout.trim(), "404");
  await assert.rejects(promisify(execFile)(process.execPath, ["-e", script], { env: { PATH: "" } }));
});
