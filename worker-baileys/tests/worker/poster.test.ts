/** What waits to be told: on the disk until it is answered, in order, once, and no more of it than there is room for. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { SteadyClock, Wake } from "../../src/clock.js";
import { EventFile } from "../../src/event-file.js";
import { Journal } from "../../src/journal.js";
import { writeLogTo } from "../../src/log.js";
import { type EventStore, MAX_WAITING, Poster } from "../../src/poster.js";
import { Blocked, RequestRefused, Unavailable, type WorkerEvent, type WorkerProtocol } from "../../src/protocol.js";
import { seededRng } from "../../src/rng.js";
import { Shift } from "../../src/shift.js";

const KEY = Buffer.alloc(32, 1);
const TASK = "01JAR7Z3V5W8Q2M4N6P8R0T2V4:0";
const WIRE = "3EB094773A396AE4D7AB31";
const clock = new SteadyClock();
writeLogTo(() => undefined);
let folder: string;
let journal: Journal;
let store: EventFile;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "poster-"));
  journal = Journal.open(folder, () => clock.nowMs());
  journal.intend({ taskId: TASK, whatsappId: WIRE, to: "1", attempt: 1, at: 1 });
  store = open();
});
afterEach(() => {
  store.close();
  rmSync(folder, { recursive: true });
});

function open(key = KEY): EventFile {
  return EventFile.open(join(folder, "events.sqlite"), key, "s1", 7);
}

function event(name: string, id: string, text = ""): WorkerEvent {
  const data = { whatsappId: id, text };
  return { sessionId: "s1", event: name, data, timestamp: 1, eventId: `${name}:${id}` };
}

/** A poster whose orchestrator says this of each webhook; `told` resolves with the first so many names. */
function posting(
  answer: (event: WorkerEvent) => Promise<void>,
  count: number,
  kept: EventStore = store,
  time: { clock: SteadyClock; wake: Wake } = { clock, wake: new Wake() },
): { poster: Poster; told: Promise<string[]> } {
  const names: string[] = [];
  let done: (names: string[]) => void;
  const told = new Promise<string[]>((resolve) => (done = resolve));
  const webhook = (posted: WorkerEvent): Promise<void> => {
    names.push(posted.eventId);
    if (names.length === count) done(names);
    return answer(posted);
  };
  const poster = new Poster({
    shift: new Shift("s1", "i1", journal),
    protocol: { webhook } as unknown as WorkerProtocol,
    store: kept,
    ...time,
    rng: seededRng(1),
    pingEveryMs: 0,
    quietMs: () => null,
  });
  void poster.run();
  return { poster, told };
}

const never = (): Promise<void> => new Promise(() => undefined);

test("what was posted and not answered is there in the next life, in order", () => {
  const { poster } = posting(never, 1);
  poster.post(event("MESSAGE_RECEIVED", "A", "first"));
  poster.post(event("MESSAGE_READ", WIRE));
  poster.tell("CONNECTED", {});
  // Not closed, as by a kill.
  store = open();
  assert.deepEqual(
    store.all().map(({ eventId, data }) => [eventId, data["text"]]),
    [
      ["MESSAGE_RECEIVED:A", "first"],
      [`MESSAGE_READ:${WIRE}`, ""],
    ],
  );
});

test("the next life posts it, forgets it when it is answered, and notes a receipt in the journal", async () => {
  store.add(event("MESSAGE_RECEIVED", "A"));
  store.add(event("MESSAGE_READ", WIRE));
  store.add(event("MESSAGE_READ", "OTHER"));
  // The third is posted only when the second is through.
  const { told } = posting(() => Promise.resolve(), 3);
  assert.deepEqual(await told, ["MESSAGE_RECEIVED:A", `MESSAGE_READ:${WIRE}`, "MESSAGE_READ:OTHER"]);
  assert.deepEqual(store.all().map(({ eventId }) => eventId), ["MESSAGE_READ:OTHER"]);
  assert.ok(journal.find(WIRE)?.receipts.has("read"));
});

