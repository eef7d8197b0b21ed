/** Images and documents: what was uploaded, opened with the key that came with the message, is what was sent. */

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import sharp from "sharp";
import { startFake } from "./support.js";
import type { Running } from "./support.js";

let running: Running;
before(async () => void (running = await startFake()));
after(() => running.stop());

const TO = "972560000999@s.whatsapp.net";
const sha256 = (data: Buffer): string => createHash("sha256").update(data).digest("hex");

async function lineOf(id: string) {
  return (await running.admin.ledger()).find(({ whatsappId }) => whatsappId === id);
}

test("an image with a caption: the bytes are equal, the caption is the text", async () => {
  const client = await running.linked("972560000001");
  const image = await sharp({ create: { width: 64, height: 48, channels: 3, background: "teal" } })
    .jpeg()
    .toBuffer();
  await client.socket.sendMessage(TO, { image, caption: "תמונה 📷" }, { messageId: "IMAGE" });
  await client.ack("IMAGE");
  const line = await lineOf("IMAGE");
  assert.deepEqual([line?.mode, line?.text, line?.mediaSha256], ["image", "תמונה 📷", sha256(image)]);
  await client.status("IMAGE", 4);
});

test("a document of a megabyte: the bytes are equal", async () => {
  const client = await running.linked("972560000002");
  const document = randomBytes(1024 * 1024);
  const content = { document, mimetype: "application/pdf", fileName: "הצעה.pdf", caption: "our offer" };
  await client.socket.sendMessage(TO, content, { messageId: "DOCUMENT" });
  await client.ack("DOCUMENT");
  const line = await lineOf("DOCUMENT");
  assert.deepEqual([line?.mode, line?.text, line?.mediaSha256], ["document", "our offer", sha256(document)]);
});

test("an upload that fails rejects before anything is sent, and the next one goes through", async () => {
  const client = await running.linked("972560000003");
  await running.admin.behave({ mediaFault: { status: 500, times: 1 } });
  const content = { document: Buffer.from("small"), mimetype: "text/plain", fileName: "a.txt" };
  await assert.rejects(
    client.socket.sendMessage(TO, content, { messageId: "FAILS" }),
    /Media upload failed on all hosts/,
  );
  assert.equal(await lineOf("FAILS"), undefined);
  await client.socket.sendMessage(TO, content, { messageId: "WORKS" });
  await client.ack("WORKS");
  assert.equal((await lineOf("WORKS"))?.mediaSha256, sha256(Buffer.from("small")));
});

test("without the CA the upload is refused by TLS", async () => {
  const client = await running.linked("972560000004", { fetchAgent: undefined });
  const content = { document: Buffer.from("small"), mimetype: "text/plain", fileName: "a.txt" };
  await assert.rejects(client.socket.sendMessage(TO, content), /Media upload failed on all hosts/);
});
