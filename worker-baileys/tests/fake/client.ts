/**
 * A client for tests: the unmodified library with credentials in memory, and everything it says kept in lists.
 *
 * One `Client` is one linked device; `connect` makes a new socket with the same credentials, as a worker does.
 */

import { Agent } from "node:https";
import { setTimeout as delay } from "node:timers/promises";
import makeWASocket, { initAuthCreds } from "baileys";
import type {
  AuthenticationCreds,
  BinaryNode,
  ConnectionState,
  SignalDataSet,
  SignalDataTypeMap,
  UserFacingSocketConfig,
  WAMessage,
  WAMessageUpdate,
} from "baileys";

/** Far above anything a passing test takes; a failing one ends here. */
const WAIT_LIMIT_MS = 60_000;
const LOOK_EVERY_MS = 5;

export type Socket = ReturnType<typeof makeWASocket>;

interface Boomed extends Error {
  output?: { statusCode: number };
  data?: unknown;
}

export interface Close {
  code: number | undefined;
  message: string;
  data: unknown;
}

export class Client {
  readonly creds: AuthenticationCreds = initAuthCreds();
  readonly updates: Partial<ConnectionState>[] = [];
  readonly acks: BinaryNode[] = [];
  readonly statuses: WAMessageUpdate[] = [];
  readonly received: { type: string; message: WAMessage }[] = [];
  readonly cappings: unknown[] = [];
  private readonly keys = new Map<string, unknown>();
  private current: Socket | undefined;

  constructor(
    readonly url: string,
    readonly options: Partial<UserFacingSocketConfig> = {},
  ) {}

  get socket(): Socket {
    if (!this.current) throw new Error("never connected");
    return this.current;
  }

  get phone(): string {
    return this.creds.me?.id.split(":")[0] ?? "";
  }

  get jid(): string {
    return this.creds.me?.id ?? "";
  }

  /** A new socket; what the older one said is forgotten. */
  connect(options: Partial<UserFacingSocketConfig> = {}): Socket {
    for (const list of [this.updates, this.acks, this.statuses, this.received, this.cappings]) list.length = 0;
    const socket = makeWASocket({
      auth: { creds: this.creds, keys: this.store() },
      waWebSocketUrl: this.url,
      logger: silentLogger,
      emitOwnEvents: false,
      connectTimeoutMs: 20_000,
      ...this.options,
      ...options,
    });
    this.current = socket;
    // An older socket may still have its end to report.
    const now = (): boolean => this.current === socket;
    socket.ev.on("creds.update", (update) => Object.assign(this.creds, update));
    socket.ev.on("connection.update", (update) => now() && this.updates.push(update));
    socket.ev.on("messages.update", (updates) => now() && this.statuses.push(...updates));
    socket.ev.on("messages.upsert", ({ type, messages }) => {
      if (now()) this.received.push(...messages.map((message) => ({ type, message })));
    });
    socket.ev.on("message-capping.update", (info) => now() && this.cappings.push(info));
    socket.ws.on("CB:ack,class:message", (ack: BinaryNode) => now() && this.acks.push(ack));
    return socket;
  }

  async qr(): Promise<string> {
    return waitFor("a QR code", () => this.updates.map(({ qr }) => qr).findLast(Boolean));
  }

  async open(): Promise<void> {
    await waitFor("open", () => this.updates.some(({ connection }) => connection === "open") || this.failedInstead());
  }

  /** How the connection ended. */
  async close(limitMs?: number): Promise<Close> {
    const update = await waitFor("close", () => this.updates.find(({ connection }) => connection === "close"), limitMs);
    const error = update.lastDisconnect?.error as Boomed | undefined;
    return { code: error?.output?.statusCode, message: error?.message ?? "", data: error?.data };
  }

  async ack(id: string): Promise<BinaryNode> {
    return waitFor(`the ack of ${id}`, () => this.acks.find(({ attrs }) => attrs.id === id));
  }

  /** The library's numbers: 0 error, 3 delivered, 4 read. */
  async status(id: string, status: number): Promise<WAMessageUpdate> {
    return waitFor(`status ${status} of ${id}`, () =>
      this.statuses.find(({ key, update }) => key.id === id && update.status === status),
    );
  }

  async message(text: string): Promise<{ type: string; message: WAMessage }> {
    return waitFor(`the message ${text}`, () =>
      this.received.find(({ message }) => message.message?.conversation === text),
    );
  }

  /** End without a word to the server, as a worker that stops. */
  end(): void {
    void this.current?.end(undefined);
  }

  /** The key store as it is now, and back to it: what a crash does to a worker that stores too late. */
  snapshot(): Map<string, unknown> {
    return structuredClone(this.keys);
  }

  restore(keys: Map<string, unknown>): void {
    this.keys.clear();
    for (const [name, value] of keys) this.keys.set(name, value);
  }

  private failedInstead(): false {
    const closed = this.updates.find(({ connection }) => connection === "close");
    if (closed) throw new Error(`closed instead: ${closed.lastDisconnect?.error?.message}`);
    return false;
  }

  private store() {
    return {
      get: async <Type extends keyof SignalDataTypeMap>(type: Type, ids: string[]) => {
        const found: Record<string, SignalDataTypeMap[Type]> = {};
        for (const id of ids) {
          const value = this.keys.get(`${type}/${id}`);
          if (value !== undefined) found[id] = value as SignalDataTypeMap[Type];
        }
        return found;
      },
      set: async (data: SignalDataSet) => {
        for (const [type, entries] of Object.entries(data)) {
          for (const [id, value] of Object.entries(entries ?? {})) {
            if (value === null || value === undefined) this.keys.delete(`${type}/${id}`);
            else this.keys.set(`${type}/${id}`, value);
          }
        }
      },
    };
  }
}

/** Uploads go over https; in the same process the CA cannot come by NODE_EXTRA_CA_CERTS. */
export function trusting(caPem: string): Agent {
  return new Agent({ ca: caPem });
}

/** Look until it is there, and fail with its name if it never is. */
export async function waitFor<Value>(
  what: string,
  look: () => Value | undefined | false | Promise<Value | undefined | false>,
  limitMs = WAIT_LIMIT_MS,
): Promise<Value> {
  for (const startedMs = Date.now(); Date.now() - startedMs < limitMs;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    await delay(LOOK_EVERY_MS);
  }
  throw new Error(`waited ${limitMs} ms for ${what}`);
}

const silent = (): void => undefined;
export const silentLogger = {
  level: "silent",
  child: () => silentLogger,
  trace: silent,
  debug: silent,
  info: silent,
  warn: silent,
  error: silent,
} as NonNullable<UserFacingSocketConfig["logger"]>;
