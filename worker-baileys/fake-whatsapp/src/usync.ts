/**
 * `usync`, the query for who is on WhatsApp, with which devices and under which lid.
 *
 * A number that is not on WhatsApp, and one that is known there under another form, has no devices under the name that
 * was asked: a sender that skips the check writes to nobody, as on the real platform.
 */

import type { BinaryNode } from "baileys";
import type { Context } from "./context.js";
import type { Device } from "./devices.js";
import { lidJid, parseJid, phoneJid } from "./jids.js";
import { child, children, iqResult, node, text } from "./nodes.js";

export function answerUsync(context: Context, device: Device, iq: BinaryNode): BinaryNode {
  const usync = child(iq, "usync");
  const asked = new Set(children(child(usync, "query")).map(({ tag }) => tag));
  const users = children(child(usync, "list"), "user").map((user) => {
    const number = text(child(user, "contact")).replace(/^\+/, "");
    return number === "" ? byJid(context, user.attrs.jid ?? "", asked) : byNumber(context, number);
  });
  context.events.add("usync", { phone: device.phone, users: users.length, asked: [...asked].join(" ") });
  return iqResult(iq, [node("usync", {}, [node("result"), node("list", {}, users)])]);
}

function byNumber(context: Context, number: string): BinaryNode {
  const canonical = context.phones.canonical(number);
  const contact = node("contact", { type: canonical === undefined ? "out" : "in" });
  return node("user", { jid: phoneJid(canonical ?? number) }, [contact]);
}

function byJid(context: Context, jid: string, asked: Set<string>): BinaryNode {
  const address = parseJid(jid);
  const reachable = address !== undefined && context.phones.reachable(address.phone);
  const answers: BinaryNode[] = [];
  if (asked.has("devices")) {
    // Linked devices of others are left out: the phone alone stands for the contact.
    const list = reachable ? [node("device", { id: "0" })] : [];
    answers.push(node("devices", {}, [node("device-list", {}, list)]));
  }
  if (asked.has("lid") && reachable && !address.isLid) answers.push(node("lid", { val: lidJid(address.phone) }));
  return node("user", { jid }, answers);
}
