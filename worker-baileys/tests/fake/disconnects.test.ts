/** The reference's disconnect table, row by row: what the server does, and the code that the library makes of it. */

import assert from "node:assert/strict";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Client } from "./client.js";
import { startFake } from "./support.js";
import type { Running } from "./support.js";

let running: Running;
before(async () => void (running = await startFake()));
after(() => running.stop());

let lastPhone = 972520000000;
const newPhone = (): string => String(++lastPhone);

/** Long enough that anything the library had to say would have been said. */
const QUIET_MS = 1_500;

interface Row {
  order: Record<string, unknown>;
  code: number;
  message: string;
}

const LIVE: Row[] = [
  { order: { kind: "stream-error", code: 515 }, code: 515, message: "Stream Errored (restart required)" },
  { order: { kind: "device-removed" }, code: 401, message: "Stream Errored (conflict)" },
  { order: { kind: "replaced" }, code: 440, message: "Stream Errored (conflict)" },
  { order: { kind: "stream-error", code: 503 }, code: 503, message: "Stream Errored (unknown)" },
  { order: { kind: "stream-error", code: 500 }, code: 500, message: "Stream Errored (unknown)" },
  { order: { kind: "stream-error", code: 516 }, code: 516, message: "Stream Errored (unknown)" },
  { order: { kind: "stream-error", child: "ack" }, code: 500, message: "Stream Errored (ack)" },
  {
    order: { kind: "stream-error", child: "xml-not-well-formed" },
    code: 500,
    message: "Stream Errored (xml-not-well-formed)",
  },
  { order: { kind: "xmlstreamend" }, code: 428, message: "Connection Terminated by Server" },
  { order: { kind: "cut" }, code: 428, message: "Connection Terminated" },
  { order: { kind: "downgrade" }, code: 411, message: "Multi-device beta not joined" },
  { order: { kind: "failure", code: 403 }, code: 403, message: "Connection Failure" },
];

for (const { order, code, message } of LIVE) {
  test(`${JSON.stringify(order)} on a live connection is ${code}`, async () => {
    const client = await running.linked(newPhone());
    await running.admin.disconnect(client.jid, order);
    const closed = await client.close();
    assert.deepEqual([closed.code, closed.message], [code, message]);
  });
}

test("a login refused with a reason has that reason as its code, and the attributes as data", async () => {
  const phone = newPhone();
  const client = await running.linked(phone);
  for (const reason of [401, 402, 403, 405, 406, 409, 415, 418, 419, 429, 500, 501, 503]) {
    await running.admin.behave({ phone, loginFailure: { reason, attrs: { expire: "3600" } } });
    client.end();
    client.connect();
    const { code, message, data } = await client.close();
    assert.deepEqual([code, message], [reason, "Connection Failure"]);
    assert.equal((data as Record<string, string>).expire, "3600");
  }
  await running.admin.behave({ phone, loginFailure: null });
  client.connect();
  await client.open();
});

test("a second login of the same device ends the first with 440", async () => {
  const client = await running.linked(newPhone());
  const twin = Object.assign(Object.create(Client.prototype) as Client, client, { updates: [], acks: [] });
  twin.connect();
  await twin.open();
  assert.equal((await client.close()).code, 440);
  twin.end();
});

test("nobody listens: 408", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((done) => server.once("listening", done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  const client = new Client(`ws://127.0.0.1:${port}/`);
  client.connect();
  const { code, message } = await client.close();
  assert.equal(code, 408);
  assert.match(message, /WebSocket Error .*ECONNREFUSED/);
});

test("a name that does not resolve: 408", async () => {
  const client = new Client("ws://nobody.invalid/");
  client.connect();
  const { code, message } = await client.close();
  assert.equal(code, 408);
  assert.match(message, /WebSocket Error .*(ENOTFOUND|EAI_AGAIN)/);
});

test("HTTP 503 in place of the upgrade, on a connection that stays open: 408 after connectTimeoutMs", async () => {
  const phone = newPhone();
  await running.admin.behave({ phone, refuseUpgrade: { status: 503, keepOpen: true } });
  const client = new Client(`${running.fake.url}?phone=${phone}`, { connectTimeoutMs: 200 });
  client.connect();
  assert.equal((await client.close()).code, 408);
});

test("an upgrade that hangs is 408 after connectTimeoutMs", async () => {
  const phone = newPhone();
  await running.admin.behave({ phone, hangUpgrade: true });
  const client = new Client(`${running.fake.url}?phone=${phone}`, { connectTimeoutMs: 200 });
  client.connect();
  const { code, message } = await client.close();
  assert.equal(code, 408);
  assert.match(message, /WebSocket Error/);
});

test("no server hello is 408 after connectTimeoutMs", async () => {
  const phone = newPhone();
  await running.admin.behave({ phone, noServerHello: true });
  const client = new Client(`${running.fake.url}?phone=${phone}`, { connectTimeoutMs: 200 });
  client.connect();
  assert.equal((await client.close()).code, 408);
});

test("pings that nobody answers are 408, Connection was lost, after the interval and a fixed 5 s", async () => {
  const phone = newPhone();
  const client = await running.linked(phone, { keepAliveIntervalMs: 300 });
  await running.admin.behave({ phone, queryFaults: [{ xmlns: "w:p", kind: "silent" }] });
  const { code, message } = await client.close();
  assert.deepEqual([code, message], [408, "Connection was lost"]);
});

test("HTTP 503 in place of the upgrade: no event at all, the socket stays connecting", async () => {
  const phone = newPhone();
  await running.admin.behave({ phone, refuseUpgrade: { status: 503 } });
  const client = new Client(`${running.fake.url}?phone=${phone}`, { connectTimeoutMs: 300 });
  const socket = client.connect();
  let refused: number | undefined;
  // Not before the library has subscribed; its own subscription is what keeps `ws` from raising an error.
  socket.ws.on("unexpected-response", (_request: unknown, response: { statusCode: number }) => {
    refused = response.statusCode;
  });
  await delay(QUIET_MS);
  assert.equal(refused, 503);
  assert.deepEqual(ends(client), []);
  assert.equal(socket.ws.isConnecting, true);
});

test("`success` never sent: no event at all while pings are answered", async () => {
  const phone = newPhone();
  const client = await running.linked(phone);
  client.end();
  await running.admin.behave({ phone, neverSuccess: true });
  client.connect({ keepAliveIntervalMs: 200, connectTimeoutMs: 300 });
  await delay(QUIET_MS);
  assert.deepEqual(ends(client), []);
  client.end();
});

test("silence: the server hears nothing and says nothing, and the connection stays", async () => {
  const client = await running.linked(newPhone());
  const jid = "972500000099@s.whatsapp.net";
  await client.socket.sendMessage(jid, { text: "heard" }, { messageId: "HEARD" });
  await client.ack("HEARD");
  await running.admin.disconnect(client.jid, { kind: "silence" });
  const answer = client.socket.waitForMessage("UNHEARD", 300);
  await client.socket.sendMessage(jid, { text: "unheard" }, { messageId: "UNHEARD" });
  assert.equal(await answer, undefined);
  assert.equal(ends(client).length, 1);
  const ids = (await running.admin.ledger()).map(({ whatsappId }) => whatsappId);
  assert.deepEqual([ids.includes("HEARD"), ids.includes("UNHEARD")], [true, false]);
});

/** Updates that say how the connection came out. */
function ends(client: Client): unknown[] {
  return client.updates.filter(({ connection, qr }) => connection === "open" || connection === "close" || qr);
}
