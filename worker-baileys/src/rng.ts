/** Chance as an object, so that tests can hold it still. */

export interface Rng {
  /** A whole number from `low` to `high`, both included. */
  integer(low: number, high: number): number;
}

export const systemRng: Rng = {
  integer: (low, high) => low + Math.floor(Math.random() * (high - low + 1)),
};

/** The same numbers for the same seed (mulberry32). */
export function seededRng(seed: number): Rng {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  return { integer: (low, high) => low + Math.floor(next() * (high - low + 1)) };
}
