/** The guard before a send: who is not there gets nothing, answers are kept, questions paced, and a 429 is obeyed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Directory, Guard } from "../../src/driver/guard.js";

const JID = "972541112233@s.whatsapp.net";

class StepClock {
  ms = 0;
  nowMs = (): number => this.ms;
  sleepMs = (ms: number): Promise<void> => {
    this.ms += ms;
    return Promise.resolve();
  };
}

function directory(answers: Partial<Directory> = {}): Directory & { asked: string[] } {
  const asked: string[] = [];
  return {
    asked,
    addressOf: (number) => {
      asked.push(number);
      return answers.addressOf ? answers.addressOf(number) : Promise.resolve(JID);
    },
    devicesOf: answers.devicesOf ?? ((jid) => Promise.resolve([jid])),
  };
}

const guard = (clock = new StepClock()): Guard => new Guard(clock, { guardGapMs: 1_000, guardPauseMs: 60_000 });
const code = (found: Awaited<ReturnType<Guard["check"]>>): string =>
  found.kind === "refused" ? found.error.code : found.jid;

test("the address WhatsApp gives is used, and asked for once", async () => {
  const [one, book] = [guard(), directory()];
  assert.equal(code(await one.check("972541112233", book)), JID);
  assert.equal(code(await one.check("972541112233", book)), JID);
  assert.equal(book.asked.length, 1);
});

test("a number that is not on WhatsApp is refused, and that is kept too", async () => {
  const [one, book] = [guard(), directory({ addressOf: () => Promise.resolve("") })];
  assert.equal(code(await one.check("1", book)), "NOT_ON_WHATSAPP");
  assert.equal(code(await one.check("1", book)), "NOT_ON_WHATSAPP");
  assert.equal(book.asked.length, 1);
});

test("no answer and no devices are nobody's fault but the line's", async () => {
  const [one, book] = [guard(), directory({ addressOf: () => Promise.resolve(null) })];
  assert.equal(code(await one.check("1", book)), "CONNECTION_LOST");
  assert.equal(code(await one.check("1", directory())), JID);
  assert.equal(code(await guard().check("1", directory({ devicesOf: () => Promise.resolve([]) }))), "CONNECTION_LOST");
});

test("two numbers are asked for with a pause between", async () => {
  const clock = new StepClock();
  const one = guard(clock);
  await one.check("1", directory());
  await one.check("2", directory());
  assert.equal(clock.ms, 1_000);
});

test("after a 429 nothing is asked for a while, then again", async () => {
  const clock = new StepClock();
  const one = guard(clock);
  const limited = Object.assign(new Error("rate-overlimit"), { data: 429 });
  assert.equal(code(await one.check("1", directory({ addressOf: () => Promise.reject(limited) }))), "RATE_LIMIT");
  const book = directory();
  clock.ms = 59_000;
  assert.equal(code(await one.check("1", book)), "RATE_LIMIT");
  assert.equal(book.asked.length, 0);
  clock.ms = 60_000;
  assert.equal(code(await one.check("1", book)), JID);
});

test("any other failure is not swallowed", async () => {
  await assert.rejects(guard().check("1", directory({ addressOf: () => Promise.reject(new Error("boom")) })), /boom/);
});
