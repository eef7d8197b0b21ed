/**
 * From the link to the receipt: a worker on its own process, the real library, and a server that decrypts what it sent.
 */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { PHONE, Stage, until } from "./stage.js";

// The smallest PNG there is.
const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);
const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
let stage: Stage;

before(async () => {
  stage = await Stage.start();
  await stage.linked();
});
after(() => stage.stop());

test("linking goes QR, restart, CONNECTED, and nothing is told twice", () => {
  const told = stage.orchestrator.events.map(({ event }) => event).filter((event) => event !== "PING");
  assert.deepEqual(told, ["QR", "DISCONNECTED", "CONNECTED"]);
  assert.equal(stage.orchestrator.named("DISCONNECTED")[0]?.data["code"], 515);
});

for (const [name, text] of [
  ["Hebrew", "שלום עולם, מה שלומך?"],
  ["Arabic", "مرحبا بالعالم"],
  ["emoji", "👩‍👩‍👧‍👦 🏳️‍🌈 done ✅"],
  ["a link, which nobody looks up", "see https://example.invalid/page"],
] as const) {
  test(`a text arrives as it was: ${name}`, async () => {
    const task = stage.orchestrator.add({ to: "972541110001", text });
    await stage.settled(task);
    await until("READ", () => stage.orchestrator.named("MESSAGE_READ", task).length > 0);
    const lines = (await stage.ledger()).filter((line) => line.whatsappId === task.whatsappId);
    assert.deepEqual(
      lines.map((line) => [line.to, line.text, line.sessionId]),
      [["972541110001", text, "s1"]],
    );
    const told = stage.orchestrator.events
      .filter(({ data }) => data["messageId"] === task.taskId)
      .map(({ event }) => event);
    // Sent is told by whoever sends, the others by whoever listens: their order is not promised.
    assert.deepEqual(told.sort(), ["MESSAGE_DELIVERED", "MESSAGE_READ", "MESSAGE_SENT"]);
  });
}

test("an image arrives byte for byte, with its caption", async () => {
  const media = { content: PNG, type: "image/png", kind: "png" };
  const task = stage.orchestrator.add({ to: "972541110002", text: "תמונה", mode: "image", media });
  await stage.settled(task);
  const line = (await stage.ledger()).find(({ whatsappId }) => whatsappId === task.whatsappId);
  assert.deepEqual([line?.mode, line?.mediaSha256, line?.text], ["image", sha256(PNG), "תמונה"]);
});

test("a document of some size arrives byte for byte, fetched once for two recipients", async () => {
  const media = {
    content: Buffer.concat([Buffer.from("%PDF-1.7\n"), randomBytes(300_000)]),
    type: "application/pdf",
    kind: "pdf",
    name: "דוח.pdf",
  };
  const tasks = ["972541110003", "972541110004"].map((to) =>
    stage.orchestrator.add({ to, text: "", mode: "document", media }),
  );
  for (const task of tasks) await stage.settled(task);
  const ids = new Set(tasks.map(({ whatsappId }) => whatsappId));
  const lines = (await stage.ledger()).filter(({ whatsappId }) => ids.has(whatsappId));
  assert.deepEqual(
    lines.map(({ mode, mediaSha256 }) => [mode, mediaSha256]),
    Array(2).fill(["document", sha256(media.content)]),
  );
  assert.equal(stage.orchestrator.calls.filter((call) => call.endsWith("-pdf")).length, 1);
});

test("a file that is not what its name says is not sent", async () => {
  stage.orchestrator.mediaInstead = Buffer.from("other bytes");
  const media = { content: Buffer.from("these bytes"), type: "image/png", kind: "png" };
  const task = stage.orchestrator.add({ to: "972541110005", text: "", mode: "image", media });
  await stage.settled(task, "failed");
  assert.equal(task.error?.code, "MEDIA_UNAVAILABLE");
  assert.match(task.error.message, /not the one that was uploaded/);
  assert.ok(!(await stage.ledger()).some(({ whatsappId }) => whatsappId === task.whatsappId));
  stage.orchestrator.mediaInstead = null;
});

test("an upload that fails sends nothing and says why", async () => {
  await stage.behave({ mediaFault: { kind: "status", status: 500 } });
  const media = { content: Buffer.concat([PNG, Buffer.from("2")]), type: "image/png", kind: "png" };
  const task = stage.orchestrator.add({ to: "972541110007", text: "", mode: "image", media });
  await stage.settled(task, "failed");
  assert.equal(task.error?.code, "MEDIA_UNAVAILABLE");
  await stage.behave({ mediaFault: null });
});

