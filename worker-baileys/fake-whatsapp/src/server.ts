/**
 * The fake WhatsApp as a whole: puts the parts together and opens its three ports, all on loopback.
 *
 * Websockets are taken on the plain port and on the media host's https port (`wss`). `main.ts` is the program around
 * it, `admin.ts` the way to tell it what to do.
 */

import { createServer as createHttp } from "node:http";
import type { IncomingMessage, Server } from "node:http";
import { createServer as createHttps } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import { Admin } from "./admin.js";
import { act, Behaviours } from "./behaviour.js";
import { Connection } from "./connection.js";
import type { Context } from "./context.js";
import { Devices } from "./devices.js";
import { EventLog } from "./events.js";
import { Inbound } from "./inbound.js";
import { loadKeys } from "./keys.js";
import { Ledger } from "./ledger.js";
import { MediaHost } from "./media.js";
import { Outbox } from "./outbox.js";
import { CodePairing } from "./pairing-code.js";
import { Pairing } from "./pairing.js";
import { Phones } from "./phones.js";
import { Sessions } from "./session.js";
import { StateFile } from "./state.js";
import { seededRandom, Timers } from "./timers.js";

const LOOPBACK = "127.0.0.1";
const LARGEST_FRAME_BYTES = 16 * 1024 * 1024;

export interface FakeOptions {
  /** 0 takes any free port. */
  port?: number;
  adminPort?: number;
  mediaPort?: number;
  /** Where the server's keys are, or are put. */
  keysDirectory: string;
  ledgerFile?: string;
  stateFile?: string;
  seed?: number;
}

export class FakeWhatsApp {
  readonly context: Context;
  readonly url: string;
  readonly secureUrl: string;
  readonly adminUrl: string;
  readonly codes: CodePairing;
  readonly sessions: Sessions;
  private readonly websockets = new WebSocketServer({ noServer: true, maxPayload: LARGEST_FRAME_BYTES });
  /** Every raw socket: one whose upgrade hangs belongs to nobody else, and would keep its server from closing. */
  private readonly sockets = new Set<Duplex>();

  private constructor(
    parts: Omit<Context, "pairing" | "inbound" | "mediaHost">,
    private readonly keys: ReturnType<typeof loadKeys>,
    private readonly servers: { chat: Server; media: Server; admin: Server },
  ) {
    const host = (server: Server): string => `${LOOPBACK}:${(server.address() as AddressInfo).port}`;
    this.url = `ws://${host(servers.chat)}/ws/chat`;
    this.secureUrl = `wss://${host(servers.media)}/ws/chat`;
    this.adminUrl = `http://${host(servers.admin)}`;
    const context = { ...parts, mediaHost: host(servers.media) } as Context;
    context.pairing = new Pairing(context);
    context.inbound = new Inbound(context);
    this.context = context;
    this.codes = new CodePairing(context);
    this.sessions = new Sessions(context, this.codes);
  }

  static async start(options: FakeOptions): Promise<FakeWhatsApp> {
    const keys = loadKeys(options.keysDirectory);
    const behaviours = new Behaviours();
    const events = new EventLog();
    const media = new MediaHost(behaviours, events);
    const servers = {
      chat: createHttp((_request, response) => response.writeHead(426).end()),
      media: createHttps({ key: keys.tls.keyPem, cert: keys.tls.certPem }, media.serve),
      admin: createHttp(),
    };
    await Promise.all([
      listen(servers.chat, options.port ?? 0),
      listen(servers.media, options.mediaPort ?? 0),
      listen(servers.admin, options.adminPort ?? 0),
    ]);
    // Only now: a second server that was started by mistake must fail at its ports, before it touches the files.
    const state = new StateFile(options.stateFile);
    const parts = {
      phones: new Phones(state),
      devices: new Devices(state),
      ledger: new Ledger(options.ledgerFile),
      behaviours,
      events,
      media,
      outbox: new Outbox(),
      timers: new Timers(),
      random: seededRandom(options.seed ?? 1),
    };
    const fake = new FakeWhatsApp(parts, keys, servers);
    fake.serve();
    return fake;
  }

  get caFile(): string {
    return this.keys.caFile;
  }

  get rootFile(): string {
    return this.keys.rootFile;
  }

  async close(): Promise<void> {
    this.context.timers.clear();
    for (const socket of this.sockets) socket.destroy();
    this.websockets.close();
    await Promise.all(Object.values(this.servers).map((server) => new Promise((done) => server.close(done))));
    this.context.timers.clear();
    this.context.ledger.close();
  }

  private serve(): void {
    const admin = new Admin(this);
    this.servers.admin.on("request", admin.serve);
    for (const server of Object.values(this.servers)) {
      server.on("connection", (socket: Duplex) => this.track(socket));
    }
    for (const server of [this.servers.chat, this.servers.media]) {
      server.on("connection", ({ remoteAddress }: Socket) =>
        this.context.events.add("connection", { from: remoteAddress }),
      );
      server.on("upgrade", (request, socket, head) => this.upgrade(request, socket, head));
    }
  }

  private track(socket: Duplex): void {
    this.sockets.add(socket);
    socket.on("close", () => this.sockets.delete(socket));
    socket.on("error", () => undefined);
  }

  private upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const hints = new URL(request.url ?? "/", "ws://localhost").searchParams;
    const { hangUpgrade, refuseUpgrade, noServerHello } = this.context.behaviours.for(hints.get("phone") ?? undefined);
    this.context.events.add("upgrade", { phone: hints.get("phone"), session: hints.get("session") });
    if (hangUpgrade) return;
    if (refuseUpgrade && act(refuseUpgrade)) {
      const connection = refuseUpgrade.keepOpen ? "keep-alive" : "close";
      socket.write(
        `HTTP/1.1 ${refuseUpgrade.status} Told to refuse\r\nConnection: ${connection}\r\nContent-Length: 0\r\n\r\n`,
      );
      if (!refuseUpgrade.keepOpen) socket.end();
      return;
    }
    this.websockets.handleUpgrade(request, socket, head, (websocket) => {
      const connection = new Connection(websocket, hints, this.keys.noise, this.sessions);
      if (noServerHello) connection.mute();
    });
  }
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, LOOPBACK, () => resolve());
  });
}
