/** Behind a proxy: socket and upload pass through it by name, and nothing goes another way, also when it dies. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type Access, type Recorder, startConnect, startSocks } from "./proxies.js";
import { Stage, until } from "./stage.js";

const ACCESS: Access = { user: "fleet", password: "proxy-pass-word" };
const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

for (const [kind, start] of [
  ["SOCKS5", startSocks],
  ["HTTP CONNECT", startConnect],
] as const) {
  describe(kind, () => {
    let stage: Stage;
    let proxy: Recorder;
    let ports: { chat: number; media: number };

    before(async () => {
      stage = await Stage.start();
      proxy = await start(ACCESS);
      // The fake's own name for its media host is an address; a name shows where it is resolved.
      const media = Number(stage.fake.context.mediaHost.split(":")[1]);
      await stage.behave({ mediaHosts: [`localhost:${media}`] });
      // Once in clear and once in TLS, as the real one.
      const url = kind === "SOCKS5" ? stage.fake.url : stage.fake.secureUrl;
      ports = { chat: Number(new URL(url).port), media };
      stage.env = { PROXY_URL: proxy.url, WHATSAPP_URL: url.replace("127.0.0.1", "localhost") };
      await stage.linked();
    });
    after(async () => {
      await stage.stop();
      await proxy.die();
    });

    test("the socket and an upload pass through it, by name, and nothing else passes", async () => {
      const media = { content: PNG, type: "image/png", kind: "png" };
      const task = stage.orchestrator.add({ to: "972541110001", text: "through", mode: "image", media });
      await stage.settled(task);
      const places = [...new Set(proxy.passed.map(({ host, port, isName }) => `${host}:${port} ${isName}`))].sort();
      const expected = new Set([`localhost:${ports.chat} true`, `localhost:${ports.media} true`]);
      assert.deepEqual(places, [...expected].sort());
      const [worker] = stage.workers;
      assert.ok(!worker?.output.includes("a direct connection was refused"));
    });

    test("when it dies the session is told as disconnected, nothing goes directly, and it comes back by itself", async () => {
      const [worker] = stage.workers;
      const { connected } = await stage.admin<{ connected: number }>("GET", "/stats");
      assert.equal(connected, 1);
      const passed = proxy.passed.length;
      const [times, ends] = [
        stage.orchestrator.named("CONNECTED").length,
        stage.orchestrator.named("DISCONNECTED").length,
      ];
      await proxy.die();
      await until("DISCONNECTED", () => stage.orchestrator.named("DISCONNECTED").length > ends);
      await until("two tries", () => (worker?.output.match(/proxy: /g) ?? []).length >= 2);
      assert.equal((await stage.admin<{ connections: number }>("GET", "/stats")).connections, 0);
      const task = stage.orchestrator.add({ to: "972541110001", text: "after the proxy" });
      await proxy.resume();
      await stage.online(times);
      await stage.settled(task);
      assert.ok(proxy.passed.length > passed);
    });

    test("its password is in no log and no event", () => {
      const said = stage.workers.map(({ output }) => output).join() + JSON.stringify(stage.orchestrator.events);
      assert.ok(!said.includes(ACCESS.password));
    });

    test("a wrong password is told as 500, and not as a ban or a logout", async () => {
      await stage.workers[0]?.kill();
      const ends = stage.orchestrator.named("DISCONNECTED").length;
      const worker = stage.work({ PROXY_URL: proxy.url.replace("proxy-pass-word", "wrong") });
      await until("DISCONNECTED", () => stage.orchestrator.named("DISCONNECTED").length > ends);
      const { data } = stage.orchestrator.named("DISCONNECTED").at(-1) ?? { data: {} as Record<string, unknown> };
      assert.equal(data["code"], 500);
      assert.match(String(data["reason"]), /proxy: authentication failed/);
      await worker.kill();
    });
  });
}
