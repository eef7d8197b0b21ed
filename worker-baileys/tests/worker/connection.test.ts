/**
 * Connections that end: each row of the reference's table, told and acted upon; and the cases the library keeps silent
 * about.
 */
import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import type { Timings } from "../../src/timings.js";
import { PHONE, QUICK, Stage, until, type Worker } from "./stage.js";

let stage: Stage;
let worker: Worker;

before(async () => {
  stage = await Stage.start();
  worker = await stage.linked();
});
after(() => stage.stop());

/** What was told of the connection from here on. */
function listen(): () => [string, unknown][] {
  const from = stage.orchestrator.events.length;
  return () =>
    stage.orchestrator.events
      .slice(from)
      .filter(({ event }) => ["CONNECTED", "DISCONNECTED"].includes(event))
      .map(({ event, data }) => [event, data["code"]]);
}

/** Another life of the same session, with these times and no others. */
async function restart(timings: Partial<Timings> = {}): Promise<void> {
  await worker.kill();
  stage.timings = { ...QUICK, ...timings };
  worker = stage.work();
}

/** Another life, until it is online. What is told from there on. */
async function restartOnline(timings: Partial<Timings> = {}): Promise<() => [string, unknown][]> {
  const told = listen();
  await restart(timings);
  await until("CONNECTED", () => told().some(([event]) => event === "CONNECTED"));
  return listen();
}

const connections = async (): Promise<number> =>
  (await stage.admin<{ connections: number }>("GET", "/stats")).connections;

describe("tried again", () => {
  for (const [name, order, code] of [
    ["515", { kind: "stream-error", code: 515 }, 515],
    ["503", { kind: "stream-error", code: 503 }, 503],
    ["500", { kind: "stream-error", code: 500 }, 500],
    ["516", { kind: "stream-error", code: 516 }, 516],
    ["a stream error without a code", { kind: "stream-error", child: "xml-not-well-formed" }, 500],
    ["failure 501", { kind: "failure", code: 501 }, 501],
    ["failure 503", { kind: "failure", code: 503 }, 503],
    ["failure 415", { kind: "failure", code: 415 }, 415],
    ["the end of the stream", { kind: "xmlstreamend" }, 428],
    ["a cut", { kind: "cut" }, 428],
  ] as const) {
    test(`${name}: DISCONNECTED ${code}, then CONNECTED, one socket`, async () => {
      const told = listen();
      await stage.disconnect(order);
      await until("CONNECTED again", () => told().length >= 2);
      assert.deepEqual(told(), [
        ["DISCONNECTED", code],
        ["CONNECTED", undefined],
      ]);
      assert.equal(await connections(), 1);
    });
  }
});

test("silence is noticed within the limit, though the library waits half a minute longer", async () => {
  // Ten pings may be late before a busy machine is taken for a silent server.
  const told = await restartOnline({ keepAliveMs: 300, silenceMs: 3_000 });
  await stage.disconnect({ kind: "silence" });
  await until("CONNECTED again", () => told().length >= 2);
  assert.deepEqual(told(), [
    ["DISCONNECTED", 408],
    ["CONNECTED", undefined],
  ]);
});

describe("not tried again", () => {
  for (const [name, order, code] of [
    ["replaced elsewhere", { kind: "replaced" }, 440],
    ["banned for a time", { kind: "failure", code: 402, attrs: { expire: "3600" } }, 402],
    ["banned", { kind: "failure", code: 403 }, 403],
    ["outdated", { kind: "failure", code: 405 }, 405],
    ["locked", { kind: "failure", code: 406 }, 406],
    ["rejected", { kind: "failure", code: 409 }, 409],
    ["no linked devices", { kind: "downgrade" }, 411],
    ["too many tries: after a long pause only", { kind: "failure", code: 429 }, 429],
  ] as const) {
    test(`${name}: DISCONNECTED ${code}, no new connection, the login kept`, async () => {
      const told = await restartOnline();
      await stage.disconnect(order);
      await until("DISCONNECTED", () => told().length >= 1);
      assert.deepEqual(told(), [["DISCONNECTED", code]]);
      const pings = stage.orchestrator.named("PING").length;
      await until("three pings more", () => stage.orchestrator.named("PING").length >= pings + 3);
      assert.equal(await connections(), 0);
      assert.equal(told().length, 1);
      assert.ok(!readdirSync(stage.volume).some((file) => file.includes("logged-out")));
      if (code === 402) assert.equal(stage.orchestrator.named("DISCONNECTED").at(-1)?.data["expireSeconds"], 3600);
    });
  }
});

