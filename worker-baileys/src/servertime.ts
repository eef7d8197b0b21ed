/**
 * What time it is for the orchestrator, as a pair of bounds that cannot be wrong.
 *
 * Every answer that carries `nowMs` was made between our question and its arrival, so it bounds the difference of the
 * two clocks from both sides. "Not before" is judged by the earliest time it can be there, "not after" by the latest: a
 * worker that was stopped for a minute with an answer in its socket buffer must not believe it fresh.
 */

// Two quartz clocks drift apart by some 50 ppm, twice that in the cold; older bounds are widened by this much.
const DRIFT_PPM = 100;

/** Server time minus ours lies between these two; learned at `atMs` of our clock. */
interface Bounds {
  readonly lowMs: number;
  readonly highMs: number;
  readonly atMs: number;
}

function widened(bounds: Bounds, nowMs: number): Bounds {
  const slackMs = Math.floor(((nowMs - bounds.atMs) * DRIFT_PPM) / 1_000_000);
  return { lowMs: bounds.lowMs - slackMs, highMs: bounds.highMs + slackMs, atMs: nowMs };
}

/**
 * Bounds on the orchestrator's clock, narrowed by every exchange. All arguments but the first are our own clock's time.
 */
export class ServerTime {
  #bounds: Bounds | null = null;

  /**
   * `waitedMs`: so long the server says it had us wait before it looked at its clock. Bounds as wide as a long poll
   * would hide that the clock was set back by less.
   */
  observe(serverMs: number, times: { askedMs: number; answeredMs: number; waitedMs?: number | undefined }): void {
    const lookedMs = Math.min(times.askedMs + (times.waitedMs ?? 0), times.answeredMs);
    const fresh = { lowMs: serverMs - times.answeredMs, highMs: serverMs - lookedMs, atMs: times.answeredMs };
    if (this.#bounds === null) {
      this.#bounds = fresh;
      return;
    }
    const known = widened(this.#bounds, times.answeredMs);
    const lowMs = Math.max(known.lowMs, fresh.lowMs);
    const highMs = Math.min(known.highMs, fresh.highMs);
    // A contradiction means that one of the clocks was set; the newest word then counts alone.
    this.#bounds = lowMs <= highMs ? { lowMs, highMs, atMs: times.answeredMs } : fresh;
  }

  earliest(nowMs: number): number {
    return nowMs + this.#known(nowMs).lowMs;
  }

  latest(nowMs: number): number {
    return nowMs + this.#known(nowMs).highMs;
  }

  #known(nowMs: number): Bounds {
    if (this.#bounds === null) throw new Error("no answer with nowMs has been observed yet");
    return widened(this.#bounds, nowMs);
  }
}
