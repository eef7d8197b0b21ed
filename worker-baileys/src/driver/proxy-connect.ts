/**
 * A TCP connection through a proxy: SOCKS5 with the name left to the proxy, or HTTP CONNECT. Ours rather than a
 * library's, because one way has to serve the websocket, uploads and downloads alike, and because a proxy that says no
 * (407) must be an error at once: handed on as an answer, it leaves Baileys waiting for ever.
 */
import net from "node:net";
import tls from "node:tls";
import type { Proxy } from "./proxy-url.js";

/** The proxy is away or refuses. Nothing was sent to the destination. It has no `code`, so Baileys calls it 500. */
export class ProxyError extends Error {
  constructor(reason: string) {
    super(`proxy: ${reason}`);
  }
}

// What a CONNECT answer may take before it is no answer.
const HEAD_LIMIT_BYTES = 16_384;

const SOCKS_REPLIES: readonly string[] = [
  "",
  "general failure",
  "not allowed",
  "network unreachable",
  "host unreachable",
  "connection refused",
  "TTL expired",
  "command not supported",
  "address type not supported",
];

export async function connectThrough(proxy: Proxy, host: string, port: number, timeoutMs: number): Promise<net.Socket> {
  const socket =
    proxy.kind === "https"
      ? tls.connect({ host: proxy.host, port: proxy.port, servername: net.isIP(proxy.host) ? "" : proxy.host })
      : net.connect({ host: proxy.host, port: proxy.port });
  const timer = setTimeout(() => socket.destroy(new ProxyError("no answer in time")), timeoutMs);
  const talk = new Talk(socket);
  try {
    await talk.opened(proxy.kind === "https" ? "secureConnect" : "connect");
    await (proxy.kind === "socks5h" ? socksHandshake(talk, proxy, host, port) : httpHandshake(talk, proxy, host, port));
    talk.end();
    return socket;
  } catch (error) {
    socket.on("error", () => undefined);
    socket.destroy();
    throw error instanceof ProxyError ? error : new ProxyError((error as Error).message);
  } finally {
    clearTimeout(timer);
  }
}

/** Reads the proxy's words off a socket, and gives back what comes after them. */
class Talk {
  #heard = Buffer.alloc(0);
  #wake: () => void = () => undefined;
  #broken: Error | null = null;
  // Not "data": a socket that was made to flow, or paused, would not start by itself for whoever gets it.
  readonly #onReadable = (): void => {
    for (let chunk; (chunk = this.socket.read() as Buffer | null) !== null;)
      this.#heard = Buffer.concat([this.#heard, chunk]);
    this.#wake();
  };
  readonly #onError = (error: Error): void => {
    this.#broken ??= error;
    this.#wake();
  };
  readonly #onClose = (): void => this.#onError(new ProxyError("closed the connection"));

  constructor(private readonly socket: net.Socket) {
    socket.on("error", this.#onError);
    socket.on("close", this.#onClose);
  }

  async opened(event: "connect" | "secureConnect"): Promise<void> {
    let isOpen = false;
    this.socket.once(event, () => {
      isOpen = true;
      this.#wake();
    });
    await this.#until(() => isOpen);
    this.socket.on("readable", this.#onReadable);
  }

  say(bytes: Buffer): void {
    this.socket.write(bytes);
  }

  async take(count: number): Promise<Buffer> {
    await this.#until(() => this.#heard.length >= count);
    const taken = this.#heard.subarray(0, count);
    this.#heard = this.#heard.subarray(count);
    return taken;
  }

  async takeHead(): Promise<string> {
    const end = (): number => this.#heard.indexOf("\r\n\r\n");
    await this.#until(() => end() >= 0 || this.#heard.length > HEAD_LIMIT_BYTES);
    if (end() < 0) throw new ProxyError("answered at too great length");
    return (await this.take(end() + 4)).toString("latin1");
  }

  end(): void {
    this.socket.off("readable", this.#onReadable);
    this.socket.off("error", this.#onError);
    this.socket.off("close", this.#onClose);
    if (this.#heard.length > 0) this.socket.unshift(this.#heard);
  }

  async #until(isSo: () => boolean): Promise<void> {
    while (!isSo()) {
      if (this.#broken) throw this.#broken;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

async function socksHandshake(talk: Talk, proxy: Proxy, host: string, port: number): Promise<void> {
  talk.say(Buffer.from(proxy.user ? [5, 2, 0, 2] : [5, 1, 0]));
  const [, method] = await talk.take(2);
  if (method === 2) {
    const user = Buffer.from(proxy.user);
    const password = Buffer.from(proxy.password);
    talk.say(Buffer.concat([Buffer.from([1, user.length]), user, Buffer.from([password.length]), password]));
    if ((await talk.take(2))[1] !== 0) throw new ProxyError("authentication failed");
  } else if (method !== 0) {
    throw new ProxyError("wants an authentication that we do not have");
  }
  talk.say(Buffer.concat([Buffer.from([5, 1, 0]), socksAddress(host), Buffer.from([port >> 8, port & 255])]));
  const [, reply = 0, , type] = await talk.take(4);
  if (reply !== 0) throw new ProxyError(SOCKS_REPLIES[reply] ?? `refused (${reply})`);
  const length = type === 1 ? 4 : type === 4 ? 16 : ((await talk.take(1))[0] ?? 0);
  await talk.take(length + 2);
}

/** A name goes as a name: it is resolved at the proxy. */
function socksAddress(host: string): Buffer {
  const bare = host.replace(/^\[|\]$/g, "");
  if (net.isIPv4(bare)) return Buffer.from([1, ...bare.split(".").map(Number)]);
  const name = Buffer.from(bare);
  return Buffer.concat([Buffer.from([3, name.length]), name]);
}

async function httpHandshake(talk: Talk, proxy: Proxy, host: string, port: number): Promise<void> {
  const target = `${host.includes(":") && !host.startsWith("[") ? `[${host}]` : host}:${port}`;
  const credentials = Buffer.from(`${proxy.user}:${proxy.password}`).toString("base64");
  const lines = [`CONNECT ${target} HTTP/1.1`, `Host: ${target}`];
  if (proxy.user) lines.push(`Proxy-Authorization: Basic ${credentials}`);
  talk.say(Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"));
  const status = Number((await talk.takeHead()).split(" ")[1]);
  if (status === 407) throw new ProxyError("authentication failed (407)");
  if (!(status >= 200 && status < 300)) throw new ProxyError(`refused to connect (${status})`);
}
