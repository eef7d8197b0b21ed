/**
 * The worker protocol as the worker sees it: the port, its messages, and its errors. `protocol-http.ts` speaks it; the
 * other side is `paceline.orchestrator.protocol`.
 *
 *     ProtocolError
 *     ├── Unavailable       no usable answer (network, timeout, 408, 429, 5xx, somebody else's): ask again later
 *     │   └── Blocked       a 4xx of something in between: it may be about this one request
 *     ├── StaleEpoch        409 STALE_EPOCH: another instance took over
 *     ├── NotWanted         409 NOT_WANTED: this instance is not the one that should run
 *     └── RequestRefused    any other 4xx of the orchestrator itself: asking again will not help
 */
import type { SendError } from "./failures.js";

export const CLAIM_TIMEOUT_SECONDS = 20;
/** So often is a page of something in between taken for an outage that passes: some seconds. */
export const BLOCKED_TRIES = 5;

export class ProtocolError extends Error {}

/** `maybeDone` is false only if the request certainly never arrived. */
export class Unavailable extends ProtocolError {
  constructor(
    reason: string,
    readonly maybeDone = true,
  ) {
    super(reason);
  }
}

/** Something in between (a firewall, a proxy) did not let this request through. Others it may let through. */
export class Blocked extends Unavailable {}

export class StaleEpoch extends ProtocolError {}
export class NotWanted extends ProtocolError {}

export class RequestRefused extends ProtocolError {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(`${status} ${code}: ${message}`);
  }

  /** Our secret is refused, not what we said: it has been heard by nobody, and waits for who has the right one. */
  get isAboutUs(): boolean {
    return this.status === 401 || this.status === 403;
  }
}

/** A task that this session claimed under an earlier epoch and never answered for. */
export interface PendingTask {
  readonly taskId: string;
  readonly token: string;
  readonly whatsappId: string;
  readonly to: string;
}

/** What an operator wants of this session beside sending: pair, scan or logout. It may come more than once. */
export interface Command {
  readonly id: string;
  readonly kind: string;
  readonly until?: number;
}

/** The terms of this life of the worker. */
export interface HelloAnswer {
  readonly epoch: number;
  readonly nowMs: number;
  readonly leaseMs: number;
  readonly typing: { readonly minMs: number; readonly maxMs: number };
  readonly unknownGraceMs: number;
  readonly pending: readonly PendingTask[];
  readonly commands?: readonly Command[];
}

export interface ClaimedTask {
  readonly taskId: string;
  readonly to: string;
  readonly text: string;
  readonly whatsappId: string;
  readonly attempt: number;
  readonly sendAfterMs: number;
  readonly sendBeforeMs: number;
  readonly leaseUntilMs: number;
  readonly resend?: boolean;
  /** The `X-Request-Id` of the request that was accepted, for the log. */
  readonly requestId?: string;
  readonly mode?: string;
  readonly mediaRef?: string;
  readonly mediaType?: string;
  readonly mediaSize?: number;
  readonly mediaName?: string;
}

export interface ClaimAnswer {
  readonly nowMs: number;
  /** How long the orchestrator had let us wait by then. */
  readonly waitedMs?: number;
  readonly task?: ClaimedTask | null;
  readonly raw?: string | null;
  /** What we hold by the orchestrator's books although we are asking for work; answered for as after a `hello`. */
  readonly pending?: readonly PendingTask[];
  readonly commands?: readonly Command[];
}

/** A task named by the opaque string that came with its claim, or as in `pending`. */
export type ByRaw = { readonly raw: string };
export type Handle = ByRaw | { readonly taskId: string; readonly token: string };

/** One webhook. The same fact always has the same `eventId`. */
export interface WorkerEvent {
  readonly sessionId: string;
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly timestamp: number;
  readonly eventId: string;
}

/** What the orchestrator offers a worker. Every call may throw any `ProtocolError`. */
export interface WorkerProtocol {
  hello(who: { instanceId: string; lifeId: string; journalId: string; driver: string }): Promise<HelloAnswer>;
  /** Waits up to CLAIM_TIMEOUT_SECONDS for a task. `commandsOnly` waits for nothing and takes none. */
  claim(epoch: number, commandsOnly?: boolean): Promise<ClaimAnswer>;
  ack(handle: Handle, epoch: number, whatsappId: string): Promise<void>;
  nack(handle: Handle, epoch: number, notSent: boolean, error?: SendError): Promise<void>;
  /** The new end of the lease, in server time. */
  extend(handle: ByRaw, epoch: number): Promise<number>;
  /** The file of a task that we hold; no more than `size` bytes of it. */
  media(ref: string, size: number): Promise<Buffer>;
  webhook(event: WorkerEvent): Promise<void>;
}
