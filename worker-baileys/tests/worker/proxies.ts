/**
 * Two proxies on loopback that write down what passes: SOCKS5 and HTTP CONNECT. Whatever name they are given leads to
 * 127.0.0.1, so a test may use names that no resolver knows: if a connection stands, the name was resolved here. They
 * call from an address of their own, so a server sees who came another way.
 */
import net, { type AddressInfo } from "node:net";

/** Loopback like 127.0.0.1, from which everybody else calls. */
export const PROXY_ADDRESS = "127.0.0.2";

export interface Passed {
  readonly host: string;
  readonly port: number;
  /** Whether a name was asked for, and not an address. */
  readonly isName: boolean;
}

export interface Recorder {
  readonly url: string;
  readonly port: number;
  readonly passed: Passed[];
  /** Names whose port is another one here. */
  readonly ports: Map<string, number>;
  /** Ends all connections and takes no more, until `resume`. */
  die(): Promise<void>;
  resume(): Promise<void>;
}

export interface Access {
  readonly user: string;
  readonly password: string;
}

type Serve = (client: net.Socket, open: (host: string, port: number, ready: () => void) => void) => void;

export function startSocks(access?: Access): Promise<Recorder> {
  return start("socks5h", access, (client, open) => {
    let step = 0;
    let heard = Buffer.alloc(0);
    const onData = (chunk: Buffer): void => {
      heard = Buffer.concat([heard, chunk]);
      if (step === 0 && heard.length >= 2 + (heard[1] ?? 0)) {
        heard = heard.subarray(2 + (heard[1] ?? 0));
        client.write(Buffer.from([5, access ? 2 : 0]));
        step = access ? 1 : 2;
      }
      if (step === 1 && heard.length >= 2) {
        const userLength = heard[1] ?? 0;
        const passwordLength = heard[2 + userLength] ?? 0;
        if (heard.length < 3 + userLength + passwordLength) return;
        const user = heard.subarray(2, 2 + userLength).toString();
        const password = heard.subarray(3 + userLength, 3 + userLength + passwordLength).toString();
        heard = heard.subarray(3 + userLength + passwordLength);
        const isRight = user === access?.user && password === access.password;
        client.write(Buffer.from([1, isRight ? 0 : 1]));
        if (!isRight) client.end();
        step = 2;
      }
      if (step === 2 && heard.length >= 5) {
        const isName = heard[3] === 3;
        const length = isName ? (heard[4] ?? 0) : 4;
        const at = isName ? 5 : 4;
        if (heard.length < at + length + 2) return;
        const host = isName ? heard.subarray(at, at + length).toString() : [...heard.subarray(at, at + 4)].join(".");
        step = 3;
        client.off("data", onData);
        open(host, heard.readUInt16BE(at + length), () => client.write(Buffer.from([5, 0, 0, 1, 127, 0, 0, 1, 0, 0])));
      }
    };
    client.on("data", onData);
  });
}

export function startConnect(access?: Access): Promise<Recorder> {
  return start("http", access, (client, open) => {
    let heard = "";
    const onData = (chunk: Buffer): void => {
      heard += chunk.toString("latin1");
      if (!heard.includes("\r\n\r\n")) return;
      client.off("data", onData);
      const wanted = access && Buffer.from(`${access.user}:${access.password}`).toString("base64");
      const [, host = "", port = "0"] = /^CONNECT (.+):(\d+) HTTP/.exec(heard) ?? [];
      if (wanted && !heard.includes(`Proxy-Authorization: Basic ${wanted}\r\n`)) {
        client.end("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n");
        return;
      }
      open(host, Number(port), () => client.write("HTTP/1.1 200 Connection established\r\n\r\n"));
    };
    client.on("data", onData);
  });
}

async function start(scheme: string, access: Access | undefined, serve: Serve): Promise<Recorder> {
  const passed: Passed[] = [];
  const ports = new Map<string, number>();
  const sockets = new Set<net.Socket>();
  const keep = (socket: net.Socket): void => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => sockets.delete(socket));
  };
  const server = net.createServer((client) => {
    keep(client);
    serve(client, (host, port, ready) => {
      passed.push({ host, port, isName: net.isIP(host) === 0 });
      const place = { host: "127.0.0.1", port: ports.get(host) ?? port, localAddress: PROXY_ADDRESS };
      const target = net.connect(place, () => {
        ready();
        client.pipe(target).pipe(client);
      });
      keep(target);
      target.on("close", () => client.destroy());
      client.on("close", () => target.destroy());
    });
  });
  const listen = (port: number): Promise<void> =>
    new Promise((resolve) => server.listen(port, "127.0.0.1", () => resolve()));
  await listen(0);
  const { port } = server.address() as AddressInfo;
  const credentials = access ? `${encodeURIComponent(access.user)}:${encodeURIComponent(access.password)}@` : "";
  return {
    url: `${scheme}://${credentials}127.0.0.1:${port}`,
    port,
    passed,
    ports,
    die: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
    resume: () => listen(port),
  };
}