test("receipts wait for all else, however many came before it; each kind in its order", async () => {
  for (let count = 0; count < 20; count += 1) store.add(event("MESSAGE_DELIVERED", `D${count}`));
  let answer = (): void => undefined;
  const first = new Promise<void>((resolve) => (answer = resolve));
  const { poster, told } = posting(() => first, 24);
  // The first is on its way by now.
  poster.post(event("MESSAGE_READ", "R"));
  poster.post(event("MESSAGE_RECEIVED", "stop"));
  poster.post(event("MESSAGE_SENT", "S"));
  poster.tell("DISCONNECTED", { code: 403 });
  answer();
  const [head, ...rest] = (await told).map((id) => id.replace(/^i1:.*/, "DISCONNECTED"));
  const delivered = Array.from({ length: 20 }, (_, count) => `MESSAGE_DELIVERED:D${count}`);
  assert.deepEqual([head, ...rest], [
    delivered[0],
    "MESSAGE_RECEIVED:stop",
    "MESSAGE_SENT:S",
    "DISCONNECTED",
    ...delivered.slice(1),
    "MESSAGE_READ:R",
  ]);
});

test("what comes while a receipt is not answered is told before it is tried again", async () => {
  let isAway = true;
  const { poster, told } = posting(() => {
    if (!isAway) return Promise.resolve();
    isAway = false;
    poster.post(event("MESSAGE_RECEIVED", "stop"));
    return Promise.reject(new Unavailable("away"));
  }, 3);
  poster.post(event("MESSAGE_READ", WIRE));
  assert.deepEqual(await told, [`MESSAGE_READ:${WIRE}`, "MESSAGE_RECEIVED:stop", `MESSAGE_READ:${WIRE}`]);
});

test("what waits already is not put in the line twice", async () => {
  store.add(event("MESSAGE_RECEIVED", "A"));
  const { poster, told } = posting(() => Promise.resolve(), 2);
  poster.post(event("MESSAGE_RECEIVED", "A"));
  poster.post(event("MESSAGE_RECEIVED", "B"));
  assert.deepEqual(await told, ["MESSAGE_RECEIVED:A", "MESSAGE_RECEIVED:B"]);
});

test("no answer or a refusal of our secret repeats it, a refusal of the event does not", async () => {
  const answers: Error[] = [
    new Unavailable("away"),
    new RequestRefused(401, "UNAUTHORIZED", ""),
    new RequestRefused(400, "BAD", ""),
  ];
  const { poster, told } = posting(() => {
    const error = answers.shift();
    return error ? Promise.reject(error) : Promise.resolve();
  }, 4);
  poster.post(event("MESSAGE_RECEIVED", "A"));
  poster.post(event("MESSAGE_RECEIVED", "B"));
  assert.deepEqual(await told, [...Array<string>(3).fill("MESSAGE_RECEIVED:A"), "MESSAGE_RECEIVED:B"]);
});

/** Time that passes only while the poster waits, and stands still when it waits for a word. */
function virtualTime(): { clock: SteadyClock; wake: Wake } {
  let ms = 1_000_000;
  const time = new SteadyClock();
  time.nowMs = () => ms;
  const wake = new Wake();
  const sleep = wake.waitMs.bind(wake);
  wake.waitMs = (waitMs) => {
    if (waitMs >= 3_600_000) return sleep(waitMs);
    ms += waitMs;
    return Promise.resolve();
  };
  return { clock: time, wake };
}

test("what is not let through does not hold up the others, and is told last", async () => {
  let tries = 0;
  const { poster, told } = posting(
    ({ data }) => (data["text"] === "dirty" && (tries += 1) < 8 ? Promise.reject(new Blocked("403")) : Promise.resolve()),
    11,
    store,
    virtualTime(),
  );
  poster.post(event("MESSAGE_RECEIVED", "A", "dirty"));
  poster.post(event("MESSAGE_READ", WIRE));
  poster.post(event("MESSAGE_RECEIVED", "B", "stop"));
  poster.post(event("MESSAGE_RECEIVED", "C"));
  assert.deepEqual(await told, [
    ...Array<string>(5).fill("MESSAGE_RECEIVED:A"),
    "MESSAGE_RECEIVED:B",
    "MESSAGE_RECEIVED:C",
    `MESSAGE_READ:${WIRE}`,
    ...Array<string>(3).fill("MESSAGE_RECEIVED:A"),
  ]);
});

