/**
 * A message from a device: refuse it or accept it, write it in the ledger, ack it, and let the contact's receipts follow.
 *
 * `reading.ts` decrypts; this module decides. The order is the one that matters to a sender: the line is in the ledger
 * before the ack leaves, and the ack leaves before a receipt does.
 */

import type { BinaryNode } from "baileys";
import { act } from "./behaviour.js";
import type { Nack } from "./behaviour.js";
import type { Connection } from "./connection.js";
import type { Context } from "./context.js";
import type { Device } from "./devices.js";
import { lidJid, parseJid, phoneJid } from "./jids.js";
import type { LedgerLine } from "./ledger.js";
import { refusedByLimits } from "./limits.js";
import { bytes, child, children, node, nowSeconds } from "./nodes.js";
import { readMessage } from "./reading.js";
import type { Reading } from "./reading.js";

/** How many messages each `every` rule has seen. */
const seenBy = new WeakMap<Nack, number>();

export async function receiveMessage(context: Context, connection: Connection, stanza: BinaryNode): Promise<void> {
  const { behaviours, events } = context;
  const device = connection.device;
  const to = parseJid(stanza.attrs.to)?.phone;
  if (!device) return;
  // Groups, and peer messages to the own phone (requests for app state): accepted, and nobody's concern here.
  if (to === undefined || stanza.attrs.category === "peer") return connection.send(ack(stanza));
  const id = stanza.attrs.id ?? "";
  if (behaviours.takeOne("cutBeforeAccept", device.phone)) {
    events.add("cut-before-accept", { id, phone: device.phone });
    return connection.cut();
  }
  const code = refusal(context, device, to);
  if (code !== undefined) {
    events.add("refused", { id, phone: device.phone, to, code });
    const { ackDelayMs } = behaviours.for(device.phone);
    return context.timers.after(ackDelayMs, () => connection.send(ack(stanza, code)));
  }
  const reading = await readMessage(context, device, to, stanza);
  const line = context.ledger.append(ledgerLine(context, device, to, id, reading));
  answer(context, connection, device, stanza, line);
  await passOn(context, device, line);
}

/** To a number that is itself linked here. The real sender encrypts for its devices too; here the sender's phone does. */
async function passOn(context: Context, device: Device, line: LedgerLine): Promise<void> {
  if (line.to === device.phone || line.repeat || line.counterReused || line.undecryptable) return;
  if (context.devices.ofPhone(line.to).length > 0) {
    await context.inbound.write(device.phone, line.to, line.text, line.whatsappId);
  }
}

function answer(context: Context, connection: Connection, device: Device, stanza: BinaryNode, line: LedgerLine): void {
  const { behaviours, events, timers, random } = context;
  const { ackDelayMs, loseAckRatio } = behaviours.for(device.phone);
  const { whatsappId: id, to } = line;
  if (behaviours.takeOne("cutAfterAccept", device.phone)) {
    events.add("cut-after-accept", { id, phone: device.phone });
    connection.cut();
  } else if (behaviours.takeOne("loseAcks", device.phone) || random() < loseAckRatio) {
    events.add("ack-lost", { id, phone: device.phone });
  } else {
    timers.after(ackDelayMs, () => connection.send(ack(stanza)));
  }
  if (line.noRecipient || line.counterReused) return;
  timers.after(ackDelayMs, () => {
    if (line.undecryptable) askAgain(context, device, to, id);
    else sendReceipts(context, device, to, id);
  });
}

function refusal(context: Context, device: Device, to: string): number | undefined {
  const rule = context.behaviours.for(device.phone).nacks.find((one) => matches(one, to, context.random) && act(one));
  return rule?.code ?? refusedByLimits(context, device.phone, to);
}

function matches(rule: Nack, to: string, random: () => number): boolean {
  if (rule.to !== null && rule.to !== to) return false;
  if (rule.ratio !== null && random() >= rule.ratio) return false;
  if (rule.every === null) return true;
  const seen = (seenBy.get(rule) ?? 0) + 1;
  seenBy.set(rule, seen);
  return seen % rule.every === 0;
}

function ledgerLine(context: Context, device: Device, to: string, id: string, reading: Reading): LedgerLine {
  return {
    at: Date.now(),
    sessionId: device.stored.sessionId || device.jid,
    to,
    whatsappId: id,
    taskId: "",
    text: reading.text,
    ...(reading.mode && { mode: reading.mode }),
    ...(reading.mediaSha256 !== undefined && { mediaSha256: reading.mediaSha256 }),
    phone: device.phone,
    ...(!context.phones.reachable(to) && { noRecipient: true as const }),
    ...(reading.counterReused && { counterReused: true as const }),
    ...(reading.undecryptable && { undecryptable: true as const }),
  };
}

function ack(stanza: BinaryNode, error?: number): BinaryNode {
  return node("ack", {
    class: "message",
    id: stanza.attrs.id,
    from: stanza.attrs.to,
    t: nowSeconds(),
    error: error === undefined ? undefined : String(error),
  });
}

/** The contact's phone gets it, and its owner reads it, each as often and as late as told. */
function sendReceipts(context: Context, device: Device, to: string, id: string): void {
  const { behaviours, events, outbox, timers, random } = context;
  const { deliveredDelayMs, deliveredRatio, readDelayMs, readRatio } = behaviours.for(device.phone);
  const from = receiptJid(context, device, to);
  if (random() >= deliveredRatio) return;
  timers.after(deliveredDelayMs, () => {
    events.add("delivered", { id });
    outbox.deliver(device, node("receipt", { from, id, t: nowSeconds() }));
    if (random() >= readRatio) return;
    timers.after(readDelayMs, () => {
      events.add("read", { id });
      outbox.deliver(device, node("receipt", { from, id, t: nowSeconds(), type: "read" }));
    });
  });
}

/** The contact could not decrypt it: a retry receipt with fresh keys, on which the library sends the same id again. */
function askAgain(context: Context, device: Device, to: string, id: string): void {
  if (!context.behaviours.for(device.phone).retryReceipts) return;
  context.events.add("retry-asked", { id, phone: device.phone, to });
  const bundle = context.phones.endpoint(to).bundleNode(lidJid(to));
  const keys = children(bundle).filter(({ tag }) => tag !== "registration");
  const from = receiptJid(context, device, to);
  const receipt = node("receipt", { from, id, t: nowSeconds(), type: "retry" }, [
    node("retry", { count: "1", id, t: nowSeconds(), v: "1" }),
    node("registration", {}, bytes(child(bundle, "registration"))),
    node("keys", {}, keys),
  ]);
  context.outbox.deliver(device, receipt);
}

function receiptJid(context: Context, device: Device, to: string): string {
  return context.behaviours.for(device.phone).receiptsFrom === "lid" ? lidJid(to) : phoneJid(to);
}
