/**
 * The ways out of this process. With a proxy all three of Baileys' go through it: the websocket (`agent`), uploads
 * (`fetchAgent`) and everything it downloads with fetch (`dispatcher`). Behind them stands a guard on the socket
 * itself: whatever else tries to connect anywhere but to the proxy and the orchestrator is refused. So nothing goes out
 * directly, not even when the proxy dies or a library finds a fourth way.
 */
import http from "node:http";
import https from "node:https";
import net from "node:net";
import type { Duplex } from "node:stream";
import tls from "node:tls";
import type { Agent as Dispatcher, buildConnector } from "undici";
import { log } from "../log.js";
import { connectThrough } from "./proxy-connect.js";
import type { Proxy } from "./proxy-url.js";

export interface Routes {
  readonly agent?: https.Agent;
  readonly fetchAgent?: https.Agent;
  readonly dispatcher?: Dispatcher;
}

type Created = (error: Error | null, socket: Duplex) => void;
type Target = { host?: string; hostname?: string; port?: number | string; servername?: string };

/** Without a proxy the libraries' own ways are used. */
export async function routesThrough(proxy: Proxy | null, whatsappUrl: string, timeoutMs: number): Promise<Routes> {
  if (proxy === null) return {};
  // Some 8 MB that a worker without a proxy need not hold.
  const { Agent } = await import("undici");
  const plain = async (target: Target): Promise<net.Socket> =>
    connectThrough(proxy, String(target.hostname ?? target.host), Number(target.port), timeoutMs);
  const secure = async (target: Target, options: tls.ConnectionOptions = {}): Promise<tls.TLSSocket> => {
    const name = target.servername || String(target.hostname ?? target.host);
    return handshaken(await plain(target), { ...options, servername: net.isIP(name) ? "" : name }, timeoutMs);
  };
  const agentFor = (isSecure: boolean): https.Agent => {
    const agent = isSecure ? new https.Agent() : new http.Agent();
    const createConnection = (options: Target & tls.ConnectionOptions, created: Created): undefined => {
      const { ca, cert, key, rejectUnauthorized } = options;
      const opened = isSecure ? secure(options, pick({ ca, cert, key, rejectUnauthorized })) : plain(options);
      opened.then(
        (socket) => created(null, socket),
        (error: Error) => created(error, undefined as never),
      );
    };
    Object.assign(agent, { createConnection });
    return agent as https.Agent;
  };
  const connect: buildConnector.connector = (options, callback) => {
    const target = { ...options, port: options.port || (options.protocol === "https:" ? 443 : 80) } as Target;
    const opened = options.protocol === "https:" ? secure(target, { ALPNProtocols: ["http/1.1"] }) : plain(target);
    opened.then(
      (socket) => callback(null, socket),
      (error: Error) => callback(error, null),
    );
  };
  return {
    agent: agentFor(new URL(whatsappUrl).protocol === "wss:"),
    fetchAgent: agentFor(true),
    dispatcher: new Agent({ connect }),
  };
}

function pick(options: tls.ConnectionOptions): tls.ConnectionOptions {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

function handshaken(socket: net.Socket, options: tls.ConnectionOptions, timeoutMs: number): Promise<tls.TLSSocket> {
  return new Promise((resolve, reject) => {
    const secured = tls.connect({ ...options, socket });
    const timer = setTimeout(() => secured.destroy(new Error("no TLS handshake in time")), timeoutMs);
    const fail = (error: Error): void => {
      clearTimeout(timer);
      reject(error);
    };
    secured.once("error", fail);
    secured.once("secureConnect", () => {
      clearTimeout(timer);
      secured.off("error", fail);
      resolve(secured);
    });
  });
}

/** Refuse every connection of this process but those to `allowed`. Cannot be undone. */
export function refuseDirectConnections(allowed: readonly { host: string; port: number }[]): void {
  const places = new Set(allowed.map(({ host, port }) => `${host}:${port}`));
  const connect = net.Socket.prototype.connect as (...args: unknown[]) => net.Socket;
  const guarded = function (this: net.Socket, ...args: unknown[]): net.Socket {
    const place = placeOf(args);
    if (places.has(place)) return connect.apply(this, args);
    log.error("a direct connection was refused", { place });
    process.nextTick(() => this.destroy(new Error("direct connections are not allowed beside a proxy")));
    return this;
  };
  net.Socket.prototype.connect = guarded as typeof net.Socket.prototype.connect;
}

/** Where a call of `connect` leads, whichever of its many forms it has. */
function placeOf(args: readonly unknown[]): string {
  const first: unknown = Array.isArray(args[0]) ? args[0][0] : args[0];
  if (typeof first === "object" && first !== null) {
    const { host, port, path } = first as { host?: string; port?: number | string; path?: string };
    return path && port === undefined ? `unix:${path}` : `${host ?? "localhost"}:${String(port)}`;
  }
  return `${typeof args[1] === "string" ? args[1] : "localhost"}:${String(first)}`;
}
