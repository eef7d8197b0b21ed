/**
 * The platform's own limits, as it states them: the reach-out time lock and the cap on new chats. Asked for once a
 * connection stands and after a 463, and heard when the server tells a change. The two stand side by side, so each is
 * told by itself: its beginning with its end, its lifting with a time that is past, and `NONE` when it was the last.
 * A lifting is told only where we told that limit before: silence of a query is no word that a limit is over.
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
// Past by any clock.
const LONG_PAST_MS = FIRST_MS + 1;

type Limit = Exclude<RestrictionKind, "NONE">;

export class Restrictions {
  /** The end of each limit that we told and have not told to be lifted. */
  readonly #told = new Map<Limit, number>();

  constructor(
    private readonly tell: TellRestriction,
    /** The orchestrator's time: by its clock a limit begins and ends. */
    private readonly nowMs: () => number,
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
    const endsMs = lock.timeEnforcementEnds?.getTime();
    // WhatsApp states whole seconds; a fraction is the library's own guess, by the clock of this host.
    const isStated = endsMs !== undefined && endsMs % 1_000 === 0;
    this.#hear("TIME_LOCKED", lock.isActive ? (isStated ? endsMs : this.nowMs() + UNSTATED_LOCK_MS) : 0);
  }

  hearCap(value: unknown): void {
    const cap = (value ?? {}) as NewChatMessageCapInfo;
    const isUsedUp = Number(cap.total_quota) > 0 && Number(cap.used_quota) >= Number(cap.total_quota);
    const endsMs = inMs(Number(cap.cycle_end_timestamp));
    this.#hear("CAPPED", String(cap.capping_status) === "CAPPED" || isUsedUp ? endsMs : 0);
  }

  /** Each change once. */
  #hear(limit: Limit, endsMs: number): void {
    const nowMs = this.nowMs();
    if (endsMs <= nowMs) return this.#lift(limit, nowMs);
    const untilMs = Math.min(endsMs, nowMs + LONGEST_MS);
    if (untilMs === this.#told.get(limit)) return;
    this.#told.set(limit, untilMs);
    this.tell(limit, untilMs);
  }

  #lift(limit: Limit, nowMs: number): void {
    if (!this.#told.delete(limit)) return;
    const isLimited = [...this.#told.values()].some((untilMs) => untilMs > nowMs);
    if (isLimited) this.tell(limit, LONG_PAST_MS);
    else this.tell("NONE", null);
  }
}

function inMs(time: number): number {
  if (!Number.isFinite(time) || time <= 0) return 0;
  return time < FIRST_MS ? time * 1_000 : time;
}
