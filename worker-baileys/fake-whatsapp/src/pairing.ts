/**
 * Linking a new device, from the server's and from the phone's side: by QR text here, by code in `pairing-code.ts`.
 *
 * Both end in `link`: the phone signs the device's identity, the device signs back, and the server restarts the stream
 * (515). The QR text carries the secret that proves the phone, so nobody can link a device without having seen it.
 */

import { createHmac, randomBytes } from "node:crypto";
import { proto } from "baileys";
import type { BinaryNode } from "baileys";
import * as curve from "libsignal/src/curve.js";
import type { Connection } from "./connection.js";
import type { Context } from "./context.js";
import { DEVICES_PER_PHONE } from "./devices.js";
import { raw } from "./endpoint.js";
import { lidJid, phoneJid } from "./jids.js";
import type { ClientFinish } from "./noise.js";
import { bytes, child, node, nowSeconds, SERVER_JID } from "./nodes.js";

const ACCOUNT_SIGNATURE = Buffer.from([6, 0]);
const DEVICE_SIGNATURE = Buffer.from([6, 1]);
/** A client answers within milliseconds; one that is gone never does. */
const ANSWER_MS = 10_000;
/** Numbers for those who scan without saying which phone they are. */
const FIRST_SPARE_PHONE = 999_000_000_001;

export interface Registration {
  noiseKey: Buffer;
  identity: Buffer;
  registrationId: number;
  signedPreKey: { id: number; value: Buffer; signature: Buffer };
  refs: string[];
  /** While the client's answer to pair-success is awaited. */
  signing?: { done: (answer: BinaryNode) => void; fail: (error: Error) => void };
}

/** What the caller of the admin API did wrong. Becomes a 4xx. */
export class PairingError extends Error {
  constructor(
    readonly status: 404 | 409 | 400,
    message: string,
  ) {
    super(message);
  }
}

export class Pairing {
  private readonly byRef = new Map<string, Connection>();

  constructor(private readonly context: Context) {}

  /** A client without a number: offer it refs, which it shows as QR codes one after the other. */
  offer(connection: Connection, { staticKey, payload }: ClientFinish): void {
    const data = payload.devicePairingData;
    if (!data?.eIdent || !data.eRegid || !data.eSkeyId || !data.eSkeyVal || !data.eSkeySig) {
      throw new Error("a registration without keys");
    }
    const { qrRefs } = this.context.behaviours.for(connection.hints.get("phone") ?? undefined);
    const refs = Array.from({ length: qrRefs }, () => `2@${randomBytes(24).toString("base64url")}`);
    connection.registration = {
      noiseKey: staticKey,
      identity: Buffer.from(data.eIdent),
      registrationId: Buffer.from(data.eRegid).readUInt32BE(0),
      signedPreKey: {
        id: Buffer.from(data.eSkeyId).readUIntBE(0, 3),
        value: Buffer.from(data.eSkeyVal),
        signature: Buffer.from(data.eSkeySig),
      },
      refs,
    };
    for (const ref of refs) this.byRef.set(ref, connection);
    const offered = node(
      "pair-device",
      {},
      refs.map((ref) => node("ref", {}, Buffer.from(ref))),
    );
    connection.send(node("iq", { from: SERVER_JID, type: "set", id: connection.newId(), xmlns: "md" }, [offered]));
    this.context.events.add("qr-offered", { phone: connection.hints.get("phone") });
  }

  forget(connection: Connection): void {
    for (const ref of connection.registration?.refs ?? []) this.byRef.delete(ref);
    connection.registration?.signing?.fail(new PairingError(409, "the client is gone"));
  }

  /** A phone scans this text. Resolves with the new device's jid once both sides have signed. */
  async scan(qr: string, phone?: string): Promise<string> {
    const [ref = "", noiseKey, identity, advSecret = ""] = (qr.split("#").at(-1) ?? "").split(",");
    const connection = this.byRef.get(ref);
    const registration = connection?.registration;
    if (!connection || !registration) throw new PairingError(404, "nobody shows this QR code any more");
    if (noiseKey !== registration.noiseKey.toString("base64")) throw new PairingError(400, "not its noise key");
    if (identity !== registration.identity.toString("base64")) throw new PairingError(400, "not its identity key");
    return this.link(connection, phone ?? connection.hints.get("phone") ?? this.sparePhone(), advSecret);
  }

