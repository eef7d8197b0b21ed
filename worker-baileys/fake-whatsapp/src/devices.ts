/**
 * The linked devices: which keys each has, its pre-keys on the server, and whether it is connected now.
 *
 * Pairing adds one, a logout or `device_removed` takes it away; links survive a restart with `--state`.
 */

import type { BinaryNode } from "baileys";
import type { Connection } from "./connection.js";
import { lidJid, phoneJid } from "./jids.js";
import { bytes, child, children } from "./nodes.js";
import type { StateFile } from "./state.js";

const PRE_KEY_ENTRY_BYTES = 3 + 32;
/** The library refuses device 99, which stands for hosted accounts. */
const HOSTED_DEVICE = 99;
/** What WhatsApp itself allows beside the phone. */
export const DEVICES_PER_PHONE = 4;

export interface DeviceBundle {
  registrationId: number;
  identity: Buffer;
  signedPreKey: { id: number; value: Buffer; signature: Buffer };
  preKey?: { id: number; value: Buffer };
}

interface StoredDevice {
  phone: string;
  number: number;
  sessionId: string;
  noiseKey: string;
  registrationId: number;
  identity: string;
  signedPreKey: { id: number; value: string; signature: string };
  linkedAtMs: number;
  historySent: boolean;
  /** How many of the stored one-time keys are used up. They are 30 kB, so they are not stored again for each. */
  preKeysUsed: number;
}

type Saved = "device" | "pre-keys";

export class Device {
  connection: Connection | undefined;
  lastLoginMs = 0;
  private preKeys: Buffer = Buffer.alloc(0);

  constructor(
    readonly stored: StoredDevice,
    private readonly save: (device: Device, part: Saved) => void,
    preKeys?: string,
  ) {
    if (preKeys !== undefined) this.preKeys = Buffer.from(preKeys, "base64");
  }

  /** It has logged in over this connection; `session` is what its URL calls it. */
  online(connection: Connection, session: string | null): void {
    this.connection = connection;
    this.lastLoginMs = Date.now();
    if (session === null || session === this.stored.sessionId) return;
    this.stored.sessionId = session;
    this.save(this, "device");
  }

  get phone(): string {
    return this.stored.phone;
  }

  get jid(): string {
    return phoneJid(this.stored.phone, this.stored.number);
  }

  get lid(): string {
    return lidJid(this.stored.phone, this.stored.number);
  }

  /** Its name in the fake phones' Signal sessions, always the same whatever jid it was addressed by. */
  get address(): string {
    return `${lidJid(this.phone).split("@")[0]}_1.${this.stored.number}`;
  }

  get preKeyCount(): number {
    return this.preKeys.length / PRE_KEY_ENTRY_BYTES - this.stored.preKeysUsed;
  }

  get storedPreKeys(): string {
    return this.preKeys.toString("base64");
  }

  knows(noiseKey: Buffer): boolean {
    return noiseKey.toString("base64") === this.stored.noiseKey;
  }

  /** `iq encrypt set`: identity, signed pre-key and a list of one-time keys. */
  uploadPreKeys(iq: BinaryNode): void {
    this.stored.registrationId = bytes(child(iq, "registration")).readUInt32BE(0);
    this.stored.identity = bytes(child(iq, "identity")).toString("base64");
    this.setSignedPreKey(child(iq, "skey"));
    const entries = children(child(iq, "list"), "key").map((key) =>
      Buffer.concat([bytes(child(key, "id")), bytes(child(key, "value"))]),
    );
    if (entries.some((entry) => entry.length !== PRE_KEY_ENTRY_BYTES)) throw new Error("a malformed pre-key");
    this.preKeys = Buffer.concat([this.preKeys.subarray(this.stored.preKeysUsed * PRE_KEY_ENTRY_BYTES), ...entries]);
    this.stored.preKeysUsed = 0;
    this.save(this, "pre-keys");
    this.save(this, "device");
  }

  rotateSignedPreKey(iq: BinaryNode): void {
    this.setSignedPreKey(child(child(iq, "rotate"), "skey"));
    this.save(this, "device");
  }

  /** What a phone needs to open a session. One-time keys are used up; without any the signed one has to do. */
  takeBundle(): DeviceBundle {
    const { identity, signedPreKey, registrationId } = this.stored;
    const bundle: DeviceBundle = {
      registrationId,
      identity: Buffer.from(identity, "base64"),
      signedPreKey: {
        id: signedPreKey.id,
        value: Buffer.from(signedPreKey.value, "base64"),
        signature: Buffer.from(signedPreKey.signature, "base64"),
      },
    };
    if (this.preKeyCount > 0) {
      const entry = this.preKeys.subarray(this.stored.preKeysUsed * PRE_KEY_ENTRY_BYTES);
      bundle.preKey = { id: entry.readUIntBE(0, 3), value: entry.subarray(3, PRE_KEY_ENTRY_BYTES) };
      this.stored.preKeysUsed += 1;
      this.save(this, "device");
    }
    return bundle;
  }

  historyWasSent(): void {
    this.stored.historySent = true;
    this.save(this, "device");
  }

  private setSignedPreKey(skey: BinaryNode | undefined): void {
    this.stored.signedPreKey = {
      id: bytes(child(skey, "id")).readUIntBE(0, 3),
      value: bytes(child(skey, "value")).toString("base64"),
      signature: bytes(child(skey, "signature")).toString("base64"),
    };
  }
}

export class Devices {
  private readonly byJid = new Map<string, Device>();

  constructor(private readonly state: StateFile) {
    const preKeys = state.take<string>("pre-keys/");
    for (const [jid, stored] of state.take<StoredDevice>("device/")) {
      this.byJid.set(jid, new Device(stored, this.save, preKeys.get(jid)));
    }
  }

  get(jid: string): Device | undefined {
    return this.byJid.get(jid);
  }

  list(): Device[] {
    return [...this.byJid.values()];
  }

  ofPhone(phone: string): Device[] {
    return this.list().filter((device) => device.phone === phone);
  }

  /** A number for the next device of a phone: the one after the highest that is linked. */
  nextNumber(phone: string): number {
    let number = Math.max(0, ...this.ofPhone(phone).map((device) => device.stored.number)) + 1;
    if (number === HOSTED_DEVICE) number += 1;
    return number;
  }

  link(stored: StoredDevice): Device {
    const device = new Device(stored, this.save);
    this.byJid.set(device.jid, device);
    this.save(device, "device");
    return device;
  }

  unlink(device: Device): void {
    this.byJid.delete(device.jid);
    this.state.put(`device/${device.jid}`, null);
    this.state.put(`pre-keys/${device.jid}`, null);
  }

  private readonly save = (device: Device, part: Saved): void => {
    const value = part === "device" ? device.stored : device.storedPreKeys;
    this.state.put(`${part}/${device.jid}`, value);
  };
}
