/**
 * A fake phone's Signal endpoint: it gives out pre-keys, decrypts what linked devices send it, and encrypts answers.
 *
 * All private keys of a phone follow from the server's seed and the number, so any number is a contact at once and a
 * restart forgets none. Only sessions are state; `phones.ts` keeps them. The cryptography is libsignal's.
 */

import { createHmac, createPrivateKey, createPublicKey, randomInt } from "node:crypto";
import type { BinaryNode } from "baileys";
import libsignal from "libsignal";
import * as curve from "libsignal/src/curve.js";
import type { DeviceBundle } from "./devices.js";
import { bigEndian, node } from "./nodes.js";

const KEY_TYPE = Buffer.from([5]);
const SIGNED_PRE_KEY_ID = 1;
const PRE_KEY_ID_LIMIT = 0xffffff;
const PKCS8_X25519 = Buffer.from("302e020100300506032b656e04220420", "hex");
/** Records kept from before the last messages, see `Decrypted.counterReused`. */
const OLDER_RECORDS = 2;

export type Ciphertext = { type: string; bytes: Buffer };

export interface Decrypted {
  plaintext: Buffer;
  /**
   * The sender's ratchet went back: it used a message key again, as after a crash between sending and storing. A real
   * recipient drops such a message silently. It is readable here only because the record from before is still known.
   */
  counterReused: boolean;
}

/** libsignal's own form of a session record, ready for JSON. */
export type StoredSession = object;

export interface SessionStore {
  load(address: string): StoredSession | undefined;
  save(address: string, session: StoredSession | undefined): void;
}

interface KeyPair {
  pubKey: Buffer;
  privKey: Buffer;
}

export class Endpoint {
  readonly registrationId: number;
  readonly identity: KeyPair;
  private readonly signedPreKey: KeyPair;
  private readonly older = new Map<string, StoredSession[]>();

  constructor(
    private readonly seed: Buffer,
    readonly phone: string,
    private readonly sessions: SessionStore,
  ) {
    this.identity = this.derive("identity");
    this.signedPreKey = this.derive("signed-pre-key");
    this.registrationId = 1 + (this.identity.pubKey.readUInt16BE(1) % 16380);
  }

  /** A `user` node of the answer to a pre-key query, under the jid that was asked for. */
  bundleNode(jid: string): BinaryNode {
    const preKeyId = randomInt(1, PRE_KEY_ID_LIMIT);
    return node("user", { jid }, [
      node("registration", {}, bigEndian(this.registrationId, 4)),
      node("type", {}, KEY_TYPE),
      node("identity", {}, raw(this.identity)),
      node("skey", {}, [
        node("id", {}, bigEndian(SIGNED_PRE_KEY_ID, 3)),
        node("value", {}, raw(this.signedPreKey)),
        node("signature", {}, this.sign(this.signedPreKey.pubKey)),
      ]),
      node("key", {}, [
        node("id", {}, bigEndian(preKeyId, 3)),
        node("value", {}, raw(this.derive(`pre-key ${preKeyId}`))),
      ]),
    ]);
  }

  sign(message: Uint8Array): Buffer {
    return Buffer.from(curve.calculateSignature(this.identity.privKey, message));
  }

  /** The secret shared with another identity; pairing by code needs it. */
  agree(publicKey: Uint8Array): Buffer {
    return Buffer.from(curve.calculateAgreement(Buffer.concat([KEY_TYPE, publicKey]), this.identity.privKey));
  }

  async decrypt(sender: string, ciphertext: Ciphertext): Promise<Decrypted> {
    const before = this.sessions.load(sender);
    try {
      const plaintext = await this.decryptWith(sender, ciphertext, this.sessions);
      if (before) this.older.set(sender, [before, ...(this.older.get(sender) ?? [])].slice(0, OLDER_RECORDS));
      return { plaintext, counterReused: false };
    } catch (error) {
      for (const record of this.older.get(sender) ?? []) {
        const copy: SessionStore = { load: () => record, save: () => undefined };
        const plaintext = await this.decryptWith(sender, ciphertext, copy).catch(() => undefined);
        if (plaintext) return { plaintext, counterReused: true };
      }
      throw error;
    }
  }

