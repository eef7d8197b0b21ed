/** What must not be in a log is not in it, under whatever name and however deep. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { configureLog, libraryLogger, log, writeLogTo } from "../../src/log.js";
import { MASK, redact, redactString, registerSecret } from "../../src/redaction.js";

describe("fields", () => {
  const rows: [string, unknown, unknown][] = [
    ["webhookSecret", "s3cr3t", MASK],
    ["AUTH_KEY", "00ff", MASK],
    ["X-Webhook-Secret", "abc", MASK],
    ["qr", "https://wa.me/settings/linked_devices#2@abc", MASK],
    ["pairingCode", "ABCD-EFGH", MASK],
    ["text", "hello", "[5 characters]"],
    ["caption", "שלום", "[4 characters]"],
    ["to", "972541112233", "…2233"],
    ["jid", "972541112233:4@s.whatsapp.net", "…2233"],
    ["code", 440, 440],
    ["ok", true, true],
    ["keyPair", { private: Buffer.alloc(32), public: Buffer.alloc(32) }, { private: MASK, public: "[32 bytes]" }],
    ["nested", { deeper: [{ password: "x" }] }, { deeper: [{ password: MASK }] }],
    ["error", new Error("proxy http://user:pw@host failed"), `Error: proxy http://${MASK}@host failed`],
  ];
  for (const [name, value, expected] of rows) {
    test(name, () => assert.deepEqual(redact(value, name), expected));
  }
});

describe("patterns in any string", () => {
  const rows: [string, string][] = [
    ["socks5h://user:pass@10.0.0.1:1080 is away", `socks5h://${MASK}@10.0.0.1:1080 is away`],
    ["Authorization: Bearer abc.def", `Authorization: Bearer ${MASK}`],
    ["x-webhook-secret: 123456", `x-webhook-secret: ${MASK}`],
    ["to 972541112233@s.whatsapp.net", "to …2233@s.whatsapp.net"],
    ["from 105511999990001:11@lid", "from …0001:11@lid"],
  ];
  for (const [before, after] of rows) test(before.slice(0, 20), () => assert.equal(redactString(before), after));
});

test("a secret of this process is blanked wherever it turns up", () => {
  registerSecret("correct-horse-battery");
  assert.equal(redactString("see correct-horse-battery there"), `see ${MASK} there`);
});

test("lines are JSON, carry what was bound, and of the library's words only the sentence", () => {
  const lines: string[] = [];
  writeLogTo((line) => lines.push(line));
  configureLog("debug", { sessionId: "s1" });
  log.info("hello", { to: "972541112233" });
  libraryLogger().error({ privKey: "secret-key", node: { content: "cipher" } }, "failed to decrypt message");
  const [first, second] = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  assert.equal(first?.["sessionId"], "s1");
  assert.equal(first?.["to"], "…2233");
  assert.equal(second?.["sentence"], "failed to decrypt message");
  assert.ok(!lines.join().includes("secret-key") && !lines.join().includes("cipher"));
});
