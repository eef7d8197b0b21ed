/**
 * Time: the host's at the start, carried on by the monotonic clock, because what is measured between two answers of the
 * orchestrator must not change when somebody sets the host's clock. And sleep that somebody else can cut short.
 */

export interface Clock {
  nowMs(): number;
  sleepMs(ms: number): Promise<void>;
}

export class SteadyClock implements Clock {
  readonly #offsetMs: number;
  #lastMs = 0;

  /** `steadyMs` is held still where it goes back: on some virtual machines it does, by milliseconds, with another core. */
  constructor(private readonly steadyMs: () => number = () => performance.now()) {
    this.#offsetMs = Date.now() - steadyMs();
  }

  nowMs(): number {
    this.#lastMs = Math.max(this.#lastMs, Math.floor(this.steadyMs() + this.#offsetMs));
    return this.#lastMs;
  }

  sleepMs(ms: number): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));
  }
}

/** What `promise` comes to, or an error when that takes too long. What it does then is not stopped. */
export function within<T>(ms: number, what: string, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${what} took more than ${ms} ms`)), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
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
