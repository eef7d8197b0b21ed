/** Delayed actions of the server, known in one place so that a stop or a reset leaves none behind. */

export class Timers {
  private readonly pending = new Set<NodeJS.Timeout>();

  /** At once, in the same turn, if there is no delay: order on the wire then is the order of the calls. */
  after(delayMs: number, action: () => void): void {
    if (delayMs <= 0) return action();
    const timer = setTimeout(() => {
      this.pending.delete(timer);
      action();
    }, delayMs);
    this.pending.add(timer);
  }

  clear(): void {
    for (const timer of this.pending) clearTimeout(timer);
    this.pending.clear();
  }
}

/** A small seeded generator (mulberry32): ratios must fall the same way in every run. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