test("a number that is not on WhatsApp gets nothing", async () => {
  await stage.admin("POST", "/accounts", { phone: "972541110008", exists: false });
  const task = stage.orchestrator.add({ to: "972541110008", text: "hello?" });
  await stage.settled(task, "failed");
  assert.equal(task.error?.code, "NOT_ON_WHATSAPP");
  assert.ok(!(await stage.ledger()).some(({ whatsappId }) => whatsappId === task.whatsappId));
});

test("a number that WhatsApp knows under another form is written to under that", async () => {
  await stage.admin("POST", "/accounts", { phone: "5511999990002", canonical: "551199990002" });
  const task = stage.orchestrator.add({ to: "5511999990002", text: "olá" });
  await stage.settled(task);
  const line = (await stage.ledger()).find(({ whatsappId }) => whatsappId === task.whatsappId);
  assert.equal(line?.to, "551199990002");
});

test("what a person writes is told, with their number", async () => {
  await stage.admin("POST", "/inbound", { from: "972541110001", to: "972500000001", text: "הסר" });
  const [event] = await stage.events("MESSAGE_RECEIVED");
  assert.deepEqual([event?.data["from"], event?.data["text"]], ["972541110001", "הסר"]);
});

test("who cannot read a message asks for it again, and gets it under the same id", async () => {
  const to = "972541110009";
  await stage.settled(stage.orchestrator.add({ to, text: "before" }));
  await stage.admin("POST", "/inbound", { from: to, to: PHONE, text: "so that a session is in use" });
  await stage.events("MESSAGE_RECEIVED", 2);
  await stage.admin("POST", `/accounts/${to}/forget-sessions`);
  const task = stage.orchestrator.add({ to, text: "unreadable at first" });
  await stage.settled(task);
  const lines = await until("the second line", async () => {
    const found = (await stage.ledger()).filter(({ whatsappId }) => whatsappId === task.whatsappId);
    return found.length >= 2 && found;
  });
  assert.deepEqual(
    lines.map(({ undecryptable, repeat, text }) => [undecryptable, repeat, text]),
    [
      [true, undefined, "unreadable at first"],
      [undefined, true, "unreadable at first"],
    ],
  );
});

test("pings tell that WhatsApp is heard", async () => {
  const heard = await until("a PING with quietMs", () =>
    stage.orchestrator.named("PING").find(({ data }) => typeof data["quietMs"] === "number"),
  );
  assert.ok(Number(heard.data["quietMs"]) >= 0);
});

test("a message is written inside its window or not at all", async () => {
  const late = stage.orchestrator.add({ to: "972541110001", text: "too late", sendAfterMs: 0, sendBeforeMs: 200 });
  await until("it is given back", () => late.nacks.includes("returned"));
  late.state = "failed";
  const soon = stage.orchestrator.add({ to: "972541110001", text: "in time", sendAfterMs: 700 });
  const claimedMs = Date.now();
  await stage.settled(soon);
  const lines = await stage.ledger();
  assert.ok(!lines.some(({ whatsappId }) => whatsappId === late.whatsappId));
  assert.ok((lines.find(({ whatsappId }) => whatsappId === soon.whatsappId)?.at ?? 0) >= claimedMs + 700);
});

test("typing is shown inside the gap before the message", async () => {
  const to = "972541110010";
  stage.orchestrator.typing = { minMs: 400, maxMs: 400 };
  await stage.workers[0]?.kill();
  const times = stage.orchestrator.named("CONNECTED").length;
  stage.work();
  await stage.online(times);
  const task = stage.orchestrator.add({ to, text: "typed", sendAfterMs: 900 });
  const addedMs = Date.now();
  await stage.settled(task);
  const { events } = await stage.admin<{ events: { at: number; kind: string }[] }>("GET", "/events");
  const typed = events.filter(({ kind }) => kind === "chatstate").at(-1);
  const sent = (await stage.ledger()).find(({ whatsappId }) => whatsappId === task.whatsappId);
  assert.ok(typed && sent);
  assert.ok(typed.at >= addedMs + 450, "typing began long before it had to");
  assert.ok(sent.at >= typed.at, "the message came first");
  assert.ok(sent.at >= addedMs + 900);
});

test("no secret, no text, no whole number and no key is in the log; nothing is on stdout but that", () => {
  const worker = { output: stage.workers.map(({ output }) => output).join("") };
  for (const secret of [
    "the-secret-of-this-session",
    "c3c3c3c3",
    "שלום",
    "972541110001",
    "linked_devices",
    "privKey",
    "SessionEntry",
  ]) {
    assert.ok(!worker.output.includes(secret), `${secret} is in the log`);
  }
  for (const line of worker.output.trim().split("\n")) JSON.parse(line);
});
