/**
 * Just enough X.509 to give the media host a certificate: a CA that signs one leaf, both on P-256.
 *
 * Node can read certificates but not make them, and asking for an `openssl` on the machine would be one more thing to
 * install. So the few DER structures are written out here. `keys.ts` keeps the result on disk.
 */

import { createHash, generateKeyPairSync, randomBytes, sign } from "node:crypto";
import type { KeyObject } from "node:crypto";
import { isIP } from "node:net";

const OID = {
  commonName: "2.5.4.3",
  ecdsaWithSha256: "1.2.840.10045.4.3.2",
  basicConstraints: "2.5.29.19",
  keyUsage: "2.5.29.15",
  subjectAltName: "2.5.29.17",
  subjectKeyId: "2.5.29.14",
  authorityKeyId: "2.5.29.35",
  extendedKeyUsage: "2.5.29.37",
  serverAuth: "1.3.6.1.5.5.7.3.1",
};
const DAY_MS = 24 * 60 * 60 * 1000;
/** TLS clients refuse leaves that live much longer than two years. */
const VALID_DAYS = 730;

export interface TlsFiles {
  caPem: string;
  certPem: string;
  keyPem: string;
}

/** A certificate for these DNS names and addresses, under a CA whose private key is forgotten at once. */
export function createTls(names: string[]): TlsFiles {
  const ca = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const leaf = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const caName = "Paceline fake WhatsApp, test CA";
  const caKeyId = keyId(ca.publicKey);
  const caPem = certificate(ca.publicKey, caName, caName, ca.privateKey, [
    extension(OID.basicConstraints, true, sequence(boolean(true))),
    extension(OID.keyUsage, true, bits(0x06)),
    extension(OID.subjectKeyId, false, octets(caKeyId)),
  ]);
  const certPem = certificate(leaf.publicKey, "fake-whatsapp", caName, ca.privateKey, [
    extension(OID.basicConstraints, true, sequence()),
    extension(OID.extendedKeyUsage, false, sequence(oid(OID.serverAuth))),
    extension(OID.subjectAltName, false, sequence(...names.map(alternativeName))),
    extension(OID.subjectKeyId, false, octets(keyId(leaf.publicKey))),
    extension(OID.authorityKeyId, false, sequence(tagged(0x80, caKeyId))),
  ]);
  return { caPem, certPem, keyPem: leaf.privateKey.export({ type: "pkcs8", format: "pem" }).toString() };
}

function certificate(key: KeyObject, subject: string, issuer: string, signer: KeyObject, extensions: Buffer[]): string {
  const algorithm = sequence(oid(OID.ecdsaWithSha256));
  const now = Date.now();
  const body = sequence(
    tagged(0xa0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    algorithm,
    commonName(issuer),
    sequence(time(now - DAY_MS), time(now + VALID_DAYS * DAY_MS)),
    commonName(subject),
    key.export({ type: "spki", format: "der" }),
    tagged(0xa3, sequence(...extensions)),
  );
  const signature = sign("sha256", body, signer);
  const der = sequence(body, algorithm, tagged(0x03, Buffer.concat([Buffer.from([0]), signature])));
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}

function tagged(tag: number, content: Buffer): Buffer {
  const length = content.length;
  const short = length < 0x80;
  const digits = short ? Buffer.from([length]) : Buffer.from(trimmed(length));
  const head = short ? digits : Buffer.concat([Buffer.from([0x80 | digits.length]), digits]);
  return Buffer.concat([Buffer.from([tag]), head, content]);
}

function trimmed(value: number): number[] {
  return value < 0x100 ? [value] : [...trimmed(Math.floor(value / 0x100)), value % 0x100];
}

const sequence = (...parts: Buffer[]): Buffer => tagged(0x30, Buffer.concat(parts));
const integer = (value: Buffer): Buffer => tagged(0x02, value);
const octets = (value: Buffer): Buffer => tagged(0x04, value);
const boolean = (value: boolean): Buffer => tagged(0x01, Buffer.from([value ? 0xff : 0]));
const bits = (value: number): Buffer => tagged(0x03, Buffer.from([1, value]));

function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  const groups = rest.flatMap((part) => {
    const digits = [part & 0x7f];
    for (let left = part >> 7; left > 0; left >>= 7) digits.unshift((left & 0x7f) | 0x80);
    return digits;
  });
  return tagged(0x06, Buffer.from([first * 40 + second, ...groups]));
}

function time(atMs: number): Buffer {
  const digits = new Date(atMs).toISOString().replace(/[-:T]/g, "").slice(0, 14);
  return tagged(0x18, Buffer.from(`${digits}Z`));
}

function commonName(name: string): Buffer {
  const attribute = sequence(oid(OID.commonName), tagged(0x0c, Buffer.from(name)));
  return sequence(tagged(0x31, attribute));
}

function extension(id: string, critical: boolean, value: Buffer): Buffer {
  return sequence(oid(id), ...(critical ? [boolean(true)] : []), octets(value));
}

function alternativeName(name: string): Buffer {
  if (isIP(name) === 4) return tagged(0x87, Buffer.from(name.split(".").map(Number)));
  return tagged(0x82, Buffer.from(name));
}

function keyId(key: KeyObject): Buffer {
  return createHash("sha1")
    .update(key.export({ type: "spki", format: "der" }))
    .digest();
}