  async link(connection: Connection, phone: string, advSecret: string): Promise<string> {
    const { devices, phones, events, behaviours } = this.context;
    const registration = connection.registration;
    if (!registration) throw new PairingError(409, "not a client that waits to be linked");
    if (registration.signing) throw new PairingError(409, "it is being linked already");
    if (devices.ofPhone(phone).length >= DEVICES_PER_PHONE) throw new PairingError(409, "too many linked devices");
    if (behaviours.for(phone).passkeyGate) {
      connection.send(
        node("notification", { from: SERVER_JID, type: "passkey_prologue_request", id: connection.newId() }),
      );
      throw new PairingError(409, "this account asks for a passkey");
    }
    const number = devices.nextNumber(phone);
    const account = phones.endpoint(phone);
    const details = Buffer.from(
      proto.ADVDeviceIdentity.encode({ rawId: number, timestamp: Number(nowSeconds()), keyIndex: number }).finish(),
    );
    const signedIdentity = proto.ADVSignedDeviceIdentity.encode({
      details,
      accountSignatureKey: raw(account.identity),
      accountSignature: account.sign(Buffer.concat([ACCOUNT_SIGNATURE, details, registration.identity])),
    }).finish();
    const secret = behaviours.for(phone).wrongPairingHmac ? randomBytes(32) : Buffer.from(advSecret, "base64");
    const hmac = createHmac("sha256", secret).update(signedIdentity).digest();
    const answer = new Promise<BinaryNode>((resolve, reject) => {
      registration.signing = { done: resolve, fail: reject };
      this.context.timers.after(ANSWER_MS, () => reject(new PairingError(409, "the client did not answer")));
    });
    const identityHmac = proto.ADVSignedDeviceIdentityHMAC.encode({ details: signedIdentity, hmac }).finish();
    connection.send(pairSuccess(connection.newId(), phone, number, phones.get(phone).name, identityHmac));
    checkSignature(await answer, details, registration.identity, raw(account.identity));
    const device = devices.link({
      phone,
      number,
      sessionId: connection.hints.get("session") ?? "",
      noiseKey: registration.noiseKey.toString("base64"),
      registrationId: registration.registrationId,
      identity: registration.identity.toString("base64"),
      signedPreKey: {
        id: registration.signedPreKey.id,
        value: registration.signedPreKey.value.toString("base64"),
        signature: registration.signedPreKey.signature.toString("base64"),
      },
      linkedAtMs: Date.now(),
      historySent: false,
      preKeysUsed: 0,
    });
    events.add("linked", { jid: device.jid });
    connection.streamError({ code: "515" });
    return device.jid;
  }

  private sparePhone(): string {
    let phone = FIRST_SPARE_PHONE;
    while (this.context.devices.ofPhone(String(phone)).length > 0) phone += 1;
    return String(phone);
  }
}

function pairSuccess(id: string, phone: string, number: number, name: string, identity: Uint8Array): BinaryNode {
  return node("iq", { from: SERVER_JID, type: "set", id, t: nowSeconds(), xmlns: "md" }, [
    node("pair-success", {}, [
      node("device-identity", {}, identity),
      // The name of the account: without one the client refuses to show itself as typing.
      node("biz", { name }),
      node("platform", { name: "android" }),
      node("device", { jid: phoneJid(phone, number), lid: lidJid(phone, number) }),
    ]),
  ]);
}

function checkSignature(answer: BinaryNode, details: Buffer, identity: Buffer, accountKey: Buffer): void {
  const content = bytes(child(child(answer, "pair-device-sign"), "device-identity"));
  const signature = Buffer.from(proto.ADVSignedDeviceIdentity.decode(content).deviceSignature ?? []);
  const message = Buffer.concat([DEVICE_SIGNATURE, details, identity, accountKey]);
  const key = Buffer.concat([Buffer.from([5]), identity]);
  // Declared as returning nothing, it returns whether the signature is right.
  const right = curve.verifySignature(key, message, signature) as unknown;
  if (right !== true) throw new PairingError(409, "the device signed wrongly");
}
