/**
 * One connection of one session, from `makeWASocket` to its end. A new one is made for every try; Baileys' sockets
 * cannot be opened twice. It hands on what it hears and decides nothing, but for two watchdogs: the library is silent
 * for ever when the upgrade is answered with anything but 101, or when the server never says `success`; and it waits
 * half a minute for a dead peer to say goodbye.
 */
import {
  type BinaryNode,
  makeWASocket,
  type NewChatMessageCapInfo,
  type ReachoutTimelockState,
  type UserFacingSocketConfig,
  type WASocket,
} from "baileys";
import type { IncomingMessage } from "node:http";
import type { WebSocket } from "ws";
import { TIMED_OUT } from "../disconnects.js";
import { libraryLogger, log } from "../log.js";
import type { Timings } from "../timings.js";
import type { AuthState } from "./auth-state.js";
import { endError, type Ending, endingOf, upgradeCode } from "./endings.js";
import type { Inbox, NumberOf } from "./inbound.js";
import type { Routes } from "./routes.js";

// How long a peer may take to say goodbye before its socket is torn down.
const GOODBYE_MS = 2_000;
// WhatsApp's own: the first code lives longer.
const FIRST_QR_MS = 60_000;
const NEXT_QR_MS = 20_000;

export interface Ears {
  opened(): void;
  qr(text: string, validMs: number): void;
  ended(ending: Ending): void;
  ack(node: BinaryNode): void;
  receipt(node: BinaryNode): void;
  notification(node: BinaryNode): void;
  readonly inbox: Inbox;
  timeLock(lock: ReachoutTimelockState): void;
  cap(cap: NewChatMessageCapInfo): void;
}

export interface ConnectionSettings {
  readonly whatsappUrl: string;
  readonly whatsappVersion: readonly [number, number, number] | null;
  readonly routes: Routes;
  readonly timings: Timings;
}

export class Connection {
  readonly sock: WASocket;
  #isOpen = false;
  #isOver = false;
  #hasSign = false;
  #qrCodes = 0;
  #heardAtMs = performance.now();
  readonly #watchdog: NodeJS.Timeout;
  readonly #silenceWatch: NodeJS.Timeout;

  constructor(
    private readonly auth: AuthState,
    private readonly settings: ConnectionSettings,
    private readonly ears: Ears,
  ) {
    const { timings } = settings;
    this.sock = makeWASocket(this.#config());
    this.#listen();
    this.#watchdog = setTimeout(() => {
      if (!this.#hasSign) this.end("no sign of life: neither open nor a code nor an end", TIMED_OUT);
    }, timings.watchdogMs);
    this.#silenceWatch = setInterval(
      () => {
        if (this.#isOpen && this.quietMs > timings.silenceMs) this.end("Connection was lost (silence)", TIMED_OUT);
      },
      Math.max(50, timings.silenceMs / 4),
    );
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  get showsCodes(): boolean {
    return this.#qrCodes > 0 && !this.#isOver;
  }

  /** Since when not a frame has come. */
  get quietMs(): number {
    return Math.floor(performance.now() - this.#heardAtMs);
  }

  /** Ends it; `ended` is told once the socket is gone, which is soon. */
  end(reason: string, code: number): void {
    if (this.#isOver) return;
    log.info("ending the connection", { reason, code });
    void this.sock.end(endError(reason, code));
    this.#tearDownSoon();
  }

  /** Ends it and tells nobody. */
  async close(): Promise<void> {
    if (this.#isOver) return;
    this.#finish();
    const ended = this.sock.end(undefined);
    this.#tearDownSoon();
    await ended;
  }

  /** Not a word more goes out over it, from this very moment. */
  cut(): void {
    this.#socket?.terminate();
  }

  #config(): UserFacingSocketConfig {
    const { whatsappUrl, whatsappVersion, routes, timings } = this.settings;
    return {
      auth: this.auth.forConnection(),
      makeSignalRepository: this.auth.signalRepository((ciphertext, plaintext) =>
        this.ears.inbox.hear(ciphertext, plaintext, this.#numberOf),
      ),
      waWebSocketUrl: whatsappUrl,
      ...(whatsappVersion && { version: [...whatsappVersion] as [number, number, number] }),
      ...(routes.agent && { agent: routes.agent }),
      ...(routes.fetchAgent && { fetchAgent: routes.fetchAgent }),
      ...(routes.dispatcher && { options: { dispatcher: routes.dispatcher } as unknown as RequestInit }),
      logger: libraryLogger(),
      connectTimeoutMs: timings.connectMs,
      keepAliveIntervalMs: timings.keepAliveMs,
      defaultQueryTimeoutMs: timings.queryMs,
      ...(timings.qrMs > 0 && { qrTimeout: timings.qrMs }),
      // With the default, what is said of our own messages gets stuck in a buffer behind them.
      emitOwnEvents: false,
      syncFullHistory: false,
      getMessage: (key) => Promise.resolve(key.id ? this.auth.sent(key.id) : undefined),
    };
  }

  #listen(): void {
    const { ev, ws } = this.sock;
    ev.on("creds.update", () => this.auth.saveCreds());
    ev.on("connection.update", (update) => {
      if (this.#isOver) return;
      if (update.reachoutTimeLock) this.ears.timeLock(update.reachoutTimeLock);
      if (update.qr) this.#showQr(update.qr);
      if (update.connection === "open") {
        this.#hasSign = this.#isOpen = true;
        this.ears.opened();
      }
      if (update.connection === "close") {
        this.#finish();
        this.ears.ended(endingOf(update.lastDisconnect?.error));
      }
    });
    ev.on("message-capping.update", (cap) => this.ears.cap(cap));
    ev.on("messages.upsert", ({ messages }) => {
      for (const message of messages) void this.ears.inbox.take(message, this.#numberOf);
    });
    ws.on("frame", () => (this.#heardAtMs = performance.now()));
    ws.on("CB:message", (node: BinaryNode) => this.ears.inbox.expect(node));
    ws.on("CB:ack,class:message", (node: BinaryNode) => this.ears.ack(node));
    ws.on("CB:receipt", (node: BinaryNode) => this.ears.receipt(node));
    ws.on("CB:notification", (node: BinaryNode) => this.ears.notification(node));
    // Baileys subscribes to this, so `ws` raises no error, and nobody acts on it.
    ws.on("unexpected-response", (_request: unknown, response: IncomingMessage) => {
      const status = response.statusCode ?? 0;
      this.end(`upgrade answered ${status}`, upgradeCode(status));
    });
  }

  readonly #numberOf: NumberOf = (lid) => this.sock.signalRepository.lidMapping.getPNForLID(lid);

  #showQr(text: string): void {
    this.#hasSign = true;
    this.#qrCodes += 1;
    this.ears.qr(text, this.settings.timings.qrMs || (this.#qrCodes === 1 ? FIRST_QR_MS : NEXT_QR_MS));
  }

  #finish(): void {
    this.#isOver = true;
    this.#isOpen = false;
    clearTimeout(this.#watchdog);
    clearInterval(this.#silenceWatch);
  }

  get #socket(): WebSocket | null {
    return (this.sock.ws as unknown as { socket: WebSocket | null }).socket;
  }

  #tearDownSoon(): void {
    const socket = this.#socket;
    setTimeout(() => socket?.terminate(), GOODBYE_MS).unref();
  }
}
