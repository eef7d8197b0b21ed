/**
 * Stanzas that Baileys leaves to us. Mostly reading what the server says of our messages, straight from its nodes.
 * Baileys' own events come late (they are buffered, sometimes for seconds) or not at all (a good ack has none).
 */
import {
  areJidsSameUser,
  assertNodeErrorFree,
  type BinaryNode,
  getBinaryNodeChild,
  getBinaryNodeChildren,
  isLidUser,
} from "baileys";
import type { ReceiptKind } from "../book.js";

export interface Me {
  readonly id: string;
  readonly lid?: string | undefined;
}

export interface Ack {
  readonly whatsappId: string;
  /** The number of the nack; null if the server took the message. */
  readonly nack: string | null;
}

export function ackOf(node: BinaryNode): Ack | null {
  const { id, error } = node.attrs;
  return id ? { whatsappId: id, nack: error ?? null } : null;
}

export interface ReceiptNode {
  readonly whatsappIds: readonly string[];
  /** Null: it says only that the server has the message (a copy on our own phone, a device that could not read it). */
  readonly receipt: ReceiptKind | null;
}

/**
 * By message id alone: the address of a receipt may be a number or its LID. Null for one that says nothing of a
 * message.
 */
export function receiptOf(node: BinaryNode, me: Me): ReceiptNode | null {
  const { id, from = "", participant, type } = node.attrs;
  if (!id) return null;
  const who = participant ?? from;
  const isOwn = areJidsSameUser(who, isLidUser(who) ? me.lid : me.id);
  const list = Array.isArray(node.content) ? node.content[0] : undefined;
  const others = getBinaryNodeChildren(list, "item").map((item) => item.attrs["id"] ?? "");
  const whatsappIds = [id, ...others].filter(Boolean);
  switch (type) {
    case undefined:
    case "":
    case "inactive":
      return { whatsappIds, receipt: isOwn ? null : "delivered" };
    case "read":
    case "played":
      return isOwn ? null : { whatsappIds, receipt: "read" };
    case "sender":
    case "retry":
      return { whatsappIds, receipt: null };
    default:
      return null;
  }
}

/**
 * What the answer to a question for one number says: its address, "" if it is not on WhatsApp, null if there is not a
 * word on it. Throws the server's error, which may stand beside the list as well as in it.
 */
export function addressIn(answer: BinaryNode | undefined): string | null {
  const usync = getBinaryNodeChild(answer, "usync");
  const user = getBinaryNodeChild(getBinaryNodeChild(usync, "list"), "user");
  const contact = getBinaryNodeChild(user, "contact");
  for (const node of [getBinaryNodeChild(getBinaryNodeChild(usync, "result"), "contact"), contact]) {
    if (node) assertNodeErrorFree(node);
  }
  switch (contact?.attrs["type"]) {
    case "in":
      return user?.attrs["jid"] ?? null;
    case "out":
    case "invalid":
      return "";
    default:
      return null;
  }
}

/** Notifications by which the server says that linking this account needs a passkey, which no program has. */
const PASSKEY_NOTIFICATIONS = new Set(["passkey_prologue_request", "crsc_continuation"]);

export function wantsPasskey(node: BinaryNode): boolean {
  return PASSKEY_NOTIFICATIONS.has(node.attrs["type"] ?? "");
}

/** Asks the server to take this device off the account. Its answer confirms the logout. */
export function removalOf(jid: string): BinaryNode {
  const removal = { tag: "remove-companion-device", attrs: { jid, reason: "user_initiated" } };
  return { tag: "iq", attrs: { to: "@s.whatsapp.net", type: "set", xmlns: "md" }, content: [removal] };
}