describe("where the library says nothing", () => {
  afterEach(async () => {
    await stage.behave({ refuseUpgrade: null, hangUpgrade: false, noServerHello: false, neverSuccess: false });
  });
  // Short only where it must pass: an answer shall be heard however late it comes.
  const short = { connectMs: 700, watchdogMs: 1_500 };
  for (const [name, behaviour, code, timings] of [
    ["the upgrade is answered 503 and closed", { refuseUpgrade: { status: 503 } }, 503, {}],
    ["the upgrade is answered 503 and left open", { refuseUpgrade: { status: 503, keepOpen: true } }, 503, {}],
    ["the upgrade is answered 403 by whatever is in the way", { refuseUpgrade: { status: 403 } }, 500, {}],
    ["the upgrade is answered 401 by whatever is in the way", { refuseUpgrade: { status: 401 } }, 500, {}],
    ["the upgrade hangs", { hangUpgrade: true }, 408, short],
    ["the handshake is not answered", { noServerHello: true }, 408, short],
    ["success never comes", { neverSuccess: true }, 408, short],
  ] as const) {
    test(`${name}: DISCONNECTED ${code}, and it goes on once it can`, async () => {
      await stage.behave(behaviour);
      const told = listen();
      await restart(timings);
      await until("DISCONNECTED", () => told().length >= 1);
      assert.deepEqual(told()[0], ["DISCONNECTED", code]);
      await stage.behave({ refuseUpgrade: null, hangUpgrade: false, noServerHello: false, neverSuccess: false });
      await until("CONNECTED", () => told().some(([event]) => event === "CONNECTED"));
      assert.equal(await connections(), 1);
    });
  }
});

describe("linking and its end", () => {
  test("removed on the phone: 401 is told, the login is put aside, a new start shows a code", async () => {
    const told = await restartOnline();
    await stage.disconnect({ kind: "device-removed" });
    await until("DISCONNECTED", () => told().length >= 1);
    assert.deepEqual(told(), [["DISCONNECTED", 401]]);
    assert.ok(readdirSync(stage.volume).some((file) => file.includes("logged-out")));
    const shown = stage.orchestrator.named("QR").length;
    await restart();
    await stage.events("QR", shown + 1);
  });

  test("an operator's code: told as COMMAND_DONE, typed on the phone, linked", async () => {
    const told = listen();
    stage.orchestrator.command("pair");
    const [done] = await stage.events("COMMAND_DONE");
    assert.equal(done?.data["ok"], true);
    const code = String(done?.data["pairingCode"]);
    assert.match(code, /^[0-9A-Z]{4}-[0-9A-Z]{4}$/);
    await stage.admin("POST", "/enter-code", { phone: PHONE, code });
    await until("CONNECTED", () => told().some(([event]) => event === "CONNECTED"));
    assert.ok(!worker.output.includes(code));
    await stage.settled(stage.orchestrator.add({ to: "972541110001", text: "linked by code" }));
  });

  test("a second order to pair is refused in words", async () => {
    stage.orchestrator.command("pair");
    const events = await stage.events("COMMAND_DONE", 2);
    assert.deepEqual([events[1]?.data["ok"], events[1]?.data["error"]], [false, "it is linked already"]);
  });

  test("an operator's logout is confirmed by the server, told as done and not as a loss", async () => {
    const told = listen();
    stage.orchestrator.command("logout");
    const events = await stage.events("COMMAND_DONE", 3);
    assert.equal(events[2]?.data["ok"], true, String(events[2]?.data["error"]));
    await until(
      "the link is gone",
      async () => (await stage.admin<{ devices: unknown[] }>("GET", "/devices")).devices.length === 0,
    );
    assert.deepEqual(told(), []);
  });

  test("codes that nobody scans: 408 QR_ENDED, and no more are shown", async () => {
    await stage.behave({ qrRefs: 2 });
    const told = listen();
    await restart({ qrMs: 150 });
    await until("the end", () => told().length >= 1);
    assert.deepEqual(told(), [["DISCONNECTED", 408]]);
    assert.equal(stage.orchestrator.named("DISCONNECTED").at(-1)?.data["reason"], "QR_ENDED");
    const shown = stage.orchestrator.named("QR").length;
    const pings = stage.orchestrator.named("PING").length;
    await until("three pings more", () => stage.orchestrator.named("PING").length >= pings + 3);
    assert.equal(stage.orchestrator.named("QR").length, shown);
  });

  test("an abandoned pairing code does not become a login", async () => {
    await stage.behave({ qrRefs: 6 });
    const shown = stage.orchestrator.named("QR").length;
    await restart();
    await stage.events("QR", shown + 1);
    const done = stage.orchestrator.named("COMMAND_DONE").length;
    stage.orchestrator.command("pair");
    await stage.events("COMMAND_DONE", done + 1);
    await restart();
    await stage.events("QR", shown + 2);
    assert.ok(existsSync(join(stage.volume, "auth.sqlite")));
  });
});
