/** What the server says of messages and limits, read from its own words. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { BinaryNode } from "baileys";
import { Restrictions } from "../../src/driver/restrictions.js";
import { ackOf, addressIn, receiptOf, wantsPasskey } from "../../src/driver/stanzas.js";
import { refusalOf } from "../../src/failures.js";

const ME = { id: "972500000001:11@s.whatsapp.net", lid: "105500000001:11@lid" };
const receipt = (attrs: BinaryNode["attrs"], content?: BinaryNode[]): BinaryNode => ({
  tag: "receipt",
  attrs,
  ...(content && { content }),
});

describe("receipts", () => {
  const rows: [string, BinaryNode["attrs"], string | null | undefined][] = [
    ["delivered, by number", { id: "A", from: "1@s.whatsapp.net" }, "delivered"],
    ["delivered, by LID", { id: "A", from: "9@lid" }, "delivered"],
    ["delivered while idle", { id: "A", from: "9@lid", type: "inactive" }, "delivered"],
    ["read", { id: "A", from: "9@lid", type: "read" }, "read"],
    ["played", { id: "A", from: "9@lid", type: "played" }, "read"],
    ["a copy on our own phone proves only the server", { id: "A", from: ME.id }, null],
    ["the same by LID", { id: "A", from: "105500000001@lid", type: "sender" }, null],
    ["a device that cannot read it proves only the server", { id: "A", from: "9@lid", type: "retry" }, null],
    ["our own reading says nothing", { id: "A", from: ME.id, type: "read" }, undefined],
    ["an unknown type says nothing", { id: "A", from: "9@lid", type: "server-error" }, undefined],
  ];
  for (const [name, attrs, expected] of rows) {
    test(name, () => assert.equal(receiptOf(receipt(attrs), ME)?.receipt, expected));
  }
  test("further ids lie in a list", () => {
    const list = {
      tag: "list",
      attrs: {},
      content: [
        { tag: "item", attrs: { id: "B" } },
        { tag: "item", attrs: { id: "C" } },
      ],
    };
    assert.deepEqual(receiptOf(receipt({ id: "A", from: "9@lid" }, [list]), ME)?.whatsappIds, ["A", "B", "C"]);
  });
});

describe("the question for a number", () => {
  const node = (tag: string, content: BinaryNode[] = [], attrs: BinaryNode["attrs"] = {}): BinaryNode => ({
    tag,
    attrs,
    content,
  });
  const contact = (type: string): BinaryNode => node("contact", [], { type });
  const jid = "1@s.whatsapp.net";
  const answer = (users: BinaryNode[], result: BinaryNode[] = []): BinaryNode =>
    node("iq", [node("usync", [node("result", result), node("list", users)])]);
  const rows: [string, BinaryNode | undefined, string | null][] = [
    ["it is there", answer([node("user", [contact("in")], { jid })]), jid],
    ["it is not", answer([node("user", [contact("out")], { jid })]), ""],
    ["it is no number, and has no address", answer([node("user", [contact("invalid")])]), ""],
    ["an entry without a word on it", answer([node("user", [], { jid })]), null],
    ["an empty list", answer([]), null],
    ["an empty answer", node("iq"), null],
    ["no answer", undefined, null],
  ];
  for (const [name, stanza, expected] of rows) test(name, () => assert.equal(addressIn(stanza), expected));
  test("an error is thrown, of this number or of all", () => {
    const refused = node("contact", [node("error", [], { code: "429", text: "rate-overlimit" })]);
    for (const stanza of [answer([node("user", [refused], { jid })]), answer([], [refused])]) {
      assert.throws(() => addressIn(stanza), { data: 429 });
    }
  });
});

describe("nacks", () => {
  const rows: [string, string][] = [
    ["463", "RESTRICTED_463"],
    ["429", "RATE_LIMIT"],
    ["479", "SEND_FAILED"],
    ["421", "SEND_FAILED"],
    ["400", "SEND_FAILED"],
    ["403", "SEND_FAILED"],
    ["404", "SEND_FAILED"],
    ["500", "SEND_FAILED"],
  ];
  for (const [nack, code] of rows) {
    test(`${nack}: ${code}, and the number is told`, () => {
      const error = refusalOf(nack, null);
      assert.equal(error.code, code);
      assert.ok(error.message.startsWith(nack));
    });
  }
  test("a second 479 is final", () => {
    assert.equal(refusalOf("479", refusalOf("479", null)).code, "INVALID_RECIPIENT");
    assert.equal(refusalOf("479", refusalOf("429", null)).code, "SEND_FAILED");
  });
  test("an ack without an error is none", () => {
    assert.deepEqual(ackOf({ tag: "ack", attrs: { id: "A", class: "message" } }), { whatsappId: "A", nack: null });
  });
});

describe("limits", () => {
  const NOW = 1_800_000_000_000;
  const said = (): [string[], Restrictions] => {
    const words: string[] = [];
    return [
      words,
      new Restrictions(
        (kind, untilMs) => words.push(`${kind} ${untilMs ?? ""}`.trim()),
        () => NOW,
      ),
    ];
  };
  const lock = (isActive: boolean, seconds = 0): { isActive: boolean; timeEnforcementEnds?: Date } => ({
    isActive,
    ...(seconds && { timeEnforcementEnds: new Date(NOW + seconds * 1_000) }),
  });
  const cap = (status: string): unknown => ({ capping_status: status, cycle_end_timestamp: String(NOW / 1_000 + 60) });

  test("no limit is no news", () => {
    const [words, limits] = said();
    limits.hearLock(lock(false));
    limits.hearCap(cap("NONE"));
    assert.deepEqual(words, []);
  });
  test("a lock is told once, with its end, and its lifting after it", () => {
    const [words, limits] = said();
    limits.hearLock(lock(true, 90));
    limits.hearLock(lock(true, 90));
    limits.hearLock(lock(false));
    assert.deepEqual(words, [`TIME_LOCKED ${NOW + 90_000}`, "NONE"]);
  });
  test("a lock without an end lasts a minute", () => {
    const [words, limits] = said();
    limits.hearLock(lock(true));
    assert.deepEqual(words, [`TIME_LOCKED ${NOW + 60_000}`]);
  });
  test("an end with a fraction of a second is the library's own guess, by the host's clock", () => {
    const [words, limits] = said();
    limits.hearLock({ isActive: true, timeEnforcementEnds: new Date(NOW + 7_200_123) });
    assert.deepEqual(words, [`TIME_LOCKED ${NOW + 60_000}`]);
  });
  test("a cap is told with the end of its cycle, which comes in seconds", () => {
    const [words, limits] = said();
    limits.hearCap(cap("CAPPED"));
    assert.deepEqual(words, [`CAPPED ${NOW + 60_000}`]);
  });
  for (const [name, capFirst] of [
    ["a cap is told under a lock as well, and outlives it", false],
    ["a lock is told under a cap as well, and its lifting is not that of the cap", true],
  ] as const) {
    test(name, () => {
      const [words, limits] = said();
      if (capFirst) limits.hearCap(cap("CAPPED"));
      limits.hearLock(lock(true, 90));
      if (!capFirst) limits.hearCap(cap("CAPPED"));
      const both = [`CAPPED ${NOW + 60_000}`, `TIME_LOCKED ${NOW + 90_000}`];
      assert.deepEqual(words, capFirst ? both : both.reverse());
      limits.hearLock(lock(false));
      const [kind, untilMs] = words[2]?.split(" ") ?? [];
      assert.equal(kind, "TIME_LOCKED");
      // What the orchestrator takes for a time, and for one that is past.
      assert.ok(Number(untilMs) > 1_000_000_000_000 && Number(untilMs) < NOW - 86_400_000);
      limits.hearCap(cap("NONE"));
      assert.deepEqual(words.slice(3), ["NONE"]);
    });
  }
  test("a quota that is used up is a cap", () => {
    const [words, limits] = said();
    limits.hearCap({ total_quota: 10, used_quota: 10, cycle_end_timestamp: String(NOW / 1_000 + 60) });
    assert.deepEqual(words, [`CAPPED ${NOW + 60_000}`]);
  });
  test("a query that fails says nothing", async () => {
    const [words, limits] = said();
    await limits.ask({
      fetchAccountReachoutTimelock: () => Promise.reject(new Error("no answer")),
      fetchNewChatMessageCap: () => Promise.reject(new Error("no answer")),
    });
    assert.deepEqual(words, []);
  });
  test("a lifting that comes between the two answers is the last word", async () => {
    const [words, limits] = said();
    let answerCap = (_: unknown): void => {};
    const asked = limits.ask({
      fetchAccountReachoutTimelock: () => Promise.resolve(lock(true, 90)),
      fetchNewChatMessageCap: () => new Promise((resolve) => (answerCap = resolve)),
    });
    await Promise.resolve().then(() => limits.hearLock(lock(false)));
    answerCap(cap("NONE"));
    await asked;
    assert.deepEqual(words, [`TIME_LOCKED ${NOW + 90_000}`, "NONE"]);
  });
});

test("a passkey is asked for by two kinds of notification and no other", () => {
  const notification = (type: string): BinaryNode => ({ tag: "notification", attrs: { type } });
  assert.deepEqual(
    ["passkey_prologue_request", "crsc_continuation", "link_code_companion_reg", "devices"].map((type) =>
      wantsPasskey(notification(type)),
    ),
    [true, true, false, false],
  );
});
