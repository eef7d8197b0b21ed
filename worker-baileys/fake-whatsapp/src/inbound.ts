/**
 * Messages to devices: what contacts write, and the history that the own phone sends at a device's first login.
 *
 * Both are really encrypted, with the pre-keys that the device uploaded. A device that cannot decrypt asks again; then
 * the session is thrown away and the same message goes out under a new one.
 */

import { randomBytes } from "node:crypto";
import { deflateSync } from "node:zlib";
import { proto, writeRandomPadMax16 } from "baileys";
import type { BinaryNode } from "baileys";
import type { Context } from "./context.js";
import type { Device } from "./devices.js";
import { lidJid, phoneJid } from "./jids.js";
import { node, nowSeconds } from "./nodes.js";

/** Kept to be sent again; a device asks within a second or never. */
const SENT_LIMIT = 1_000;
const ASKED_AGAIN_LIMIT = 5;

interface Sent {
  from: string;
  device: Device;
  message: proto.IMessage;
  attributes: Record<string, string | undefined>;
  asked: number;
}

export class Inbound {
  private readonly sent = new Map<string, Sent>();

  constructor(private readonly context: Context) {}

  /** Somebody writes to this number: all its devices get it. */
  async write(from: string, to: string, text: string, id?: string, name?: string): Promise<string> {
    const messageId = id ?? `3A${randomBytes(9).toString("hex").toUpperCase()}`;
    const attributes = {
      from: lidJid(from),
      sender_pn: phoneJid(from),
      addressing_mode: "lid",
      type: "text",
      notify: name ?? this.context.phones.get(from).name,
    };
    this.context.ledger.noteChat(to, from);
    for (const device of this.context.devices.ofPhone(to)) {
      const message: proto.IMessage = { conversation: text };
      await this.send(messageId, { from, device, message, attributes, asked: 0 });
    }
    return messageId;
  }

  /** An empty history. Until it comes, a newly linked client holds all its events back, up to 20 s. */
  async sendHistory(device: Device): Promise<void> {
    const about = { syncType: proto.HistorySync.HistorySyncType.INITIAL_BOOTSTRAP, chunkOrder: 1, progress: 100 };
    const history = deflateSync(proto.HistorySync.encode(about).finish());
    const content = this.context.behaviours.for(device.phone).historyAsFile
      ? await this.context.media.put(history, "md-msg-hist")
      : { initialHistBootstrapInlinePayload: history };
    const message: proto.IMessage = {
      protocolMessage: {
        type: proto.Message.ProtocolMessage.Type.HISTORY_SYNC_NOTIFICATION,
        historySyncNotification: { ...about, ...content },
      },
    };
    // No `notify`: a name on a message from oneself becomes one's own name.
    const attributes = {
      from: lidJid(device.phone),
      sender_pn: phoneJid(device.phone),
      addressing_mode: "lid",
      type: "text",
    };
    const id = `3A${randomBytes(9).toString("hex").toUpperCase()}`;
    await this.send(id, { from: device.phone, device, message, attributes, asked: 0 });
    device.historyWasSent();
  }

  /** The device could not decrypt it. */
  async askedAgain(device: Device, id: string | undefined): Promise<void> {
    const sent = this.sent.get(`${device.jid} ${id}`);
    if (!sent || id === undefined || ++sent.asked > ASKED_AGAIN_LIMIT) return;
    this.context.phones.endpoint(sent.from).forgetSession(device.address);
    await this.send(id, sent);
  }

  private async send(id: string, sent: Sent): Promise<void> {
    const { device, from, message } = sent;
    const plaintext = Buffer.from(writeRandomPadMax16(proto.Message.encode(message).finish()));
    const endpoint = this.context.phones.endpoint(from);
    const sealed = await endpoint.encrypt(device.address, plaintext, () => device.takeBundle());
    const count = sent.asked === 0 ? undefined : String(sent.asked);
    const enc = node("enc", { v: "2", type: sealed.type, count }, sealed.bytes);
    const stanza: BinaryNode = node("message", { ...sent.attributes, id, t: nowSeconds() }, [enc]);
    this.remember(`${device.jid} ${id}`, sent);
    this.context.outbox.deliver(device, stanza);
  }

  private remember(key: string, sent: Sent): void {
    this.sent.set(key, sent);
    const [oldest] = this.sent.keys();
    if (this.sent.size > SENT_LIMIT && oldest !== undefined) this.sent.delete(oldest);
  }
}
