/** The certificate chain is right: with a library that really checks, the test root is what makes the difference. */

import "../../fake-whatsapp/src/quiet.js";
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Curve, proto, WA_CERT_DETAILS } from "baileys";
import * as curve from "libsignal/src/curve.js";
import { createNoiseIdentity } from "../../fake-whatsapp/src/certificates.js";
import { trustRoot } from "../trust-preload.js";
import { startFake } from "./support.js";
import type { Running } from "./support.js";

const REAL_ROOT = WA_CERT_DETAILS.PUBLIC_KEY;
const careless = Curve.verify;

let running: Running;
before(async () => {
  running = await startFake();
  // What the library means to do: the answer of libsignal counts.
  Curve.verify = (key, message, signature) => verified(Buffer.from(key), message, signature);
});
after(async () => {
  Curve.verify = careless;
  await running.stop();
});

test("a strict client with the real root refuses the fake", async () => {
  WA_CERT_DETAILS.PUBLIC_KEY = REAL_ROOT;
  const client = running.client();
  client.connect();
  const { code, message } = await client.close();
  assert.deepEqual([code, message], [400, "noise intermediate certificate signature invalid"]);
});

test("a strict client with the test root is shown a QR, and everything goes on from there", async () => {
  trustRoot(running.fake.rootFile);
  const client = await running.linked("972580000001");
  await client.socket.sendMessage("972580000099@s.whatsapp.net", { text: "trusted" }, { messageId: "TRUSTED" });
  await client.ack("TRUSTED");
});

test("leaf under intermediate under root, the leaf for the static key", () => {
  const { certificate, rootPublic, staticKey } = createNoiseIdentity();
  const { leaf, intermediate } = proto.CertChain.decode(certificate);
  const { Details } = proto.CertChain.NoiseCertificate;
  const leafDetails = Details.decode(leaf!.details!);
  const intermediateDetails = Details.decode(intermediate!.details!);
  assert.equal(verified(rootPublic, intermediate!.details!, intermediate!.signature!), true);
  assert.equal(verified(Buffer.from(intermediateDetails.key!), leaf!.details!, leaf!.signature!), true);
  assert.equal(verified(REAL_ROOT, intermediate!.details!, intermediate!.signature!), false);
  assert.deepEqual(Buffer.from(leafDetails.key!), Buffer.from(staticKey.public));
  assert.deepEqual([intermediateDetails.issuerSerial, leafDetails.issuerSerial], [0, intermediateDetails.serial]);
});

function verified(key: Buffer, message: Uint8Array, signature: Uint8Array): boolean {
  const typed = key.length === 33 ? key : Buffer.concat([Buffer.from([5]), key]);
  return (curve.verifySignature(typed, message, signature) as unknown) === true;
}
