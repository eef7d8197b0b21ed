/**
 * Messages from people: who wrote, and the words. Groups, broadcasts, channels and our own messages are left out.
 *
 * They are taken where they are decrypted. The library's own event comes only after it has told the server that we have
 * the message, up to seconds later, and a crash in between would lose it. That event still counts for what comes in
 * another way, as a message that our own phone had to send again.
 */
import {
  type BinaryNode,
  decodeMessageNode,
  extractMessageContent,
  getBinaryNodeChildren,
  isLidUser,
  isPnUser,
  jidDecode,
  proto,
  toNumber,
  unpadRandomMax16,
  type WAMessage,
} from "baileys";
import { failpoint } from "../failpoint.js";
import { log } from "../log.js";
import type { Me } from "./stanzas.js";

export interface Inbound {
  readonly sender: string;
  readonly text: string;
  readonly whatsappId: string;
  readonly atMs: number;
}

export type NumberOf = (lid: string) => Promise<string | null>;

// As many as the server brings in one go to somebody who was away; the orchestrator knows a repetition by its id too.
const REMEMBERED = 1_000;
// What the orchestrator takes of a text.
const TEXT_LIMIT = 4_096;

/** Everything that is written to us, once. `tell` has it on the disk when it returns. */
export class Inbox {
  readonly #stanzas = new WeakMap<Uint8Array, BinaryNode>();
  readonly #told = new Set<string>();

  constructor(
    private readonly me: () => Me | undefined,
    private readonly tell: (inbound: Inbound) => void,
  ) {}

  /** A message is here and will be decrypted soon: its ciphertext will say which one it was. */
  expect(stanza: BinaryNode): void {
    for (const { content } of getBinaryNodeChildren(stanza, "enc")) {
      if (content instanceof Uint8Array) this.#stanzas.set(content, stanza);
    }
  }

  /** Its words, in the moment they are known. */
  async hear(ciphertext: Uint8Array, plaintext: Uint8Array, numberOf: NumberOf): Promise<void> {
    const [stanza, me] = [this.#stanzas.get(ciphertext), this.me()];
    if (!stanza || !me) return;
    failpoint("decrypted-not-kept");
    await this.#take(() => messageOf(stanza, plaintext, me), numberOf);
    failpoint("kept-not-ratcheted");
  }

  /** One that the library hands over, perhaps after it was heard. */
  take(message: WAMessage, numberOf: NumberOf): Promise<void> {
    return this.#take(() => message, numberOf);
  }

  async #take(read: () => WAMessage, numberOf: NumberOf): Promise<void> {
    let inbound: Inbound | null;
    try {
      inbound = await inboundOf(read(), numberOf);
    } catch (error) {
      // Whatever it was, the library shall go on with it: it asks again for what it cannot read either.
      log.warning("a message could not be read", { reason: String(error) });
      return;
    }
    if (!inbound || this.#told.has(inbound.whatsappId)) return;
    this.#told.add(inbound.whatsappId);
    this.tell(inbound);
    const [oldest] = this.#told;
    if (this.#told.size > REMEMBERED && oldest !== undefined) this.#told.delete(oldest);
  }
}

/** As the library will make it. */
function messageOf(stanza: BinaryNode, plaintext: Uint8Array, me: Me): WAMessage {
  const { fullMessage } = decodeMessageNode(stanza, me.id, me.lid ?? "");
  return { ...fullMessage, message: proto.Message.decode(unpadRandomMax16(plaintext)) };
}

/** Null for what is no message of a person to us. */
async function inboundOf(message: WAMessage, numberOf: NumberOf): Promise<Inbound | null> {
  const { key } = message;
  const content = extractMessageContent(message.message);
  const jid = key.remoteJid ?? "";
  if (key.fromMe || !key.id || !content || (!isPnUser(jid) && !isLidUser(jid))) return null;
  if (content.protocolMessage || content.senderKeyDistributionMessage || content.reactionMessage) return null;
  const alternative = key.remoteJidAlt ?? "";
  const number = isPnUser(jid) ? jid : isPnUser(alternative) ? alternative : ((await numberOf(jid)) ?? jid);
  return {
    sender: isPnUser(number) ? (jidDecode(number)?.user ?? number) : number,
    text: [...textOf(content)].slice(0, TEXT_LIMIT).join(""),
    whatsappId: key.id,
    atMs: toNumber(message.messageTimestamp ?? 0) * 1_000,
  };
}

function textOf(content: NonNullable<ReturnType<typeof extractMessageContent>>): string {
  return (
    content.conversation ||
    content.extendedTextMessage?.text ||
    content.imageMessage?.caption ||
    content.videoMessage?.caption ||
    content.documentMessage?.caption ||
    content.buttonsResponseMessage?.selectedDisplayText ||
    content.listResponseMessage?.title ||
    content.templateButtonReplyMessage?.selectedDisplayText ||
    ""
  );
}
