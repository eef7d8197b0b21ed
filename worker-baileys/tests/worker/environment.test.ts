/** The environment: the names of SPEC §6 and the driver's own; all faults at once; nothing unsafe is taken. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError, readEnvironment, WHATSAPP_URL } from "../../src/environment.js";

const GOOD = {
  SESSION_ID: "s-1",
  PHONE: "+972500000001",
  WEBHOOK_URL: "http://127.0.0.1:3000/",
  WEBHOOK_SECRET: "secret",
  AUTH_KEY: "ab".repeat(32),
  PACELINE_DATA: "/data",
};

function faultsOf(env: Record<string, string | undefined>): readonly string[] {
  try {
    readEnvironment(env);
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.faults;
  }
  return [];
}

test("what a runner sets is understood, with defaults for the rest", () => {
  const env = readEnvironment(GOOD);
  assert.deepEqual(
    [env.phone, env.webhookUrl, env.volume, env.keepAlive, env.whatsappUrl, env.proxy, env.authKey.length],
    ["972500000001", "http://127.0.0.1:3000", "/data/sessions/s-1", true, WHATSAPP_URL, null, 32],
  );
  assert.match(env.instanceId, /^[0-9a-f]{32}$/);
});

test("all that is missing is named at once", () => {
  assert.deepEqual(
    faultsOf({}).map((fault) => fault.split(":")[0]),
    ["SESSION_ID", "PHONE", "WEBHOOK_URL", "WEBHOOK_SECRET", "AUTH_KEY"],
  );
});

const BAD: readonly (readonly [string, string])[] = [
  ["SESSION_ID", "../x"],
  ["PHONE", "not a number"],
  ["WEBHOOK_URL", "ftp://x"],
  ["ENABLE_KEEP_ALIVE", "perhaps"],
  ["INSTANCE_ID", "a b"],
  ["ORPHAN_MS", "-1"],
  ["AUTH_KEY", "short"],
  ["PROXY_URL", "socks5://10.0.0.1:1080"],
  ["PROXY_URL", "ftp://10.0.0.1"],
  ["WHATSAPP_URL", "ws://web.whatsapp.com/ws/chat"],
  ["WHATSAPP_VERSION", "2.3000"],
  ["WORKER_TIMINGS", '{"ackMs":1}'],
];
for (const [name, value] of BAD) {
  test(`${name}=${value} is refused by name`, () => {
    const faults = faultsOf({ ...GOOD, [name]: value });
    assert.equal(faults.length, 1, faults.join());
    assert.ok(faults[0]?.startsWith(`${name}:`));
  });
}

test("a test server on loopback may be spoken to in clear and with short times", () => {
  const env = readEnvironment({ ...GOOD, WHATSAPP_URL: "ws://127.0.0.1:8080/ws", WORKER_TIMINGS: '{"ackMs":500}' });
  assert.equal(env.timings.ackMs, 500);
  assert.equal(env.timings.watchdogMs, 45_000);
});

test("a key may be base64 as well", () => {
  const env = readEnvironment({ ...GOOD, AUTH_KEY: Buffer.alloc(32, 7).toString("base64") });
  assert.deepEqual(env.authKey, Buffer.alloc(32, 7));
});

test("a proxy's credentials are decoded", () => {
  const { proxy } = readEnvironment({ ...GOOD, PROXY_URL: "socks5h://us%40er:p%3Aw@proxy.example:9050" });
  assert.deepEqual(proxy, { kind: "socks5h", host: "proxy.example", port: 9050, user: "us@er", password: "p:w" });
  const long = { ...GOOD, PROXY_URL: `socks5h://u:${"p".repeat(256)}@proxy.example:9050` };
  assert.throws(() => readEnvironment(long), /PROXY_URL: SOCKS takes at most 255 bytes/);
});
