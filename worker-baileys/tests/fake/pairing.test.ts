/** Linking: by code, with a wrong code, what a QR must fulfil, how many devices, and the end of a link. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { waitFor } from "./client.js";
import { startFake } from "./support.js";
import type { Running } from "./support.js";

let running: Running;
before(async () => void (running = await startFake()));
after(() => running.stop());

test("pairing by code: the code typed into the phone links the device", async () => {
  const client = running.client();
  const socket = client.connect();
  await client.qr();
  const code = await socket.requestPairingCode("972510000001");
  await waitForCode("972510000001");
  const { jid } = await running.admin.call("POST", "/enter-code", { phone: "972510000001", code });
  assert.equal((await client.close()).code, 515);
  assert.equal(client.jid, jid);
  client.connect();
  await client.open();
});

test("a code that is agreed on before links without anybody typing it", async () => {
  await running.admin.behave({ phone: "972510000002", autoLinkCode: "PACELINE" });
  const client = running.client();
  const socket = client.connect();
  await client.qr();
  await socket.requestPairingCode("972510000002", "PACELINE");
  assert.equal((await client.close()).code, 515);
  client.connect();
  await client.open();
  assert.equal(client.phone, "972510000002");
});

test("a wrong code links nothing", async () => {
  const client = running.client();
  const socket = client.connect();
  await client.qr();
  await socket.requestPairingCode("972510000003", "AAAAAAAA");
  await waitForCode("972510000003");
  const entered = running.admin.call("POST", "/enter-code", { phone: "972510000003", code: "BBBBBBBB" });
  await assert.rejects(entered, /^Error: (409|500|400) /);
  assert.equal(client.creds.account, undefined);
});

test("an abandoned code leaves a number in the credentials: the next connection logs in and gets 401", async () => {
  const client = running.client();
  const socket = client.connect();
  await client.qr();
  await socket.requestPairingCode("972510000004");
  await waitForCode("972510000004");
  client.end();
  await client.close();
  client.connect();
  assert.equal((await client.close()).code, 401);
});

test("a wrong HMAC in pair-success is 500, Invalid account signature", async () => {
  await running.admin.behave({ phone: "972510000005", wrongPairingHmac: true });
  const client = running.client();
  client.connect();
  const scanned = running.admin.call("POST", "/scan", { qr: await client.qr(), phone: "972510000005" });
  await assert.rejects(scanned, /409 the client is gone/);
  const { code, message } = await client.close();
  assert.deepEqual([code, message], [500, "Invalid account signature"]);
});

test("an account behind a passkey: the client is told so by a notification, and is not linked", async () => {
  await running.admin.behave({ phone: "972510000009", passkeyGate: true });
  const client = running.client();
  const socket = client.connect();
  const told = new Promise((resolve) => socket.ws.on("CB:notification,type:passkey_prologue_request", resolve));
  const scanned = running.admin.call("POST", "/scan", { qr: await client.qr(), phone: "972510000009" });
  await assert.rejects(scanned, /409 this account asks for a passkey/);
  await told;
  assert.equal(client.creds.me, undefined);
});

test("QR codes that are used up end the connection with 408", async () => {
  await running.admin.behave({ qrRefs: 2 });
  const client = running.client();
  client.connect({ qrTimeout: 30 });
  const { code, message } = await client.close();
  assert.deepEqual([code, message], [408, "QR refs attempts ended"]);
  await running.admin.behave({ qrRefs: null });
});

test("a QR that nobody shows is 404, a fifth device of a phone is 409", async () => {
  const stale = running.admin.call("POST", "/scan", { qr: "2@gone,a,b,c,1", phone: "972510000006" });
  await assert.rejects(stale, /404/);
  for (let count = 0; count < 4; count++) await running.linked("972510000006");
  const fifth = running.client();
  fifth.connect();
  const refused = running.admin.call("POST", "/scan", { qr: await fifth.qr(), phone: "972510000006" });
  await assert.rejects(refused, /409 too many linked devices/);
});

test("logout takes the link away: 401 now, and 401 at the next login", async () => {
  const client = await running.linked("972510000007");
  await client.socket.logout();
  const { code, message } = await client.close();
  assert.deepEqual([code, message], [401, "Intentional Logout"]);
  await waitFor("the link to be gone", async () => {
    const { devices } = await running.admin.call<{ devices: { phone: string }[] }>("GET", "/devices");
    return devices.every(({ phone }) => phone !== "972510000007");
  });
  client.connect();
  assert.equal((await client.close()).code, 401);
});

test("a new device uploads its pre-keys, and a contact can open a session with them", async () => {
  await running.admin.behave({ phone: "972510000008", preKeyCount: null });
  const global = await running.admin.call<{ preKeyCount: number | null }>("GET", "/behaviour?phone=972510000008");
  assert.equal(global.preKeyCount, null);
  const client = await running.linked("972510000008");
  const { devices } = await running.admin.call<{ devices: { phone: string; preKeys: number }[] }>("GET", "/devices");
  const keys = devices.find(({ phone }) => phone === "972510000008")?.preKeys ?? 0;
  assert.ok(keys >= 810 && keys <= 812, `${keys} pre-keys`);
  await running.admin.call("POST", "/inbound", { from: "972510000099", to: "972510000008", text: "with a pre-key" });
  await client.message("with a pre-key");
});

async function waitForCode(phone: string): Promise<void> {
  await waitFor("the code to be known", async () => {
    const events = await running.admin.events("code-offered");
    return events.some((event) => event.phone === phone);
  });
}
