/**
 * The server's Noise identity: a static key under a correct chain leaf → intermediate → test root.
 *
 * rc14 of the library does not look at the signatures (its `Curve.verify` drops the answer). Nothing here builds on
 * that: the chain is right, and a test with a strict check trusts the root through `tests/trust-preload.ts`.
 */

import { Curve, proto } from "baileys";
import type { KeyPair } from "baileys";

const DAY_SECONDS = 24 * 60 * 60;
const VALID_DAYS = 3650;
/** What the library expects the intermediate to name as its issuer. */
const ROOT_SERIAL = 0;
const INTERMEDIATE_SERIAL = 1;
const LEAF_SERIAL = 2;

export interface NoiseIdentity {
  staticKey: KeyPair;
  /** A serialised CertChain, the payload of the second handshake message. */
  certificate: Buffer;
  rootPublic: Buffer;
}

/** A fresh identity. The private keys of root and intermediate are forgotten once they have signed. */
export function createNoiseIdentity(): NoiseIdentity {
  const root = Curve.generateKeyPair();
  const intermediate = Curve.generateKeyPair();
  const staticKey = Curve.generateKeyPair();
  const chain = {
    intermediate: signed(INTERMEDIATE_SERIAL, ROOT_SERIAL, intermediate.public, root),
    leaf: signed(LEAF_SERIAL, INTERMEDIATE_SERIAL, staticKey.public, intermediate),
  };
  const certificate = Buffer.from(proto.CertChain.encode(chain).finish());
  return { staticKey, certificate, rootPublic: Buffer.from(root.public) };
}

function signed(
  serial: number,
  issuerSerial: number,
  key: Uint8Array,
  issuer: KeyPair,
): proto.CertChain.INoiseCertificate {
  const now = Math.floor(Date.now() / 1000);
  const details = proto.CertChain.NoiseCertificate.Details.encode({
    serial,
    issuerSerial,
    key,
    notBefore: now - DAY_SECONDS,
    notAfter: now + VALID_DAYS * DAY_SECONDS,
  }).finish();
  return { details, signature: Curve.sign(issuer.private, details) };
}
