/**
 * Time: the host's at the start, carried on by the monotonic clock, because what is measured between two answers of the
 * orchestrator must not change when somebody sets the host's clock. And sleep that somebody else can cut short.
 */

export interface Clock {
  nowMs(): number;
  sleepMs(ms: number): Promise<void>;
}

export class SteadyClock implements Clock {
  readonly #offsetMs = Date.now() - performance.now();

  nowMs(): number {
    return Math.floor(performance.now() + this.#offsetMs);
  }

  sleepMs(ms: number): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));
  }
}

/** Sleep that ends at once for everybody who waits when somebody notifies. */
export class Wake {
  readonly #sleepers = new Set<() => void>();

  waitMs(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#sleepers.delete(done);
        resolve();
      };
      // setTimeout takes at most 2^31 - 1.
      const timer = setTimeout(done, Math.min(Math.max(0, ms), 2_000_000_000));
      this.#sleepers.add(done);
    });
  }

  notify(): void {
    for (const done of [...this.#sleepers]) done();
  }
}
