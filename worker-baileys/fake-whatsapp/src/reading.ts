/**
 * Reads a message as its recipients do: each copy with the Signal endpoint of the phone that it is for.
 *
 * The contact's copy is what counts. The own phone's copy must say the same (`deviceSentMessage`); if it does not, that
 * is an event of kind `copy-differs`, which no test should ever see.
 */

import { normalizeMessageContent, proto, unpadRandomMax16 } from "baileys";
import type { BinaryNode, MediaType } from "baileys";
import type { Context } from "./context.js";
import type { Device } from "./devices.js";
import type { Decrypted } from "./endpoint.js";
import { parseJid } from "./jids.js";
import type { LedgerLine } from "./ledger.js";
import { bytes, child, children } from "./nodes.js";

interface Content {
  text: string;
  mode: LedgerLine["mode"];
  mediaSha256: string | undefined;
}

export interface Reading extends Content {
  counterReused: boolean;
  undecryptable: boolean;
}

interface Copy {
  phone: string;
  message: proto.IMessage;
  counterReused: boolean;
}

const EMPTY: Content = { text: "", mode: undefined, mediaSha256: undefined };

export async function readMessage(context: Context, device: Device, to: string, stanza: BinaryNode): Promise<Reading> {
  const copies: Copy[] = [];
  for (const { jid, enc } of encryptedParts(stanza)) {
    const copy = await openCopy(context, device, jid, enc);
    if (copy) copies.push(copy);
  }
  const theirs = copies.find(({ phone }) => phone === to);
  const own = copies.find(({ phone }) => phone === device.phone && phone !== to);
  const ownContent = own?.message.deviceSentMessage?.message ?? undefined;
  const message = theirs?.message ?? ownContent;
  const found = message ? await contentOf(context, message) : EMPTY;
  if (theirs && own && textOf(normalizeMessageContent(ownContent)) !== found.text) {
    context.events.add("copy-differs", { id: stanza.attrs.id, phone: device.phone });
  }
  const addressed = encryptedParts(stanza).some(({ jid }) => parseJid(jid)?.phone === to);
  return { ...found, counterReused: theirs?.counterReused ?? false, undecryptable: addressed && !theirs };
}

/** One for each device in a fan-out; a message that was asked for again has a single one for its addressee. */
function encryptedParts(stanza: BinaryNode): { jid: string; enc: BinaryNode }[] {
  const parts = children(child(stanza, "participants"), "to").map((to) => ({
    jid: to.attrs.jid,
    enc: child(to, "enc"),
  }));
  parts.push({ jid: stanza.attrs.to, enc: child(stanza, "enc") });
  return parts.flatMap(({ jid, enc }) => (jid !== undefined && enc ? [{ jid, enc }] : []));
}

async function openCopy(context: Context, device: Device, jid: string, enc: BinaryNode): Promise<Copy | undefined> {
  const address = parseJid(jid);
  if (!address) return undefined;
  try {
    const endpoint = context.phones.endpoint(address.phone);
    const opened: Decrypted = await endpoint.decrypt(device.address, { type: enc.attrs.type ?? "", bytes: bytes(enc) });
    const message = proto.Message.decode(unpadRandomMax16(opened.plaintext));
    return { phone: address.phone, message, counterReused: opened.counterReused };
  } catch (error) {
    context.events.add("undecryptable", { jid, from: device.jid, error: (error as Error).message });
    return undefined;
  }
}

async function contentOf(context: Context, message: proto.IMessage): Promise<Content> {
  const content = normalizeMessageContent(message);
  const [type, media] = mediaOf(content);
  if (!type || !media) return { ...EMPTY, text: textOf(content) };
  const { fileEncSha256, mediaKey } = media;
  const digest = fileEncSha256 && mediaKey ? await context.media.digest(fileEncSha256, mediaKey, type) : undefined;
  const mode = type === "image" || type === "document" ? type : "other";
  return { text: textOf(content), mode, mediaSha256: digest };
}

interface Media {
  fileEncSha256?: Uint8Array | null;
  mediaKey?: Uint8Array | null;
}

function mediaOf(content: proto.IMessage | undefined): [MediaType, Media] | [undefined, undefined] {
  if (content?.imageMessage) return ["image", content.imageMessage];
  if (content?.documentMessage) return ["document", content.documentMessage];
  if (content?.videoMessage) return ["video", content.videoMessage];
  if (content?.audioMessage) return ["audio", content.audioMessage];
  return [undefined, undefined];
}

function textOf(content: proto.IMessage | undefined): string {
  return (
    content?.conversation ||
    content?.extendedTextMessage?.text ||
    content?.imageMessage?.caption ||
    content?.documentMessage?.caption ||
    content?.videoMessage?.caption ||
    ""
  );
}
