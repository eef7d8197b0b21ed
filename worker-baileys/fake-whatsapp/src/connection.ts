/**
 * One websocket of one client: handshake, then binary nodes in both directions, in order.
 *
 * Knows nothing of what the nodes mean: `session.ts` decides on the login and answers them. A connection can be made
 * silent, which is how a dead network looks from the other side.
 */

import { decodeBinaryNode, encodeBinaryNode } from "baileys";
import type { BinaryNode } from "baileys";
import type { WebSocket } from "ws";
import type { NoiseIdentity } from "./certificates.js";
import type { Device } from "./devices.js";
import { frame, FrameReader, NoiseResponder } from "./noise.js";
import type { ClientFinish } from "./noise.js";
import { node } from "./nodes.js";
import type { Registration } from "./pairing.js";

/** A client that was told to go closes by itself; if it does not, it is cut after this time. */
const GOODBYE_MS = 1000;

export interface ConnectionHandlers {
  opened(connection: Connection, finish: ClientFinish): Promise<void>;
  received(connection: Connection, received: BinaryNode): Promise<void>;
  closed(connection: Connection): void;
  failed(connection: Connection, error: Error): void;
}

export class Connection {
  /** Set once the client has said who it is: a new client that wants to be linked, or a linked device. */
  registration: Registration | undefined;
  device: Device | undefined;
  private silent = false;
  /** Logged in and ready to be told what happened meanwhile. */
  active = false;
  private readonly reader = new FrameReader();
  private readonly noise: NoiseResponder;
  private phase: "hello" | "finish" | "open" = "hello";
  private work: Promise<void> = Promise.resolve();
  private goodbye: NodeJS.Timeout | undefined;
  private nextId = 1;

  constructor(
    private readonly socket: WebSocket,
    /** What the client's URL says beside the path: `phone` and `session`, see the README. */
    readonly hints: URLSearchParams,
    identity: NoiseIdentity,
    private readonly handlers: ConnectionHandlers,
  ) {
    this.noise = new NoiseResponder(identity.staticKey, identity.certificate);
    socket.on("message", (data: Buffer) => this.receive(data));
    socket.on("close", () => this.whenClosed());
    // A reset connection is also closed; there is nothing more to do about it.
    socket.on("error", () => undefined);
  }

  get isOpen(): boolean {
    return this.phase === "open" && this.socket.readyState === this.socket.OPEN;
  }

  send(stanza: BinaryNode): void {
    if (this.silent || !this.isOpen) return;
    this.socket.send(frame(this.noise.seal(encodeBinaryNode(stanza))));
  }

  /** An id for a stanza that the server starts. */
  newId(): string {
    return `srv-${this.nextId++}`;
  }

  /** Tell the client why, and let it close. */
  dismiss(reason: BinaryNode): void {
    this.send(reason);
    // What the client still has to say is not heard: it has no session any more.
    this.mute();
    this.goodbye ??= setTimeout(() => this.socket.terminate(), GOODBYE_MS);
  }

  streamError(attributes: Record<string, string>, detail?: BinaryNode): void {
    this.dismiss(node("stream:error", attributes, detail && [detail]));
  }

  /** Say nothing more, whatever comes in. The client can still close. */
  mute(): void {
    this.silent = true;
  }

  /** As a dead network: nothing goes out, and nothing is read, not even the client's wish to close. */
  silence(): void {
    this.mute();
    this.socket.pause();
  }

  /** As a broken cable: no goodbye. */
  cut(): void {
    this.socket.terminate();
  }

  /** Frames are handled one after the other, whatever each of them waits for. */
  private receive(data: Buffer): void {
    if (this.silent) return;
    try {
      for (const body of this.reader.push(data)) {
        this.work = this.work.then(() => this.handle(body)).catch((error: Error) => this.fail(error));
      }
    } catch (error) {
      this.fail(error as Error);
      this.cut();
    }
  }

  /** A stanza that could not be handled is noted; a handshake that went wrong is the end. */
  private fail(error: Error): void {
    this.handlers.failed(this, error);
    if (this.phase !== "open") this.cut();
  }

  private async handle(body: Buffer): Promise<void> {
    if (this.silent) return;
    if (this.phase === "open") {
      await this.handlers.received(this, await decodeBinaryNode(this.noise.open(body)));
    } else if (this.phase === "hello") {
      this.phase = "finish";
      this.socket.send(frame(this.noise.readHello(body)));
    } else {
      const finish = this.noise.readFinish(body);
      this.phase = "open";
      await this.handlers.opened(this, finish);
    }
  }

  private whenClosed(): void {
    clearTimeout(this.goodbye);
    this.handlers.closed(this);
  }
}
