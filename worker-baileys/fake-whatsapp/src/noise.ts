/**
 * The responder's half of Noise XX as WhatsApp speaks it, and the framing around it.
 *
 * The library plays the initiator only, so this side is written here; `certificates.ts` makes what is proven in
 * the second message, `connection.ts` feeds in what the socket brings.
 */

import { createCipheriv, createDecipheriv, createHash, hkdfSync } from "node:crypto";
import { Curve, proto } from "baileys";
import type { KeyPair } from "baileys";

const PROTOCOL_NAME = Buffer.from("Noise_XX_25519_AESGCM_SHA256\0\0\0\0");
const INTRO = Buffer.from([0x57, 0x41, 6, 3]);
const ROUTING_MARK = Buffer.from("ED");
const TAG_BYTES = 16;
const LENGTH_BYTES = 3;
/** More than the largest real frame (812 pre-keys are 40 kB); a client that announces more is broken. */
const FRAME_LIMIT_BYTES = 8 * 1024 * 1024;
const EMPTY = Buffer.alloc(0);

/** Cuts the byte stream of the socket into frames, the intro first. */
export class FrameReader {
  private pending: Buffer = EMPTY;
  private introSeen = false;

  push(data: Buffer): Buffer[] {
    this.pending = this.pending.length === 0 ? data : Buffer.concat([this.pending, data]);
    if (!this.introSeen && !this.takeIntro()) return [];
    const frames: Buffer[] = [];
    while (this.pending.length >= LENGTH_BYTES) {
      const length = this.pending.readUIntBE(0, LENGTH_BYTES);
      if (length > FRAME_LIMIT_BYTES) throw new Error(`a frame of ${length} bytes`);
      if (this.pending.length < LENGTH_BYTES + length) break;
      frames.push(this.pending.subarray(LENGTH_BYTES, LENGTH_BYTES + length));
      this.pending = this.pending.subarray(LENGTH_BYTES + length);
    }
    return frames;
  }

  /** A client that knows where it was routed last time puts that before the intro; it is no part of the handshake. */
  private takeIntro(): boolean {
    if (this.pending.length < INTRO.length) return false;
    let start = 0;
    if (this.pending.subarray(0, 2).equals(ROUTING_MARK)) {
      if (this.pending.length < 7) return false;
      start = 7 + this.pending.readUIntBE(4, LENGTH_BYTES);
      if (this.pending.length < start + INTRO.length) return false;
    }
    if (!this.pending.subarray(start, start + INTRO.length).equals(INTRO)) throw new Error("not a WhatsApp client");
    this.pending = this.pending.subarray(start + INTRO.length);
    this.introSeen = true;
    return true;
  }
}

export function frame(body: Uint8Array): Buffer {
  const head = Buffer.alloc(LENGTH_BYTES);
  head.writeUIntBE(body.length, 0, LENGTH_BYTES);
  return Buffer.concat([head, body]);
}

export interface ClientFinish {
  staticKey: Buffer;
  payload: proto.ClientPayload;
}

/** One handshake, and after it the two transport ciphers. Call `readHello`, `readFinish`, then `seal` and `open`. */
export class NoiseResponder {
  private hash: Buffer = PROTOCOL_NAME;
  private salt: Buffer = PROTOCOL_NAME;
  private key: Buffer = PROTOCOL_NAME;
  private counter = 0;
  private readonly ephemeral = Curve.generateKeyPair();
  private transport: { read: Buffer; write: Buffer; reads: number; writes: number } | undefined;

  constructor(
    private readonly staticKey: KeyPair,
    private readonly certificate: Uint8Array,
  ) {
    this.mixHash(INTRO);
  }

  /** The answer to the client's first frame. */
  readHello(body: Buffer): Buffer {
    const clientEphemeral = proto.HandshakeMessage.decode(body).clientHello?.ephemeral;
    if (clientEphemeral?.length !== 32) throw new Error("no client hello");
    this.mixHash(clientEphemeral);
    this.mixHash(this.ephemeral.public);
    this.mixKey(Curve.sharedKey(this.ephemeral.private, clientEphemeral));
    const sealedStatic = this.encryptAndHash(this.staticKey.public);
    this.mixKey(Curve.sharedKey(this.staticKey.private, clientEphemeral));
    const payload = this.encryptAndHash(this.certificate);
    const serverHello = { ephemeral: this.ephemeral.public, static: sealedStatic, payload };
    return Buffer.from(proto.HandshakeMessage.encode({ serverHello }).finish());
  }

  readFinish(body: Buffer): ClientFinish {
    const finish = proto.HandshakeMessage.decode(body).clientFinish;
    if (!finish?.static || !finish.payload) throw new Error("no client finish");
    // Under the key that sealed the certificate, with the next nonce: only mixKey starts the count again.
    const staticKey = this.decryptAndHash(finish.static);
    this.mixKey(Curve.sharedKey(this.ephemeral.private, staticKey));
    const payload = proto.ClientPayload.decode(this.decryptAndHash(finish.payload));
    const [read, write] = this.derive(EMPTY);
    this.transport = { read, write, reads: 0, writes: 0 };
    return { staticKey, payload };
  }

  seal(plaintext: Uint8Array): Buffer {
    if (!this.transport) throw new Error("the handshake is not over");
    return encrypt(plaintext, this.transport.write, this.transport.writes++, EMPTY);
  }

  open(ciphertext: Uint8Array): Buffer {
    if (!this.transport) throw new Error("the handshake is not over");
    return decrypt(ciphertext, this.transport.read, this.transport.reads++, EMPTY);
  }

  private mixHash(data: Uint8Array): void {
    this.hash = createHash("sha256").update(this.hash).update(data).digest();
  }

  private mixKey(secret: Uint8Array): void {
    [this.salt, this.key] = this.derive(secret);
    this.counter = 0;
  }

  private derive(secret: Uint8Array): [Buffer, Buffer] {
    const both = Buffer.from(hkdfSync("sha256", secret, this.salt, EMPTY, 64));
    return [both.subarray(0, 32), both.subarray(32)];
  }

  private encryptAndHash(plaintext: Uint8Array): Buffer {
    const sealed = encrypt(plaintext, this.key, this.counter++, this.hash);
    this.mixHash(sealed);
    return sealed;
  }

  private decryptAndHash(ciphertext: Uint8Array): Buffer {
    const plaintext = decrypt(ciphertext, this.key, this.counter++, this.hash);
    this.mixHash(ciphertext);
    return plaintext;
  }
}

function nonce(counter: number): Buffer {
  const iv = Buffer.alloc(12);
  iv.writeUInt32BE(counter, 8);
  return iv;
}

function encrypt(plaintext: Uint8Array, key: Buffer, counter: number, associated: Buffer): Buffer {
  const cipher = createCipheriv("aes-256-gcm", key, nonce(counter)).setAAD(associated);
  return Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
}

function decrypt(ciphertext: Uint8Array, key: Buffer, counter: number, associated: Buffer): Buffer {
  const body = ciphertext.subarray(0, ciphertext.length - TAG_BYTES);
  const decipher = createDecipheriv("aes-256-gcm", key, nonce(counter)).setAAD(associated);
  decipher.setAuthTag(ciphertext.subarray(ciphertext.length - TAG_BYTES));
  return Buffer.concat([decipher.update(body), decipher.final()]);
}
