/**
 * Bounds on the orchestrator's clock: narrowed by quick answers, widened by age, and a clock that was set counts anew.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ServerTime } from "../../src/servertime.js";

test("an answer bounds the difference from both sides", () => {
  const time = new ServerTime();
  time.observe(1_000_500, { askedMs: 0, answeredMs: 1_000 });
  assert.deepEqual([time.earliest(1_000), time.latest(1_000)], [1_000_500, 1_001_500]);
});

test("a quick exchange narrows what a slow one left open", () => {
  const time = new ServerTime();
  time.observe(1_000_500, { askedMs: 0, answeredMs: 1_000 });
  time.observe(1_002_005, { askedMs: 2_000, answeredMs: 2_010 });
  assert.ok(time.latest(2_010) - time.earliest(2_010) <= 10);
});

test("bounds widen with age", () => {
  const time = new ServerTime();
  time.observe(0, { askedMs: 0, answeredMs: 0 });
  assert.deepEqual([time.earliest(1_000_000), time.latest(1_000_000)], [999_900, 1_000_100]);
});

test("after a contradiction the newest word counts alone", () => {
  const time = new ServerTime();
  time.observe(0, { askedMs: 0, answeredMs: 10 });
  time.observe(500_000, { askedMs: 20, answeredMs: 30 });
  assert.deepEqual([time.earliest(30), time.latest(30)], [500_000, 500_010]);
});

test("a clock set back by less than an answer was waited for is noticed", () => {
  const time = new ServerTime();
  time.observe(1_000_000, { askedMs: 0, answeredMs: 10 });
  time.observe(1_015_010, { askedMs: 20, answeredMs: 20_020, waitedMs: 19_995 });
  assert.deepEqual([time.earliest(20_020), time.latest(20_020)], [1_015_010, 1_015_015]);
});

test("a server that claims to have let us wait longer than we did is not believed", () => {
  const time = new ServerTime();
  time.observe(1_000_000, { askedMs: 0, answeredMs: 10, waitedMs: 60_000 });
  assert.deepEqual([time.earliest(10), time.latest(10)], [1_000_000, 1_000_000]);
});

test("nobody may ask before the first answer", () => assert.throws(() => new ServerTime().earliest(0)));
