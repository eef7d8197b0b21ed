/** The server's files after a kill in the middle of a write, and the byte stream of a client cut anywhere. */

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Ledger } from "../../fake-whatsapp/src/ledger.js";
import type { LedgerLine } from "../../fake-whatsapp/src/ledger.js";
import { FrameReader } from "../../fake-whatsapp/src/noise.js";
import { Recent } from "../../fake-whatsapp/src/recent.js";
import { StateFile } from "../../fake-whatsapp/src/state.js";

const directory = mkdtempSync(join(tmpdir(), "fake-whatsapp-"));
after(() => rmSync(directory, { recursive: true }));

test("state: the last value of a key counts, null forgets it, a torn line is as if never written", () => {
  const path = join(directory, "state.jsonl");
  const first = new StateFile(path);
  first.put("device/a", { version: 1 });
  first.put("device/a", { version: 2 });
  first.put("device/b", { version: 1 });
  first.put("device/b", null);
  writeFileSync(path, '["device/c",{"ver', { flag: "a" });
  const second = new StateFile(path);
  assert.deepEqual([...second.take("device/")], [["a", { version: 2 }]]);
  second.put("device/d", 1);
  assert.deepEqual([...new StateFile(path).take("device/").keys()], ["a", "d"]);
});

test("state: old lines are thrown out at the start", () => {
  const path = join(directory, "grown.jsonl");
  const state = new StateFile(path);
  for (let version = 0; version < 500; version++) state.put("session/x", { version });
  const before = statSync(path).size;
  new StateFile(path);
  assert.ok(statSync(path).size < before / 100);
});

const line = (whatsappId: string): LedgerLine => ({
  at: 1,
  sessionId: "s",
  to: "972500000002",
  whatsappId,
  taskId: "",
  text: "x",
  phone: "972500000001",
});

test("ledger: a torn line is cut off, what was whole is remembered, and a repeat of it is marked", () => {
  const path = join(directory, "ledger.jsonl");
  const first = new Ledger(path);
  first.append(line("WHOLE"));
  first.close();
  writeFileSync(path, '{"at":2,"sess', { flag: "a" });
  const second = new Ledger(path);
  assert.equal(second.append(line("WHOLE")).repeat, true);
  assert.equal(second.append(line("NEW")).repeat, undefined);
  second.close();
  const written = readFileSync(path, "utf8").trimEnd().split("\n");
  assert.deepEqual(
    written.map((one) => (JSON.parse(one) as LedgerLine).whatsappId),
    ["WHOLE", "WHOLE", "NEW"],
  );
  assert.deepEqual([second.knowsChat("972500000001", "972500000002"), second.chatsStarted("972500000001")], [true, 1]);
});

test("the newest entries stay under the indexes they had", () => {
  const recent = new Recent<number>(10);
  for (let entry = 0; entry < 35; entry++) recent.add(entry);
  assert.deepEqual(recent.after(33), { entries: [33, 34], next: 35 });
  assert.deepEqual(recent.after(30, 2), { entries: [30, 31], next: 32 });
  assert.deepEqual(recent.after(0).next, 35);
  assert.ok(recent.after(0).entries.length >= 10);
});

for (const [name, route] of Object.entries({ "without a route": "", "with a route": "4544000100000461626364" })) {
  test(`frames come out whole however the bytes arrive, ${name}`, () => {
    const stream = Buffer.from(`${route}57410603000003010203000000000001ff`, "hex");
    for (let size = 1; size <= stream.length; size++) {
      const reader = new FrameReader();
      const frames: string[] = [];
      for (let from = 0; from < stream.length; from += size) {
        frames.push(...reader.push(stream.subarray(from, from + size)).map((frame) => frame.toString("hex")));
      }
      assert.deepEqual(frames, ["010203", "", "ff"], `in pieces of ${size}`);
    }
  });
}

test("what is not a WhatsApp client is refused at its first bytes", () => {
  assert.throws(() => new FrameReader().push(Buffer.from("GET / HTTP/1.1")), /not a WhatsApp client/);
});
