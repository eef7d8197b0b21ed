/**
 * What happened, for tests that must see more than the ledger: connections, logins, pairings, typing, queries.
 *
 * A bounded list; `GET /events?after=` reads it. Counters of the same names are in `GET /stats`.
 */

import { Recent } from "./recent.js";

/** Enough for any test; older events fall out. */
const EVENT_LIMIT = 20_000;

export interface FakeEvent {
  at: number;
  kind: string;
  [detail: string]: unknown;
}

export class EventLog {
  private readonly recent = new Recent<FakeEvent>(EVENT_LIMIT);
  readonly counts: Record<string, number> = {};

  add(kind: string, details: Record<string, unknown> = {}): void {
    this.counts[kind] = (this.counts[kind] ?? 0) + 1;
    this.recent.add({ at: Date.now(), kind, ...details });
  }

  after(index: number): { events: FakeEvent[]; next: number } {
    const { entries, next } = this.recent.after(index);
    return { events: entries, next };
  }

  clear(): void {
    this.recent.clear();
    for (const kind of Object.keys(this.counts)) delete this.counts[kind];
  }
}
