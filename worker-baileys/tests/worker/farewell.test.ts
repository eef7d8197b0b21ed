/** The end of a worker: it hears what its connection brings until that is closed, and nothing after. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { SteadyClock } from "../../src/clock.js";
import { EXIT_REPLACED, WorkerCore } from "../../src/core.js";
import type { Driver, DriverEvent } from "../../src/driver/port.js";
import { Journal } from "../../src/journal.js";
import { writeLogTo } from "../../src/log.js";
import { type HelloAnswer, StaleEpoch, type WorkerEvent, type WorkerProtocol } from "../../src/protocol.js";
import { seededRng } from "../../src/rng.js";
import { ServerTime } from "../../src/servertime.js";
import { readTimings } from "../../src/timings.js";

writeLogTo(() => undefined);

const TERMS: HelloAnswer = {
  epoch: 1,
  nowMs: 0,
  leaseMs: 1_000,
  typing: { minMs: 0, maxMs: 0 },
  unknownGraceMs: 0,
  pending: [],
};

const received = (whatsappId: string): DriverEvent => ({
  kind: "received",
  sender: "1",
  text: "",
  whatsappId,
  atMs: 1,
});

test("what is heard while the connection is being closed is kept", async () => {
  const folder = mkdtempSync(join(tmpdir(), "farewell-"));
  const clock = new SteadyClock();
  const kept: unknown[] = [];
  const add = ({ data }: WorkerEvent): boolean => kept.push(data["whatsappId"]) > 0;
  const driver = {
    linked: true,
    onEvent: () => undefined,
    connect: () => undefined,
    waitConnected: () => Promise.resolve(true),
    // A message that was being decrypted when the end came.
    close: async () => {
      await Promise.resolve();
      driver.onEvent(received("while it closes"));
    },
  } as unknown as Driver;
  const core = new WorkerCore({
    sessionId: "s1",
    instanceId: "i1",
    lifeId: "l1",
    driver,
    clock,
    time: new ServerTime(),
    protocol: {
      hello: () => Promise.resolve(TERMS),
      claim: () => Promise.reject(new StaleEpoch("another one")),
    } as unknown as WorkerProtocol,
    journal: Journal.open(folder, () => clock.nowMs()),
    events: { all: () => [], add, remove: () => undefined },
    rng: seededRng(1),
    timings: readTimings(),
    keepAlive: false,
  });
  assert.equal((await core.run()).code, EXIT_REPLACED);
  await core.farewell(false);
  driver.onEvent(received("after the end"));
  assert.deepEqual(kept, ["while it closes"]);
  rmSync(folder, { recursive: true });
});
