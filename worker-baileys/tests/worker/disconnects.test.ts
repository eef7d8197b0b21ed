/** The table of disconnect codes: each row of the reference, and agreement with the orchestrator's own table. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { type Action, PAUSES, pauseMs, ruleOf } from "../../src/disconnects.js";
import { endError, endingOf, upgradeCode } from "../../src/driver/endings.js";
import { seededRng } from "../../src/rng.js";

const ROWS: readonly (readonly [number, string, Action])[] = [
  [515, "Stream Errored (restart required)", "at_once"],
  [428, "Connection Terminated", "backoff"],
  [408, "WebSocket Error (connect ECONNREFUSED)", "backoff"],
  [408, "Connection was lost", "backoff"],
  [408, "QR_ENDED", "stop"],
  [503, "Stream Errored (unknown)", "backoff"],
  [500, "Connection Failure", "backoff"],
  [500, "WebSocket Error (proxy: authentication failed)", "backoff"],
  [501, "Connection Failure", "backoff"],
  [516, "Stream Errored (unknown)", "backoff"],
  [440, "Stream Errored (conflict)", "stop"],
  [401, "Stream Errored (conflict)", "stop"],
  [402, "Connection Failure", "stop"],
  [403, "Connection Failure", "stop"],
  [406, "Connection Failure", "stop"],
  [405, "Connection Failure", "stop"],
  [409, "Connection Failure", "stop"],
  [411, "Multi-device beta not joined", "stop"],
  [411, "WRONG_NUMBER", "stop"],
  [429, "Connection Failure", "long_pause"],
  [415, "Connection Failure", "backoff"],
  [418, "Connection Failure", "backoff"],
  [419, "Connection Failure", "backoff"],
];

describe("what follows from each code", () => {
  for (const [code, reason, action] of ROWS) {
    test(`${code} ${reason}: ${action}`, () => assert.equal(ruleOf(code, reason).action, action));
  }
});

test("worker and orchestrator agree on which codes are tried again", (context) => {
  const path = fileURLToPath(new URL("../../../../src/paceline/domain/sessions.py", import.meta.url));
  if (!existsSync(path)) return context.skip("the platform's source is not beside this package");
  const rows = [
    ...readFileSync(path, "utf8").matchAll(/f"\{DISCONNECTED\} (\d+)( \w+)?": Change\(([\s\S]*?)\n? ?\),/g),
  ];
  const table = rows.filter(([, , , body]) => body?.includes("_C."));
  assert.ok(table.length >= 14, `only ${table.length} rows were found`);
  for (const [, code, reason = "", body = ""] of table) {
    const isTriedAgain = ruleOf(Number(code), reason.trim()).action !== "stop";
    assert.equal(isTriedAgain, body.includes("_C.RECONNECTING"), `${code}${reason}`);
  }
});

describe("pauses", () => {
  const rng = seededRng(1);
  test("515 is tried again at once, and only once at once", () => {
    assert.equal(pauseMs(ruleOf(515), 0, PAUSES, rng), 0);
    assert.ok((pauseMs(ruleOf(515), 1, PAUSES, rng) ?? 0) >= 500);
  });
  test("others wait one second, doubling up to five minutes, jittered", () => {
    for (const [failures, whole] of [
      [0, 1_000],
      [1, 2_000],
      [5, 32_000],
      [9, 300_000],
      [40, 300_000],
    ] as const) {
      const pause = pauseMs(ruleOf(428), failures, PAUSES, rng) ?? -1;
      assert.ok(pause >= whole / 2 && pause <= whole, `${failures}: ${pause}`);
    }
  });
  test("429 makes a long pause from the first time on", () => {
    assert.ok((pauseMs(ruleOf(429), 0, PAUSES, rng) ?? 0) >= PAUSES.longMs);
  });
  test("what is final is never tried again", () => assert.equal(pauseMs(ruleOf(403), 0, PAUSES, rng), null));
});

describe("how the library's errors are read", () => {
  test("QR codes that nobody scanned", () => {
    assert.deepEqual(endingOf(endError("QR refs attempts ended", 408)), {
      code: 408,
      reason: "QR_ENDED",
      isServerLogout: false,
    });
  });
  test("a logout is the server's word only if the server said it", () => {
    assert.equal(endingOf(endError("Intentional Logout", 401)).isServerLogout, false);
    assert.equal(endingOf(endError("Connection Failure", 401)).isServerLogout, true);
    assert.equal(endingOf(endError("Stream Errored (conflict)", 401)).isServerLogout, true);
    assert.equal(endingOf(endError("Connection Failure", 403)).isServerLogout, false);
  });
  test("a ban for a time keeps its end", () => {
    const ban = Object.assign(endError("Connection Failure", 402), { data: { reason: "402", expire: "3600" } });
    assert.equal(endingOf(ban).expireSeconds, 3600);
  });
  for (const [status, code] of [
    [429, 429],
    [503, 503],
    [401, 500],
    [403, 500],
    [302, 500],
    [0, 500],
  ] as const) {
    test(`an upgrade answered ${status} is a ${code}: no word on the account`, () =>
      assert.equal(upgradeCode(status), code));
  }
  test("no error at all is a closed connection", () => assert.equal(endingOf(undefined).code, 428));
  test("credentials of a proxy stay out of the reason", () => {
    assert.ok(!endingOf(endError("WebSocket Error (http://u:hunter22@p:1 failed)", 500)).reason.includes("hunter22"));
  });
});
