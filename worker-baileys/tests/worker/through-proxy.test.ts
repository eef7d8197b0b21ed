/**
 * Behind a proxy: socket, upload and download pass through it by name, and nothing goes another way, also when it dies.
 * The fake server sees the address that each connection came from, and a proxy has one of its own.
 */
import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { type Access, PROXY_ADDRESS, type Recorder, startConnect, startSocks } from "./proxies.js";
import { Stage, until, type Worker } from "./stage.js";

const ACCESS: Access = { user: "fleet", password: "proxy-pass-word" };
// Where the library downloads from, whatever it is told.
const DOWNLOADS = "mmg.whatsapp.net";
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
    let worker: Worker;
    let proxy: Recorder;
    let ports: { chat: number; media: number };

    before(async () => {
      stage = await Stage.start();
      proxy = await start(ACCESS);
      // The fake's own name for its media host is an address; a name shows where it is resolved.
      const media = Number(stage.fake.context.mediaHost.split(":")[1]);
      proxy.ports.set(DOWNLOADS, media);
      await stage.behave({ mediaHosts: [`localhost:${media}`], historyAsFile: true });
      // Once in clear and once in TLS, as the real one.
      const url = kind === "SOCKS5" ? stage.fake.url : stage.fake.secureUrl;
      ports = { chat: Number(new URL(url).port), media };
      stage.env = { PROXY_URL: proxy.url, WHATSAPP_URL: url.replace("127.0.0.1", "localhost") };
      worker = await stage.linked();
    });
    afterEach(() => nothingWentDirectly());
    after(async () => {
      await stage.stop();
      await proxy.die();
    });

    function nothingWentDirectly(): void {
      const { events } = stage.fake.context.events.after(0);
      const callers = new Set(events.filter((event) => event.kind === "connection").map((event) => event["from"]));
      assert.deepEqual([...callers], [PROXY_ADDRESS]);
      assert.ok(!stage.workers.some(({ output }) => output.includes("a direct connection was refused")));
    }

    /** Two tries of this worker have found no proxy, and WhatsApp knows of none. */
    async function triedInVain(): Promise<void> {
      const tries = (): number => (worker.output.match(/proxy: /g) ?? []).length;
      const before = tries();
      await until("two tries", () => tries() >= before + 2);
      assert.equal((await stage.admin<{ connections: number }>("GET", "/stats")).connections, 0);
    }

    test("the socket, a download and an upload pass through it, by name, and nothing else passes", async () => {
      await until("the download", () => stage.fake.context.events.counts["download"]);
      const media = { content: PNG, type: "image/png", kind: "png" };
      const task = stage.orchestrator.add({ to: "972541110001", text: "through", mode: "image", media });
      await stage.settled(task);
      const places = [...new Set(proxy.passed.map(({ host, port, isName }) => `${host}:${port} ${isName}`))].sort();
      const expected = new Set([
        `localhost:${ports.chat} true`,
        `localhost:${ports.media} true`,
        `${DOWNLOADS}:443 true`,
      ]);
      assert.deepEqual(places, [...expected].sort());
    });

    test("when it dies the session is told as disconnected, and it comes back by itself", async () => {
      const passed = proxy.passed.length;
      const [times, ends] = [
        stage.orchestrator.named("CONNECTED").length,
        stage.orchestrator.named("DISCONNECTED").length,
      ];
      await proxy.die();
      await until("DISCONNECTED", () => stage.orchestrator.named("DISCONNECTED").length > ends);
      await triedInVain();
      const task = stage.orchestrator.add({ to: "972541110001", text: "after the proxy" });
      await proxy.resume();
      await stage.online(times);
      await stage.settled(task);
      assert.ok(proxy.passed.length > passed);
    });

    test("when it dies in the middle of an upload the message waits for it, and goes once", async () => {
      await stage.behave({ mediaFault: { kind: "hang", times: 1 } });
      const media = { content: Buffer.concat([PNG, Buffer.from("2")]), type: "image/png", kind: "png" };
      const task = stage.orchestrator.add({ to: "972541110001", text: "half way", mode: "image", media });
      await until("the upload", () => stage.fake.context.events.counts["media-fault"]);
      await proxy.die();
      await triedInVain();
      assert.equal((await stage.ledger()).filter(({ text }) => text === "half way").length, 0);
      await proxy.resume();
      await stage.settled(task);
      assert.deepEqual(task.nacks, ["returned"]);
      assert.equal((await stage.ledger()).filter(({ text }) => text === "half way").length, 1);
    });

    test("a worker that is started without it waits for it", async () => {
      await worker.kill();
      await proxy.die();
      const times = stage.orchestrator.named("CONNECTED").length;
      worker = stage.work();
      await triedInVain();
      await proxy.resume();
      await stage.online(times);
    });

    test("its password is in no log and no event", () => {
      const said = stage.workers.map(({ output }) => output).join() + JSON.stringify(stage.orchestrator.events);
      assert.ok(!said.includes(ACCESS.password));
    });

    test("a wrong password is told as 500, and not as a ban or a logout", async () => {
      await worker.kill();
      const ends = stage.orchestrator.named("DISCONNECTED").length;
      worker = stage.work({ PROXY_URL: proxy.url.replace("proxy-pass-word", "wrong") });
      await until("DISCONNECTED", () => stage.orchestrator.named("DISCONNECTED").length > ends);
      const { data } = stage.orchestrator.named("DISCONNECTED").at(-1) ?? { data: {} as Record<string, unknown> };
      assert.equal(data["code"], 500);
      assert.match(String(data["reason"]), /proxy: authentication failed/);
    });
  });
}
