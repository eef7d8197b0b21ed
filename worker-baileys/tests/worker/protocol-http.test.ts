/** The line to the orchestrator: what it asks, how answers and failures are told apart, and its limits. */
import assert from "node:assert/strict";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { Blocked, NotWanted, RequestRefused, StaleEpoch, Unavailable } from "../../src/protocol.js";
import { errorOf, HttpProtocol } from "../../src/protocol-http.js";
import { until } from "./stage.js";

type Handler = (request: http.IncomingMessage, response: http.ServerResponse, body: string) => void;
let handler: Handler;
const server = http.createServer((request, response) => {
  let body = "";
  request.on("data", (chunk: Buffer) => (body += chunk.toString()));
  request.on("end", () => handler(request, response, body));
});
let protocol: HttpProtocol;

before(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  protocol = new HttpProtocol(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, "s 1", "secret");
});
after(() => {
  protocol.close();
  server.closeAllConnections();
  server.close();
});

const answer =
  (body: unknown): Handler =>
  (_request, response) =>
    void response.end(JSON.stringify(body));

describe("what an answer without success stands for", () => {
  const body = (code: string): Buffer => Buffer.from(JSON.stringify({ error: { code, message: "m", details: {} } }));
  for (const [status, code, type] of [
    [409, "STALE_EPOCH", StaleEpoch],
    [409, "NOT_WANTED", NotWanted],
    [409, "STALE_TOKEN", RequestRefused],
    [400, "INVALID_REQUEST", RequestRefused],
    [404, "UNKNOWN_TASK", RequestRefused],
    [408, "X", Unavailable],
    [429, "X", Unavailable],
    [500, "X", Unavailable],
    [503, "X", Unavailable],
  ] as const) {
    test(`${status} ${code}: ${type.name}`, () => assert.ok(errorOf(status, body(code)) instanceof type));
  }
  for (const [name, page] of [
    ["a page", "<html>404 Not Found</html>"],
    ["nothing", ""],
    ["JSON of another kind", '{"message":"Forbidden"}'],
    ["an error in words", '{"error":"not found"}'],
    ["an error with a number", '{"error":{"code":404,"message":"m","details":[]}}'],
    ["an error of another shape", '{"error":{"code":"NOT_FOUND","message":"m"}}'],
    ["null", "null"],
  ] as const) {
    test(`${name} of something in between is no answer of the orchestrator, whatever its status`, () => {
      for (const status of [302, 400, 401, 403, 404, 405, 409, 413, 502]) {
        assert.ok(errorOf(status, Buffer.from(page)) instanceof Unavailable, String(status));
      }
      for (const status of [400, 401, 403, 404, 405, 409, 413]) {
        assert.ok(errorOf(status, Buffer.from(page)) instanceof Blocked, String(status));
      }
      for (const status of [302, 408, 429, 500, 502]) {
        assert.ok(!(errorOf(status, Buffer.from(page)) instanceof Blocked), String(status));
      }
    });
  }
});

test("a claim names its epoch and its session, and shows the secret", async () => {
  const asked: unknown[] = [];
  handler = (request, response, body) => {
    asked.push([request.method, request.url, request.headers["x-webhook-secret"], JSON.parse(body)]);
    response.end('{"nowMs":5,"task":null}');
  };
  assert.equal((await protocol.claim(3)).nowMs, 5);
  await protocol.claim(3, true);
  assert.deepEqual(asked, [
    ["POST", "/api/worker/sessions/s%201/outbox/claim?timeout=20", "secret", { epoch: 3 }],
    ["POST", "/api/worker/sessions/s%201/outbox/claim?timeout=0", "secret", { epoch: 3, commandsOnly: true }],
  ]);
});

test("a nack carries its error, cut to what is taken", async () => {
  let said: Record<string, unknown> = {};
  handler = (_request, response, body) => {
    said = JSON.parse(body) as Record<string, unknown>;
    response.end('{"status":"ok"}');
  };
  await protocol.nack({ taskId: "t", token: "1" }, 2, true, { code: "X", message: "y".repeat(5_000) });
  assert.deepEqual(said, {
    taskId: "t",
    token: "1",
    epoch: 2,
    notSent: true,
    error: { code: "X", message: "y".repeat(1_024) },
  });
});

test("an answer that cannot be read may have been carried out", async () => {
  handler = answer({ something: "else" });
  await assert.rejects(
    protocol.hello({ instanceId: "i", lifeId: "l", journalId: "j", driver: "d" }),
    (error: Unavailable) => error.maybeDone,
  );
});

test("a page of something in between does not count as told, though its status is 200", async () => {
  handler = (_request, response) => void response.end("<html>We are back soon</html>");
  const event = { sessionId: "s", event: "MESSAGE_RECEIVED", data: {}, timestamp: 1, eventId: "e" };
  for (const told of [protocol.webhook(event), protocol.ack({ raw: "r" }, 1, "w"), protocol.nack({ raw: "r" }, 1, true)]) {
    await assert.rejects(told, Unavailable);
  }
});

test("a connection that breaks after the question may have been carried out", async () => {
  handler = (request) => void request.socket.destroy();
  await assert.rejects(protocol.claim(1), (error: Unavailable) => error instanceof Unavailable && error.maybeDone);
});

test("a question that never left was certainly not carried out, and the silence is counted", async () => {
  const nobody = new HttpProtocol("http://127.0.0.1:9", "s", "x");
  await assert.rejects(nobody.claim(1), (error: Unavailable) => error instanceof Unavailable && !error.maybeDone);
  // Not every machine's clock tells one millisecond from the next.
  await until("the silence is counted", () => nobody.unansweredMs() > 0);
  handler = answer({ status: "ok" });
  assert.equal(protocol.unansweredMs() >= 0, true);
  await protocol.webhook({ sessionId: "s", event: "PING", data: {}, timestamp: 1, eventId: "e" });
  assert.equal(protocol.unansweredMs(), 0);
});

test("a file that is larger than it should be is not taken in", async () => {
  handler = (_request, response) => void response.end(Buffer.alloc(200_000));
  await assert.rejects(protocol.media("ref", 100_000), /more than 100000 bytes/);
  handler = (_request, response) => void response.end(Buffer.alloc(100_000));
  assert.equal((await protocol.media("ref", 100_000)).length, 100_000);
});
