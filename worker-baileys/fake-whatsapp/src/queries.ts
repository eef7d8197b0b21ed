/**
 * Queries (`iq`) of a client and their answers, one entry per namespace.
 *
 * Every query is answered: a client waits a minute for one that is not. What this server has no opinion on gets an
 * empty result. Faults told by `queryFaults` come first.
 */

import type { BinaryNode } from "baileys";
import { act } from "./behaviour.js";
import type { Connection } from "./connection.js";
import type { Context } from "./context.js";
import type { Device } from "./devices.js";
import { parseJid } from "./jids.js";
import { answerMex } from "./limits.js";
import { child, children, iqError, iqResult, node } from "./nodes.js";
import { answerUsync } from "./usync.js";

const MEDIA_TTL_SECONDS = 3600;

type Answer = (context: Context, device: Device, iq: BinaryNode) => BinaryNode;

const ANSWERS: Record<string, Answer> = {
  usync: (context, device, iq) => answerUsync(context, device, iq),
  encrypt: answerEncrypt,
  "w:m": answerMediaConnection,
  "w:mex": answerMex,
  "w:sync:app:state": answerAppState,
  abt: (_context, _device, iq) => iqResult(iq, [node("props", { hash: "fake" })]),
  blocklist: (_context, _device, iq) => iqResult(iq, [node("list")]),
  privacy: answerPrivacy,
};

/** Answer, now or later, or not at all. */
export function answerQuery(context: Context, connection: Connection, device: Device, iq: BinaryNode): void {
  const xmlns = iq.attrs.xmlns ?? "";
  context.events.add(`query ${xmlns}`, { phone: device.phone, child: children(iq)[0]?.tag });
  const fault = context.behaviours.for(device.phone).queryFaults.find((one) => one.xmlns === xmlns && act(one));
  if (fault?.kind === "silent") return;
  if (fault?.kind === "error") return connection.send(iqError(iq, fault.code, fault.text));
  if (fault?.kind === "empty") return connection.send(iqResult(iq));
  const answer = ANSWERS[xmlns]?.(context, device, iq) ?? iqResult(iq);
  context.timers.after(fault?.delayMs ?? 0, () => connection.send(answer));
}

/** Pre-keys: how many are left, the upload of new ones, and those of others. */
function answerEncrypt(context: Context, device: Device, iq: BinaryNode): BinaryNode {
  if (iq.attrs.type === "set") {
    if (child(iq, "rotate")) device.rotateSignedPreKey(iq);
    else device.uploadPreKeys(iq);
    return iqResult(iq);
  }
  if (child(iq, "count")) {
    const told = context.behaviours.for(device.phone).preKeyCount ?? device.preKeyCount;
    return iqResult(iq, [node("count", { value: String(told) })]);
  }
  if (child(iq, "digest")) return iqResult(iq, [node("digest")]);
  const bundles = children(child(iq, "key"), "user").flatMap(({ attrs }) => {
    const address = parseJid(attrs.jid);
    if (!address || address.device !== 0 || !context.phones.reachable(address.phone)) return [];
    return [context.phones.endpoint(address.phone).bundleNode(attrs.jid ?? "")];
  });
  return iqResult(iq, [node("list", {}, bundles)]);
}

function answerMediaConnection(context: Context, device: Device, iq: BinaryNode): BinaryNode {
  const hosts = context.behaviours.for(device.phone).mediaHosts ?? [context.mediaHost];
  const attributes = { auth: "fake-auth", ttl: String(MEDIA_TTL_SECONDS) };
  const hostNodes = hosts.map((hostname) => node("host", { hostname }));
  return iqResult(iq, [node("media_conn", attributes, hostNodes)]);
}

/** No patches: every collection is up to date. */
function answerAppState(_context: Context, _device: Device, iq: BinaryNode): BinaryNode {
  const collections = children(child(iq, "sync"), "collection").map(({ attrs }) =>
    node("collection", { name: attrs.name, version: attrs.version ?? "0" }),
  );
  return iqResult(iq, [node("sync", {}, collections)]);
}

function answerPrivacy(_context: Context, _device: Device, iq: BinaryNode): BinaryNode {
  if (iq.attrs.type === "set") return iqResult(iq);
  const categories = ["readreceipts", "profile", "status", "online", "last", "groupadd"].map((name) =>
    node("category", { name, value: "all" }),
  );
  return iqResult(iq, [node("privacy", {}, categories)]);
}
