/**
 * Tries every way out of a process that may only speak to one place, and says what became of each. For `proxy.test.ts`.
 */
import http from "node:http";
import net, { type AddressInfo } from "node:net";
import tls from "node:tls";
import { refuseDirectConnections } from "../../src/driver/routes.js";
import { writeLogTo } from "../../src/log.js";

writeLogTo(() => undefined);
const listening = (): Promise<AddressInfo> =>
  new Promise((resolve) => {
    const server = net.createServer((socket) => socket.end());
    server.unref().listen(0, "127.0.0.1", () => resolve(server.address() as AddressInfo));
  });
const allowed = await listening();
const { port } = await listening();
refuseDirectConnections([{ host: "127.0.0.1", port: allowed.port }]);

type Emitter = { once(event: string, listener: (...args: never[]) => void): unknown };
const outcome = (emitter: Emitter, event = "connect"): Promise<string> =>
  new Promise((resolve) => {
    emitter.once(event, () => resolve("connected"));
    emitter.once("error", (error: Error) => resolve(error.message.includes("not allowed") ? "refused" : error.message));
  });
const fetched = fetch(`http://127.0.0.1:${port}/`).then(
  () => "connected",
  (error: Error) =>
    String((error.cause as Error | undefined)?.message).includes("not allowed") ? "refused" : error.message,
);
const results = {
  allowed: await outcome(net.connect({ port: allowed.port, host: "127.0.0.1" })),
  "net.connect": await outcome(net.connect({ port, host: "127.0.0.1" })),
  "tls.connect": await outcome(tls.connect({ port, host: "127.0.0.1" }), "secureConnect"),
  "http.get": await outcome(http.get(`http://127.0.0.1:${port}/`), "response"),
  fetch: await fetched,
  "net.connect(port, host)": await outcome(net.connect(port, "127.0.0.1")),
};
process.stdout.write(JSON.stringify(results));
process.exit(0);
