/**
 * The worker's own time never goes back, whatever the machine says.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SteadyClock } from "../../src/clock.js";

test("it stands still where the machine's clock goes back", () => {
  const read = [1_000, 1_010, 1_004, 1_011];
  const clock = new SteadyClock(() => read.shift() ?? 0);
  const first = clock.nowMs();
  assert.deepEqual([clock.nowMs() - first, clock.nowMs() - first], [0, 1]);
});
