/** Messages from people: who wrote, and the words. Groups, broadcasts, channels and our own messages are left out. */
import { extractMessageContent, isLidUser, isPnUser, jidDecode, toNumber, type WAMessage } from "baileys";

export interface Inbound {
  readonly sender: string;
  readonly text: string;
  readonly whatsappId: string;
  readonly atMs: number;
}

export type NumberOf = (lid: string) => Promise<string | null>;

/** Null for what is no message of a person to us. */
export async function inboundOf(message: WAMessage, numberOf: NumberOf): Promise<Inbound | null> {
  const { key } = message;
  const content = extractMessageContent(message.message);
  const jid = key.remoteJid ?? "";
  if (key.fromMe || !key.id || !content || (!isPnUser(jid) && !isLidUser(jid))) return null;
  if (content.protocolMessage || content.senderKeyDistributionMessage || content.reactionMessage) return null;
  const alternative = key.remoteJidAlt ?? "";
  const number = isPnUser(jid) ? jid : isPnUser(alternative) ? alternative : ((await numberOf(jid)) ?? jid);
  return {
    sender: isPnUser(number) ? (jidDecode(number)?.user ?? number) : number,
    text: textOf(content),
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
