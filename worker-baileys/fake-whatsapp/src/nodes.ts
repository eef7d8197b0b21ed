/**
 * Small helpers to build and read binary nodes, the "XML" of WhatsApp's wire.
 *
 * The encoding itself is the library's (`encodeBinaryNode`, `decodeBinaryNode`); every module that talks to a device
 * builds its stanzas with these. Attribute values are strings only: anything else corrupts the encoded list.
 */

import type { BinaryNode } from "baileys";

/** The server's own address: a jid with an empty user. */
export const SERVER_JID = "@s.whatsapp.net";

type Attributes = Record<string, string | undefined>;

/** A node; attributes that are undefined are left out. */
export function node(tag: string, attributes: Attributes = {}, content?: BinaryNode["content"]): BinaryNode {
  const attrs: Record<string, string> = {};
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined) attrs[name] = value;
  }
  return content === undefined ? { tag, attrs } : { tag, attrs, content };
}

export function children(parent: BinaryNode | undefined, tag?: string): BinaryNode[] {
  if (!parent || !Array.isArray(parent.content)) return [];
  return tag === undefined ? parent.content : parent.content.filter((one) => one.tag === tag);
}

export function child(parent: BinaryNode | undefined, tag: string): BinaryNode | undefined {
  return children(parent, tag)[0];
}

/** The content as bytes. The decoder gives text back where the encoder found a shorter form for it. */
export function bytes(one: BinaryNode | undefined): Buffer {
  if (one?.content instanceof Uint8Array) return Buffer.from(one.content);
  if (typeof one?.content === "string") return Buffer.from(one.content);
  return Buffer.alloc(0);
}

export function text(one: BinaryNode | undefined): string {
  return bytes(one).toString("utf8");
}

/** A number as the wire has it: big-endian, in as many bytes as the field takes. */
export function bigEndian(value: number, lengthBytes: number): Buffer {
  const buffer = Buffer.alloc(lengthBytes);
  buffer.writeUIntBE(value, 0, lengthBytes);
  return buffer;
}

export function iqResult(request: BinaryNode, content?: BinaryNode[]): BinaryNode {
  return node("iq", { from: SERVER_JID, type: "result", id: request.attrs.id }, content);
}

export function iqError(request: BinaryNode, code: number, reason: string): BinaryNode {
  const error = node("error", { code: String(code), text: reason });
  return node("iq", { from: SERVER_JID, type: "error", id: request.attrs.id }, [error]);
}

export function nowSeconds(): string {
  return String(Math.floor(Date.now() / 1000));
}
