/**
 * Waiting for a proof: receipts of messages whose outcome is open. The receipts themselves arrive through `pump`; here
 * one only waits, with limits, and asks the shift.
 */
import type { Clock } from "./clock.js";
import type { Driver } from "./driver/port.js";
import { Interrupted, type Shift } from "./shift.js";

// Receipts need a connection. Without one for this long the outcome is called unknown; a receipt that comes later still
// corrects it.
export const RECONNECT_WAIT_MS = 60_000;
const LOOK_EVERY_MS = 250;

export interface Lookout {
  readonly shift: Shift;
  readonly driver: Driver;
  readonly clock: Clock;
  readonly keepLease: () => Promise<void>;
}

/**
 * Returns when all are proven or `unknownGraceMs` after the connection stands, whichever is first; at once when no
 * connection will ever stand again.
 */
export async function lookForReceipts(whatsappIds: readonly string[], out: Lookout): Promise<void> {
  const { shift, clock } = out;
  if (!(await connected(whatsappIds, out))) return;
  const untilMs = clock.nowMs() + shift.agreed.unknownGraceMs;
  while (clock.nowMs() < untilMs && !isOver(whatsappIds, shift)) {
    await moment(out);
    await clock.sleepMs(LOOK_EVERY_MS);
  }
}

async function connected(whatsappIds: readonly string[], out: Lookout): Promise<boolean> {
  const untilMs = out.clock.nowMs() + RECONNECT_WAIT_MS;
  while (!(await out.driver.waitConnected(LOOK_EVERY_MS))) {
    if (out.clock.nowMs() >= untilMs || isOver(whatsappIds, out.shift)) return false;
    await moment(out);
  }
  return true;
}

async function moment(out: Lookout): Promise<void> {
  if (out.shift.stopping) throw new Interrupted();
  await out.keepLease();
}

/** Whether waiting longer changes nothing: all are decided, or no word can come (banned, logged out, replaced). */
function isOver(whatsappIds: readonly string[], shift: Shift): boolean {
  return shift.endedForGood || whatsappIds.every((id) => shift.proven(id) || shift.refused(id) !== null);
}
