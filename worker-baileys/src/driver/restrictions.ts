/**
 * The platform's own limits, as it states them: the reach-out time lock and the cap on new chats. Asked for once a
 * connection stands and after a 463, and heard when the server tells a change. `NONE` is told only where we told a
 * limit before: silence of a query is no word that a limit is over.
 */
import type { NewChatMessageCapInfo, ReachoutTimelockState } from "baileys";
import { log } from "../log.js";
import type { RestrictionKind } from "./port.js";

export interface Limits {
  fetchAccountReachoutTimelock(): Promise<ReachoutTimelockState>;
  fetchNewChatMessageCap(): Promise<unknown>;
}

export type TellRestriction = (restriction: RestrictionKind, untilMs: number | null) => void;

// What WhatsApp's own client assumes for a lock without an end.
const UNSTATED_LOCK_MS = 60_000;
// A time before this (September 2001) was given in seconds.
const FIRST_MS = 1_000_000_000_000;
// The orchestrator takes a limit of more than 366 days for a mistake.
const LONGEST_MS = 365 * 24 * 3600 * 1000;

export class Restrictions {
  #lockedUntilMs = 0;
  #cappedUntilMs = 0;
  #told = "";

  constructor(
    private readonly tell: TellRestriction,
    private readonly nowMs: () => number = Date.now,
  ) {}

  /**
   * Asks for both limits. Each answer counts when it comes: held back until the other is there, it would undo
   * what the platform said in between. One that is not answered stays as it was.
   */
  async ask(limits: Limits): Promise<void> {
    await Promise.all([
      limits.fetchAccountReachoutTimelock().then(
        (lock) => this.hearLock(lock),
        (reason: unknown) => log.debug("the time lock was not told", { reason: String(reason) }),
      ),
      limits.fetchNewChatMessageCap().then(
        (cap) => this.hearCap(cap),
        (reason: unknown) => log.debug("the new-chat cap was not told", { reason: String(reason) }),
      ),
    ]);
  }

  hearLock(lock: ReachoutTimelockState): void {
    this.#noteLock(lock);
    this.#say();
  }

  hearCap(cap: unknown): void {
    this.#noteCap(cap);
    this.#say();
  }

  #noteLock(lock: ReachoutTimelockState): void {
    const endsMs = lock.timeEnforcementEnds?.getTime();
    this.#lockedUntilMs = lock.isActive ? (endsMs ?? this.nowMs() + UNSTATED_LOCK_MS) : 0;
  }

  #noteCap(value: unknown): void {
    const cap = (value ?? {}) as NewChatMessageCapInfo;
    const isUsedUp = Number(cap.total_quota) > 0 && Number(cap.used_quota) >= Number(cap.total_quota);
    const endsMs = inMs(Number(cap.cycle_end_timestamp));
    this.#cappedUntilMs = String(cap.capping_status) === "CAPPED" || isUsedUp ? endsMs : 0;
  }

  /** The lock before the cap, each change once. */
  #say(): void {
    const nowMs = this.nowMs();
    const [kind, untilMs]: [RestrictionKind, number | null] =
      this.#lockedUntilMs > nowMs
        ? ["TIME_LOCKED", Math.min(this.#lockedUntilMs, nowMs + LONGEST_MS)]
        : this.#cappedUntilMs > nowMs
          ? ["CAPPED", Math.min(this.#cappedUntilMs, nowMs + LONGEST_MS)]
          : ["NONE", null];
    const said = `${kind} ${untilMs ?? ""}`;
    if (said === this.#told || (kind === "NONE" && this.#told === "")) return;
    this.#told = said;
    this.tell(kind, untilMs);
  }
}

function inMs(time: number): number {
  if (!Number.isFinite(time) || time <= 0) return 0;
  return time < FIRST_MS ? time * 1_000 : time;
}