  /** Encrypt for a device; its bundle is asked for only if there is no session with it yet. */
  async encrypt(receiver: string, plaintext: Buffer, bundle: () => DeviceBundle): Promise<Ciphertext> {
    if (!this.sessions.load(receiver)) await this.openSession(receiver, bundle());
    const cipher = new libsignal.SessionCipher(this.storage(this.sessions), address(receiver));
    const { type, body } = await cipher.encrypt(plaintext);
    return { type: type === 3 ? "pkmsg" : "msg", bytes: Buffer.from(body as string | Buffer as string, "binary") };
  }

  forgetSession(device: string): void {
    this.sessions.save(device, undefined);
    this.older.delete(device);
  }

  private async openSession(receiver: string, bundle: DeviceBundle): Promise<void> {
    const builder = new libsignal.SessionBuilder(this.storage(this.sessions), address(receiver));
    const withType = (key: Buffer): Buffer => Buffer.concat([KEY_TYPE, key]);
    const preKey = bundle.preKey && { keyId: bundle.preKey.id, publicKey: withType(bundle.preKey.value) };
    await builder.initOutgoing({
      registrationId: bundle.registrationId,
      identityKey: withType(bundle.identity),
      signedPreKey: {
        keyId: bundle.signedPreKey.id,
        publicKey: withType(bundle.signedPreKey.value),
        signature: bundle.signedPreKey.signature,
      },
      // A bundle without a one-time key is fine for libsignal; only its type declaration asks for one.
      preKey: preKey as NonNullable<typeof preKey>,
    });
  }

  private async decryptWith(sender: string, { type, bytes }: Ciphertext, store: SessionStore): Promise<Buffer> {
    const cipher = new libsignal.SessionCipher(this.storage(store), address(sender));
    if (type === "pkmsg") return cipher.decryptPreKeyWhisperMessage(bytes);
    if (type === "msg") return cipher.decryptWhisperMessage(bytes);
    throw new Error(`ciphertext of type ${type}`);
  }

  private storage(store: SessionStore): libsignal.SignalStorage {
    return {
      loadSession: async (id) => {
        const stored = store.load(id);
        return stored && libsignal.SessionRecord.deserialize(stored as Uint8Array);
      },
      storeSession: async (id, record) => store.save(id, record.serialize()),
      isTrustedIdentity: () => true,
      loadPreKey: async (id) => (id ? this.derive(`pre-key ${id}`) : undefined),
      removePreKey: () => undefined,
      loadSignedPreKey: () => this.signedPreKey,
      getOurRegistrationId: () => this.registrationId,
      getOurIdentity: () => this.identity,
    };
  }

  private derive(purpose: string): KeyPair {
    const privKey = createHmac("sha256", this.seed).update(`${this.phone} ${purpose}`).digest();
    // Clamped as X25519 wants it: libsignal signs with the key as it is.
    privKey[0] = (privKey[0] ?? 0) & 248;
    privKey[31] = ((privKey[31] ?? 0) & 127) | 64;
    const key = createPrivateKey({ key: Buffer.concat([PKCS8_X25519, privKey]), format: "der", type: "pkcs8" });
    const publicDer = createPublicKey(key).export({ type: "spki", format: "der" });
    return { privKey, pubKey: Buffer.concat([KEY_TYPE, publicDer.subarray(-32)]) };
  }
}

/** A key as the wire has it, without the type byte. */
export function raw(pair: { pubKey: Buffer }): Buffer {
  return pair.pubKey.subarray(1);
}

function address(device: string): libsignal.ProtocolAddress {
  const [name = "", id = "0"] = device.split(".");
  return new libsignal.ProtocolAddress(name, Number(id));
}
