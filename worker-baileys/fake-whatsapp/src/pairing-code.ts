/**
 * Linking by an eight-character code that the client shows and a person types into the phone.
 *
 * The client wraps an ephemeral key under the code; the phone, which knows the code, answers with its own; both agree
 * on the secret that a QR code would have carried. Then `pairing.ts` goes on as with a QR code.
 */

import { createCipheriv, createDecipheriv, hkdfSync, pbkdf2Sync, randomBytes } from "node:crypto";
import { Curve } from "baileys";
import type { BinaryNode, KeyPair } from "baileys";
import type { Connection } from "./connection.js";
import type { Context } from "./context.js";
import { raw } from "./endpoint.js";
import { isPhone, parseJid } from "./jids.js";
import { bytes, child, iqError, iqResult, node, SERVER_JID } from "./nodes.js";
import { PairingError } from "./pairing.js";

const CODE_ITERATIONS = 131_072;
const SALT_BYTES = 32;
const CTR_IV_BYTES = 16;
const GCM_IV_BYTES = 12;
const TAG_BYTES = 16;
const KEY_BYTES = 32;

/** A client answers within milliseconds; one that is gone never does. */
const ANSWER_MS = 10_000;

/** The phone has the code and has answered with a key of its own. */
interface Entered {
  ephemeral: KeyPair;
  clientEphemeral: Buffer;
  done: (linked: Promise<string>) => void;
  fail: (error: Error) => void;
}

interface Waiting {
  connection: Connection;
  phone: string;
  wrappedKey: Buffer;
  ref: Buffer;
  entered?: Entered;
}

export class CodePairing {
  private readonly waiting = new Map<string, Waiting>();

  constructor(private readonly context: Context) {}

  /** Both stages of the client's part: it asks, and later it hands over its sealed identity. */
  async handle(connection: Connection, iq: BinaryNode, request: BinaryNode): Promise<void> {
    const phone = parseJid(request.attrs.jid)?.phone;
    if (!connection.registration || !isPhone(phone)) return connection.send(iqError(iq, 400, "bad-request"));
    if (request.attrs.stage === "companion_hello") this.hello(connection, phone, iq, request);
    else this.finish(connection, phone, iq, request);
  }

  /** The person types the code into the phone. */
  async enter(phone: string, code: string): Promise<string> {
    const waiting = this.waiting.get(phone);
    if (!waiting) throw new PairingError(404, "no client waits for a code of this phone");
    const salt = waiting.wrappedKey.subarray(0, SALT_BYTES);
    const iv = waiting.wrappedKey.subarray(SALT_BYTES, SALT_BYTES + CTR_IV_BYTES);
    const decipher = createDecipheriv("aes-256-ctr", codeKey(code, salt), iv);
    const clientEphemeral = decipher.update(waiting.wrappedKey.subarray(SALT_BYTES + CTR_IV_BYTES));
    const ephemeral = Curve.generateKeyPair();
    const linked = new Promise<string>((resolve, reject) => {
      waiting.entered = { ephemeral, clientEphemeral, done: resolve, fail: reject };
      this.context.timers.after(ANSWER_MS, () => reject(new PairingError(409, "wrong code, or the client is gone")));
    });
    waiting.connection.send(this.notification(waiting, code, ephemeral));
    return linked;
  }

  forget(connection: Connection): void {
    for (const [phone, waiting] of this.waiting) {
      if (waiting.connection !== connection) continue;
      this.waiting.delete(phone);
      waiting.entered?.fail(new PairingError(409, "the client is gone"));
    }
  }

  private hello(connection: Connection, phone: string, iq: BinaryNode, request: BinaryNode): void {
    const wrappedKey = bytes(child(request, "link_code_pairing_wrapped_companion_ephemeral_pub"));
    const ref = randomBytes(16);
    this.waiting.set(phone, { connection, phone, wrappedKey, ref });
    const answer = node("link_code_companion_reg", { stage: "companion_hello" }, [
      node("link_code_pairing_ref", {}, ref),
    ]);
    connection.send(iqResult(iq, [answer]));
    this.context.events.add("code-offered", { phone });
    const { autoLinkCode } = this.context.behaviours.for(phone);
    if (autoLinkCode === null) return;
    this.enter(phone, autoLinkCode).catch((error: Error) => {
      this.context.events.add("auto-link-failed", { phone, error: error.message });
    });
  }

  private finish(connection: Connection, phone: string, iq: BinaryNode, request: BinaryNode): void {
    const waiting = this.waiting.get(phone);
    if (waiting?.connection !== connection || !waiting.entered) return connection.send(iqError(iq, 404, "not-found"));
    connection.send(iqResult(iq));
    this.waiting.delete(phone);
    waiting.entered.done(this.link(waiting, waiting.entered, request));
  }

  private async link({ phone, connection }: Waiting, entered: Entered, request: BinaryNode): Promise<string> {
    const account = this.context.phones.endpoint(phone);
    const identity = bytes(child(request, "companion_identity_public"));
    const shared = Curve.sharedKey(entered.ephemeral.private, entered.clientEphemeral);
    const bundle = openBundle(bytes(child(request, "link_code_pairing_wrapped_key_bundle")), shared);
    const expected = Buffer.concat([identity, raw(account.identity)]);
    if (!bundle.subarray(0, 2 * KEY_BYTES).equals(expected)) throw new PairingError(400, "not its identity key");
    const random = bundle.subarray(2 * KEY_BYTES);
    const secret = Buffer.concat([shared, account.agree(identity), random]);
    const advSecret = Buffer.from(hkdfSync("sha256", secret, Buffer.alloc(0), "adv_secret", 32));
    return this.context.pairing.link(connection, phone, advSecret.toString("base64"));
  }

  private notification({ connection, phone, ref }: Waiting, code: string, ephemeral: KeyPair): BinaryNode {
    const salt = randomBytes(SALT_BYTES);
    const iv = randomBytes(CTR_IV_BYTES);
    const wrapped = createCipheriv("aes-256-ctr", codeKey(code, salt), iv).update(ephemeral.public);
    const account = this.context.phones.endpoint(phone);
    const attributes = { from: SERVER_JID, type: "link_code_companion_reg", id: connection.newId() };
    return node("notification", attributes, [
      node("link_code_companion_reg", { stage: "primary_hello" }, [
        node("link_code_pairing_ref", {}, ref),
        node("primary_identity_pub", {}, raw(account.identity)),
        node("link_code_pairing_wrapped_primary_ephemeral_pub", {}, Buffer.concat([salt, iv, wrapped])),
      ]),
    ]);
  }
}

function codeKey(code: string, salt: Buffer): Buffer {
  return pbkdf2Sync(code, salt, CODE_ITERATIONS, KEY_BYTES, "sha256");
}

function openBundle(sealed: Buffer, shared: Buffer): Buffer {
  const salt = sealed.subarray(0, SALT_BYTES);
  const iv = sealed.subarray(SALT_BYTES, SALT_BYTES + GCM_IV_BYTES);
  const body = sealed.subarray(SALT_BYTES + GCM_IV_BYTES);
  const key = Buffer.from(hkdfSync("sha256", shared, salt, "link_code_pairing_key_bundle_encryption_key", 32));
  const decipher = createDecipheriv("aes-256-gcm", key, iv).setAuthTag(body.subarray(-TAG_BYTES));
  return Buffer.concat([decipher.update(body.subarray(0, -TAG_BYTES)), decipher.final()]);
}