test("words on the session keep their order, whatever is not let through", async () => {
  let tries = 0;
  const names: string[] = [];
  const { poster, told } = posting(
    (posted) => {
      names.push(posted.event);
      return posted.event === "DISCONNECTED" && (tries += 1) < 8 ? Promise.reject(new Blocked("403")) : Promise.resolve();
    },
    11,
    store,
    virtualTime(),
  );
  poster.tell("DISCONNECTED", {});
  poster.tell("CONNECTED", {});
  poster.post(event("MESSAGE_RECEIVED", "A"));
  poster.tell("QR", {});
  await told;
  const lost = Array<string>(5).fill("DISCONNECTED");
  assert.deepEqual(names, [...lost, "MESSAGE_RECEIVED", ...lost.slice(2), "CONNECTED", "QR"]);
});

test("an orchestrator that is away holds up all", async () => {
  let tries = 0;
  const away = (): Promise<void> => ((tries += 1) < 20 ? Promise.reject(new Unavailable("502")) : Promise.resolve());
  const { poster, told } = posting(away, 21, store, virtualTime());
  poster.post(event("MESSAGE_RECEIVED", "A"));
  poster.post(event("MESSAGE_RECEIVED", "B"));
  assert.deepEqual((await told).slice(18), ["MESSAGE_RECEIVED:A", "MESSAGE_RECEIVED:A", "MESSAGE_RECEIVED:B"]);
});

test("when there is no more room, words on the session go first, then receipts, then the oldest", () => {
  // Not on the disk, where five thousand of them take their time.
  const kept = new Set<string>();
  const { poster } = posting(never, 1, {
    all: () => [],
    add: ({ eventId }) => Boolean(kept.add(eventId)),
    remove: ({ eventId }) => void kept.delete(eventId),
  });
  // The head is on its way, so it counts as well.
  poster.post(event("MESSAGE_RECEIVED", "first"));
  poster.post(event("MESSAGE_READ", WIRE));
  poster.tell("CONNECTED", {});
  for (let count = 3; count < MAX_WAITING; count += 1) poster.post(event("MESSAGE_RECEIVED", String(count)));
  const waits = (name: string): boolean => kept.has(name);
  poster.post(event("MESSAGE_RECEIVED", "instead of CONNECTED"));
  assert.ok(waits("MESSAGE_RECEIVED:first") && waits(`MESSAGE_READ:${WIRE}`));
  poster.post(event("MESSAGE_RECEIVED", "instead of the receipt"));
  assert.ok(waits("MESSAGE_RECEIVED:first") && !waits(`MESSAGE_READ:${WIRE}`));
  poster.post(event("MESSAGE_RECEIVED", "instead of the oldest"));
  assert.ok(!waits("MESSAGE_RECEIVED:first"));
  assert.equal(kept.size, MAX_WAITING);
});

test("what people wrote cannot be read in the file", () => {
  store.add(event("MESSAGE_RECEIVED", "972541112233", "dear reader"));
  // Closed, so that no lock is left among the files.
  store.close();
  const bytes = readdirSync(folder)
    .filter((name) => name.startsWith("events"))
    .map((name) => readFileSync(join(folder, name)).toString("latin1"))
    .join();
  for (const secret of ["dear reader", "972541112233", "MESSAGE_RECEIVED"]) assert.ok(!bytes.includes(secret), secret);
});

test("a file of another key is put aside, and a new one begun", () => {
  store.add(event("MESSAGE_RECEIVED", "A"));
  store.close();
  store = open(Buffer.alloc(32, 2));
  assert.deepEqual(store.all(), []);
  assert.ok(readdirSync(folder).includes("events.sqlite.unreadable-7"));
});
