/**
 * WhatsApp's own limits on starting chats: the reach-out time lock and the quota of new chats.
 *
 * Clients ask for both over `w:mex` (GraphQL in an iq) and are told of changes by a notification; a message that would
 * start a chat against them is refused with 463. Chats that exist go on, also while a lock holds.
 */

import type { BinaryNode } from "baileys";
import type { NewChatQuota, TimeLock } from "./behaviour.js";
import type { Context } from "./context.js";
import type { Device } from "./devices.js";
import { child, iqError, iqResult, node, SERVER_JID, text } from "./nodes.js";

/** The library's ids of the two queries. */
const TIME_LOCK_QUERY = "23983697327930364";
const QUOTA_QUERY = "24503548349331633";
const ACCOUNT_RESTRICTED = 463;

/** 463 if this message may not start a chat now. */
export function refusedByLimits(context: Context, phone: string, to: string): number | undefined {
  if (context.ledger.knowsChat(phone, to)) return undefined;
  const { timeLock, newChatQuota } = context.behaviours.for(phone);
  const locked = timeLock?.enforce && isLocked(timeLock);
  const capped = newChatQuota?.enforce && status(context, phone, newChatQuota) === "CAPPED";
  return locked || capped ? ACCOUNT_RESTRICTED : undefined;
}

export function answerMex(context: Context, device: Device, iq: BinaryNode): BinaryNode {
  const query = child(iq, "query");
  const { timeLock, newChatQuota } = context.behaviours.for(device.phone);
  switch (query?.attrs.query_id) {
    case TIME_LOCK_QUERY:
      return data(iq, { xwa2_fetch_account_reachout_timelock: timeLockFields(timeLock) });
    case QUOTA_QUERY:
      if (!text(query).includes("INDIVIDUAL_NEW_CHAT_MSG")) return iqError(iq, 400, "bad-request");
      return data(iq, { xwa2_message_capping_info: quotaFields(context, device.phone, newChatQuota) });
    default:
      return data(iq, {});
  }
}

/** Tell the devices of a phone, or all, what their limits are now. */
export function announceLimits(context: Context, phone: string | undefined, changed: Record<string, unknown>): void {
  const devices = phone === undefined ? context.devices.list() : context.devices.ofPhone(phone);
  for (const device of devices) {
    const { timeLock, newChatQuota } = context.behaviours.for(device.phone);
    if ("timeLock" in changed) {
      notify(device, "NotificationUserReachoutTimelockUpdate", {
        xwa2_notify_account_reachout_timelock: timeLockFields(timeLock),
      });
    }
    if ("newChatQuota" in changed) {
      notify(device, "MessageCappingInfoNotification", {
        xwa2_notify_new_chat_messages_capping_info_update: quotaFields(context, device.phone, newChatQuota),
      });
    }
  }
}

function isLocked(lock: TimeLock): boolean {
  return lock.active && (lock.endsAtMs === null || lock.endsAtMs > Date.now());
}

function timeLockFields(lock: TimeLock | null): Record<string, unknown> {
  if (!lock || !isLocked(lock)) return { is_active: false, time_enforcement_ends: "0", enforcement_type: "DEFAULT" };
  const ends = lock.endsAtMs === null ? {} : { time_enforcement_ends: seconds(lock.endsAtMs) };
  return { is_active: true, enforcement_type: lock.enforcementType, ...ends };
}

function quotaFields(context: Context, phone: string, quota: NewChatQuota | null): Record<string, unknown> {
  const served = { server_sent_timestamp: seconds(Date.now()), ote_status: "NOT_ELIGIBLE", mv_status: "NOT_ELIGIBLE" };
  if (!quota) return { ...served, capping_status: "NONE" };
  return {
    ...served,
    total_quota: quota.total,
    used_quota: used(context, phone, quota),
    capping_status: status(context, phone, quota),
    ...(quota.cycleEndsAtMs === null ? {} : { cycle_end_timestamp: seconds(quota.cycleEndsAtMs) }),
  };
}

function used(context: Context, phone: string, quota: NewChatQuota): number {
  return quota.used ?? context.ledger.chatsStarted(phone);
}

function status(context: Context, phone: string, quota: NewChatQuota): string {
  return quota.status ?? (used(context, phone, quota) >= quota.total ? "CAPPED" : "NONE");
}

function seconds(atMs: number): string {
  return String(Math.floor(atMs / 1000));
}

function data(iq: BinaryNode, fields: Record<string, unknown>): BinaryNode {
  return iqResult(iq, [node("result", {}, Buffer.from(JSON.stringify({ data: fields })))]);
}

function notify(device: Device, operation: string, fields: Record<string, unknown>): void {
  const connection = device.connection;
  if (!connection?.active) return;
  const update = node("update", { op_name: operation }, Buffer.from(JSON.stringify({ data: fields })));
  connection.send(node("notification", { from: SERVER_JID, type: "mex", id: connection.newId() }, [update]));
}
