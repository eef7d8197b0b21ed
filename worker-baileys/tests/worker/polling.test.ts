/**
 * What a worker asks for tells whether it is connected: tasks while it is, orders alone while it is not. A clock of its
 * own, so nobody waits.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { WorkerCore } from "../../src/core.js";
import type { Driver } from "../../src/driver/port.js";
import { Journal } from "../../src/journal.js";
import { writeLogTo } from "../../src/log.js";
import { type ClaimAnswer, type HelloAnswer, StaleEpoch, type WorkerProtocol } from "../../src/protocol.js";
import { seededRng } from "../../src/rng.js";
import { ServerTime } from "../../src/servertime.js";
import { readTimings } from "../../src/timings.js";

writeLogTo(() => undefined);
const TYPING = { minMs: 0, maxMs: 0 };
const TERMS: HelloAnswer = { epoch: 1, nowMs: 0, leaseMs: 1_000, typing: TYPING, unknownGraceMs: 0, pending: [] };
let folder: string;

beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "polling-"))));
afterEach(() => rmSync(folder, { recursive: true }));

/** What is asked until `endMs`, and what was said at the hello. `isConnected` and `linked` are the driver's. */
async function asked(
  endMs: number,
  isConnected: (nowMs: number) => boolean,
  linked = true,
): Promise<{ asked: string[]; hellos: Record<string, string>[] }> {
  let nowMs = 0;
  const found = { asked: [] as string[], hellos: [] as Record<string, string>[] };
  const clock = {
    nowMs: () => nowMs,
    sleepMs: (ms: number) => Promise.resolve(void (nowMs += ms)),
  };
  const driver = {
    name: "baileys",
    linked,
    connect: () => undefined,
    waitConnected: (ms: number) => {
      // One that asks nobody would wait for ever.
      if (nowMs > 2 * endMs) throw new StaleEpoch("enough");
      if (!isConnected(nowMs)) nowMs += ms;
      return Promise.resolve(isConnected(nowMs));
    },
  } as unknown as Driver;
  const claim = (_epoch: number, commandsOnly = false): Promise<ClaimAnswer> => {
    if (nowMs >= endMs) return Promise.reject(new StaleEpoch("enough"));
    found.asked.push(`${commandsOnly ? "orders" : "task"} ${Math.round(nowMs / 1_000)}`);
    if (!commandsOnly) nowMs += 20_000;
    return Promise.resolve({ nowMs });
  };
  const hello = (who: Record<string, string>): Promise<HelloAnswer> => {
    found.hellos.push(who);
    return Promise.resolve(TERMS);
  };
  const core = new WorkerCore({
    sessionId: "s1",
    instanceId: "i1",
    lifeId: "l1",
    driver,
    clock,
    time: new ServerTime(),
    protocol: { hello, claim } as unknown as WorkerProtocol,
    journal: Journal.open(folder, () => nowMs),
    events: { all: () => [], add: () => true, remove: () => undefined },
    rng: seededRng(1),
    timings: readTimings(),
    keepAlive: false,
  });
  await core.run();
  return found;
}

test("a linked worker without a connection asks for orders every 15 s, and for no task", async () => {
  assert.deepEqual((await asked(60_000, () => false)).asked, ["orders 15", "orders 30", "orders 45"]);
});

test("one that lost its connection asks so as well, and for tasks once it is back", async () => {
  const isConnected = (nowMs: number): boolean => nowMs < 20_000 || nowMs >= 70_000;
  assert.deepEqual((await asked(100_000, isConnected)).asked, [
    "task 0",
    "orders 21",
    "orders 36",
    "orders 51",
    "orders 66",
    "task 70",
    "task 90",
  ]);
});

test("one that is not linked asks every second: somebody waits for its code", async () => {
  assert.deepEqual((await asked(4_000, () => false, false)).asked, ["orders 1", "orders 2", "orders 3"]);
});

test("its hello says which life of the instance it is", async () => {
  const [who] = (await asked(0, () => true)).hellos;
  assert.deepEqual([who?.["instanceId"], who?.["lifeId"]], ["i1", "l1"]);
});
