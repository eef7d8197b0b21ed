/**
 * What devices are to be told: receipts and messages, kept until the device has confirmed each.
 *
 * A device that is away gets them at its next login, marked `offline` as the real server does (the library reports such
 * messages as `append`, not `notify`). Kept in memory only: a restarted server has forgotten them.
 */

import type { BinaryNode } from "baileys";
import type { Device } from "./devices.js";

/** Per device. The oldest go first; a worker that is away for longer than this finds out by other means. */
const WAITING_LIMIT = 10_000;

export class Outbox {
  private readonly waiting = new Map<string, Map<string, BinaryNode>>();

  /** Send now if the device is there, and again at its next login unless it confirms. */
  deliver(device: Device, stanza: BinaryNode): void {
    const waiting = this.of(device);
    waiting.set(key(stanza.tag, stanza.attrs.id, stanza.attrs.type), stanza);
    const [oldest] = waiting.keys();
    if (waiting.size > WAITING_LIMIT && oldest !== undefined) waiting.delete(oldest);
    if (device.connection?.active) device.connection.send(stanza);
  }

  /** The device has logged in. Returns how many stanzas it was sent. */
  flush(device: Device): number {
    const waiting = this.of(device);
    for (const stanza of waiting.values()) {
      device.connection?.send({ ...stanza, attrs: { ...stanza.attrs, offline: "0" } });
    }
    return waiting.size;
  }

  confirm(device: Device, tag: string, id: string | undefined, type: string | undefined): void {
    this.of(device).delete(key(tag, id, type));
  }

  /** A message of ours is confirmed under whatever type it had. */
  confirmMessage(device: Device, id: string | undefined): void {
    const waiting = this.of(device);
    for (const name of waiting.keys()) {
      if (name.startsWith(`message ${id} `)) waiting.delete(name);
    }
  }

  count(device: Device): number {
    return this.of(device).size;
  }

  forget(device: Device): void {
    this.waiting.delete(device.jid);
  }

  clear(): void {
    this.waiting.clear();
  }

  private of(device: Device): Map<string, BinaryNode> {
    let waiting = this.waiting.get(device.jid);
    if (!waiting) this.waiting.set(device.jid, (waiting = new Map<string, BinaryNode>()));
    return waiting;
  }
}

function key(tag: string, id: string | undefined, type: string | undefined): string {
  return `${tag} ${id} ${type ?? ""}`;
}
