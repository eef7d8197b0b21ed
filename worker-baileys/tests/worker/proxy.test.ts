/**
 * The three ways out: each through the proxy, names resolved there, and an error at once when it is away or says no.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import http from "node:http";
import net, { type AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { type RequestInit } from "undici";
import { WebSocket, WebSocketServer } from "ws";
import { connectThrough, ProxyError } from "../../src/driver/proxy-connect.js";
import { readProxy } from "../../src/driver/proxy-url.js";
import { routesThrough } from "../../src/driver/routes.js";
import { type Access, type Recorder, startConnect, startSocks } from "./proxies.js";

// No resolver knows it (RFC 2606): whoever reaches it had it resolved at the proxy.
const NAME = "web.whatsapp.invalid";
const ACCESS: Access = { user: "us:er", password: "p@ss w" };
const LIMIT_MS = 2_000;

const server = http.createServer((_request, response) => response.end("from the server"));
const sockets = new WebSocketServer({ server });
sockets.on("connection", (socket) => socket.send("hello"));
let port: number;

before(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  port = (server.address() as AddressInfo).port;
});
after(() => {
  sockets.close();
  server.closeAllConnections();
  server.close();
});

const KINDS: readonly (readonly [string, (access?: Access) => Promise<Recorder>])[] = [
  ["SOCKS5", startSocks],
  ["HTTP CONNECT", startConnect],
];

for (const [kind, start] of KINDS) {
  describe(kind, () => {
    for (const access of [undefined, ACCESS]) {
      test(`a websocket passes ${access ? "with a password" : "without one"}, by name`, async () => {
        const proxy = await start(access);
        const { agent } = await routesThrough(readProxy(proxy.url), "ws://x", LIMIT_MS);
        const socket = new WebSocket(`ws://${NAME}:${port}/ws`, { agent });
        const [first] = await new Promise<unknown[]>((resolve, reject) => {
          socket.on("message", (...heard) => resolve(heard));
          socket.on("error", reject);
        });
        assert.equal(String(first), "hello");
        assert.deepEqual(proxy.passed, [{ host: NAME, port, isName: true }]);
        socket.terminate();
        await proxy.die();
      });
    }

    test("what is fetched passes, by name", async () => {
      const proxy = await start();
      const { dispatcher } = await routesThrough(readProxy(proxy.url), "ws://x", LIMIT_MS);
      const answer = await fetch(`http://${NAME}:${port}/file`, {
        dispatcher,
      } as RequestInit as globalThis.RequestInit);
      assert.equal(await answer.text(), "from the server");
      assert.deepEqual(proxy.passed, [{ host: NAME, port, isName: true }]);
      await dispatcher?.destroy();
      await proxy.die();
    });

    test("a wrong password is an error at once", async () => {
      const proxy = await start(ACCESS);
      const wrong = { ...readProxy(proxy.url), password: "wrong" };
      await assert.rejects(connectThrough(wrong, NAME, port, LIMIT_MS), (error) => {
        return error instanceof ProxyError && error.message.includes("authentication failed");
      });
      assert.deepEqual(proxy.passed, []);
      await proxy.die();
    });

    test("a proxy that is away is an error, and the server is not reached another way", async () => {
      const proxy = await start();
      await proxy.die();
      const { agent, dispatcher } = await routesThrough(readProxy(proxy.url), "ws://x", LIMIT_MS);
      const socket = new WebSocket(`ws://127.0.0.1:${port}/ws`, { agent });
      const error = await new Promise<Error>((resolve) => socket.on("error", resolve));
      assert.match(error.message, /^proxy: /);
      await assert.rejects(fetch(`http://127.0.0.1:${port}/`, { dispatcher } as RequestInit as globalThis.RequestInit));
    });
  });
}

test("a proxy that says nothing is given up", async () => {
  const mute = net.createServer(() => undefined);
  await new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve));
  const proxy = readProxy(`socks5h://127.0.0.1:${(mute.address() as AddressInfo).port}`);
  await assert.rejects(connectThrough(proxy, NAME, port, 100), /no answer in time/);
  mute.close();
});

test("with a proxy no library can go out directly, whatever it uses", () => {
  const script = fileURLToPath(new URL("./direct-tries.js", import.meta.url));
  const { stdout, status } = spawnSync(process.execPath, [script], { encoding: "utf8", timeout: 20_000 });
  assert.equal(status, 0);
  assert.deepEqual(JSON.parse(stdout), {
    allowed: "connected",
    "net.connect": "refused",
    "tls.connect": "refused",
    "http.get": "refused",
    fetch: "refused",
    "net.connect(port, host)": "refused",
  });
});
