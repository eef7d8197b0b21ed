/**
 * Encryption of the auth state: AES-256-GCM under a key that is derived from AUTH_KEY, a salt of the file and the
 * session, so that one AUTH_KEY serves a fleet and no file can pass for another's. Names are replaced by a keyed hash:
 * what Baileys calls its keys are numbers of people.
 */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from "node:crypto";

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** The bytes were not sealed with this key, or not for this place. */
export class WrongKey extends Error {}

export class Seal {
  readonly #contentKey: Buffer;
  readonly #nameKey: Buffer;

  constructor(authKey: Buffer, salt: Buffer, sessionId: string) {
    const derive = (use: string): Buffer =>
      Buffer.from(hkdfSync("sha256", authKey, salt, `paceline auth state ${use} ${sessionId}`, 32));
    this.#contentKey = derive("content");
    this.#nameKey = derive("names");
  }

  /** Where a value lies: says nothing of what it is called. */
  name(kind: string, id: string): Buffer {
    return createHmac("sha256", this.#nameKey).update(`${kind}\0${id}`).digest().subarray(0, 16);
  }

  /** `place` is bound in: a value moved elsewhere in the file does not open. */
  close(place: Buffer, content: Buffer): Buffer {
    // Random nonces of 96 bits: after 2^32 writes under one key a repetition is still unlikely (2^-32).
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv("aes-256-gcm", this.#contentKey, nonce).setAAD(place);
    return Buffer.concat([nonce, cipher.update(content), cipher.final(), cipher.getAuthTag()]);
  }

  open(place: Buffer, sealed: Uint8Array): Buffer {
    const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength);
    const end = bytes.length - TAG_BYTES;
    if (end < NONCE_BYTES) throw new WrongKey("too short to be sealed");
    const decipher = createDecipheriv("aes-256-gcm", this.#contentKey, bytes.subarray(0, NONCE_BYTES));
    decipher.setAAD(place).setAuthTag(bytes.subarray(end));
    try {
      return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, end)), decipher.final()]);
    } catch {
      throw new WrongKey("AUTH_KEY does not open this auth state, or the file was changed");
    }
  }
}
