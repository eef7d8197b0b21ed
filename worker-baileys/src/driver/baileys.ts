/**
 * The `baileys` driver: one session on WhatsApp, one live connection at most. It carries out what `core` asks for and
 * tells what it saw; `connection.ts` is one connection, `writing.ts` how a message is made and written.
 */
import { type BinaryNode, jidDecode, type proto } from "baileys";
import { type Clock, Wake } from "../clock.js";
import { CONNECTION_CLOSED, LOGGED_OUT, NO_LINKED_DEVICES, WRONG_NUMBER } from "../disconnects.js";
import {
  CONNECTION_LOST,
  MEDIA_UNAVAILABLE,
  RESTRICTED,
  refusalOf,
  SEND_FAILED,
  type SendError,
  SMAX_INVALID,
} from "../failures.js";
import { log } from "../log.js";
import { isAnotherNumber, isSameNumber } from "../numbers.js";
import type { AuthState } from "./auth-state.js";
import { Connection, type ConnectionSettings, type Ears } from "./connection.js";
import { type Ending, ofAnotherNumber } from "./endings.js";
import { Guard } from "./guard.js";
import { Inbox } from "./inbound.js";
import {
  CannotLink,
  type Driver,
  type DriverEvent,
  NotConnected,
  NotYet,
  type OutgoingMessage,
  type PairingCode,
  type Ready,
  type SendOutcome,
} from "./port.js";
import { Restrictions } from "./restrictions.js";
import { ackOf, receiptOf, removalOf, wantsPasskey } from "./stanzas.js";
import { directoryOf, forgetContact, messageFor, showTyping, writeMessage } from "./writing.js";

const PAIRING_VALID_MS = 180_000;
const LOGOUT_MS = 10_000;

export interface BaileysParts extends ConnectionSettings {
  readonly auth: AuthState;
  /** The number that the session is for; no other is sent from. */
  readonly phone: string;
  readonly clock: Clock;
  /** The orchestrator's time. */
  readonly serverMs: () => number;
  /** What the journal holds of the last try of this message. */
  readonly lastError: (whatsappId: string) => SendError | null;
}

type Refusal = { readonly kind: "refused"; readonly error: SendError };

interface ReadyMessage extends Ready {
  readonly connection: Connection;
  readonly message: proto.IMessage;
  /** Why the try before this one failed, if there was one. */
  readonly lastError: SendError | null;
}

export class BaileysDriver implements Driver {
  readonly name = "baileys";
  onEvent: (event: DriverEvent) => void = () => undefined;
  #connection: Connection | null = null;
  #isClosed = false;
  readonly #guard: Guard;
  readonly #restrictions: Restrictions;
  readonly #inbox = new Inbox(() => this.parts.auth.me, (inbound) => this.#tell({ kind: "received", ...inbound }));
  readonly #wake = new Wake();
  // At most one message is under way at a time; what is said of an older one is an event only.
  #written: ReadyMessage | null = null;
  #outcome: SendOutcome | null = null;

  constructor(private readonly parts: BaileysParts) {
    this.#guard = new Guard(parts.clock, parts.timings);
    this.#restrictions = new Restrictions(
      (restriction, untilMs) => this.#tell({ kind: "restriction", restriction, untilMs }),
      parts.serverMs,
    );
  }

  get linked(): boolean {
    return this.parts.auth.linked;
  }

  connect(): void {
    if (this.#connection !== null || this.#isClosed) return;
    this.#connection = new Connection(this.parts.auth, this.parts, this.#ears());
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const connection = this.#connection;
    this.#connection = null;
    await connection?.close();
    this.parts.auth.close();
  }

  quietMs(): number | null {
    return this.#open()?.quietMs ?? null;
  }

  async waitConnected(timeoutMs: number): Promise<boolean> {
    if (!this.#open()) await this.#wake.waitMs(timeoutMs);
    return this.#open() !== null;
  }

  async pair(): Promise<PairingCode> {
    const { phone } = this.parts;
    if (this.linked) throw new CannotLink("it is linked already");
    if (!this.#connection?.showsCodes) throw new NotYet("no code is shown now");
    const text = await this.#connection.sock.requestPairingCode(phone).catch((error: unknown) => {
      throw new CannotLink(`no pairing code: ${String(error)}`);
    });
    return { text: `${text.slice(0, 4)}-${text.slice(4)}`, validMs: PAIRING_VALID_MS };
  }

  async logout(): Promise<void> {
    const { auth, clock } = this.parts;
    if (!auth.linked) throw new CannotLink("it is not linked");
    const connection = this.#open();
    if (!connection) throw new NotYet("there is no connection to log out over");
    const answer = await connection.sock.query(removalOf(auth.me?.id ?? ""), LOGOUT_MS).catch(() => undefined);
    // The server may end the connection instead of answering; `#ended` has then seen its word.
    if (!answer && auth.linked) throw new CannotLink("the server did not confirm the logout");
    if (auth.linked) {
      auth.startAnew(clock.nowMs());
      connection.end("logged out by an operator", LOGGED_OUT);
    }
  }

  async prepare(outgoing: OutgoingMessage): Promise<ReadyMessage | Refusal> {
    const connection = this.#mustBeOpen();
    // Before the intent of this try takes its place in the journal.
    const lastError = this.parts.lastError(outgoing.whatsappId);
    const failed = (error: unknown, code: string): Refusal => {
      // The library's error says little once the connection is gone, and it is not the message's fault.
      if (!connection.isOpen) throw new NotConnected(String(error));
      log.warning("a message could not be prepared", { whatsappId: outgoing.whatsappId, reason: String(error) });
      return { kind: "refused", error: { code, message: String(error) } };
    };
    let jid: string;
    try {
      const found = await this.#guard.check(outgoing.to, directoryOf(connection.sock));
      if (found.kind === "refused") return connection.isOpen ? found : failed("the connection ended", CONNECTION_LOST);
      jid = found.jid;
    } catch (error) {
      return failed(error, CONNECTION_LOST);
    }
    try {
      const message = await messageFor(connection.sock, jid, outgoing, this.parts.timings.uploadMs);
      this.parts.auth.keepSent(outgoing.whatsappId, message, this.parts.clock.nowMs());
      return { kind: "ready", outgoing, jid, connection, message, lastError };
    } catch (error) {
      return failed(error, outgoing.media ? MEDIA_UNAVAILABLE : SEND_FAILED);
    }
  }

  async showTyping(ready: Ready): Promise<void> {
    await showTyping(this.#mustBeOpen().sock, ready.jid);
  }

  async write(ready: Ready, mayGo: () => boolean): Promise<boolean> {
    const { connection, message } = ready as ReadyMessage;
    // It was prepared on this very connection; another one is another matter.
    if (connection !== this.#mustBeOpen()) throw new NotConnected("another connection stands now");
    this.#written = ready as ReadyMessage;
    this.#outcome = null;
    return writeMessage(connection, ready, message, mayGo);
  }

  async waitAck(whatsappId: string, timeoutMs: number): Promise<SendOutcome | null> {
    if (whatsappId !== this.#written?.outgoing.whatsappId) throw new Error(`${whatsappId} was not written last`);
    if (this.#outcome === null) await this.#wake.waitMs(timeoutMs);
    return this.#outcome;
  }

  #ears(): Ears {
    return {
      opened: () => this.#opened(),
      qr: (text, validMs) => this.#tell({ kind: "qr", text, validMs }),
      ended: (ending) => this.#ended(ending),
      ack: (node) => this.#takeAck(node),
      receipt: (node) => this.#takeReceipt(node),
      notification: (node) => this.#takeNotification(node),
      inbox: this.#inbox,
      timeLock: (lock) => this.#restrictions.hearLock(lock),
      cap: (cap) => this.#restrictions.hearCap(cap),
    };
  }

  #opened(): void {
    const connection = this.#connection;
    if (connection && this.#isOfAnotherNumber) return void this.#unlink(connection);
    if (this.linked && !isSameNumber(this.#account, this.parts.phone)) {
      log.warning("the linked account and the number of this session are written differently; taken for the same");
    }
    this.#tell({ kind: "connected" });
    if (connection) void this.#restrictions.ask(connection.sock);
  }

  /** Ends the link of an account that is not ours to send from. Not confirmed, it is tried again at the next start. */
  async #unlink(connection: Connection): Promise<void> {
    log.error("the linked account is not the number of this session; it is logged out");
    const removal = removalOf(this.parts.auth.me?.id ?? "");
    const answer = await connection.sock.query(removal, LOGOUT_MS).catch(() => undefined);
    if (answer) connection.end("logged out: another number", LOGGED_OUT);
    else connection.end(WRONG_NUMBER, NO_LINKED_DEVICES);
  }

  #takeAck(node: BinaryNode): void {
    const ack = ackOf(node);
    if (!ack) return;
    const { whatsappId, nack } = ack;
    const written = this.#written?.outgoing.whatsappId === whatsappId ? this.#written : null;
    const outcome: SendOutcome = nack
      ? { kind: "refused", error: refusalOf(nack, written?.lastError ?? null) }
      : { kind: "accepted" };
    if (nack) log.warning("the server refused a message", { whatsappId, nack });
    if (written) this.#outcome ??= outcome;
    this.#tell({ kind: "ack", whatsappId, outcome });
    const sock = this.#connection?.sock;
    if (nack === RESTRICTED && sock) void this.#restrictions.ask(sock);
    if (nack === SMAX_INVALID && sock && written) {
      this.#guard.forget(written.outgoing.to);
      void forgetContact(sock, written.jid);
    }
  }

  #takeReceipt(node: BinaryNode): void {
    const { me } = this.parts.auth;
    const found = me && receiptOf(node, { id: me.id, lid: me.lid });
    for (const whatsappId of found?.whatsappIds ?? []) {
      this.#tell({ kind: "receipt", whatsappId, receipt: found?.receipt ?? null });
    }
  }

  #takeNotification(node: BinaryNode): void {
    if (this.linked || !wantsPasskey(node)) return;
    this.#tell({ kind: "link_blocked", reason: "the platform wants a passkey to link this number" });
    this.#connection?.end("linking is blocked", CONNECTION_CLOSED);
  }

  #ended(ending: Ending): void {
    this.#connection = null;
    this.#outcome ??= { kind: "lost", reason: `${ending.code} ${ending.reason}` };
    const { isServerLogout, ...end } = this.#isOfAnotherNumber ? ofAnotherNumber(ending) : ending;
    this.#tell({ kind: "disconnected", ...end });
    // After the telling, which is on the disk: who is killed in between logs in once more and is told again.
    if (isServerLogout && this.linked) this.parts.auth.startAnew(this.parts.clock.nowMs());
  }

  #tell(event: DriverEvent): void {
    // What another account hears is no word to this session.
    if (this.#isOfAnotherNumber && event.kind !== "disconnected") return;
    try {
      this.onEvent(event);
    } catch (error) {
      // It could not be kept. The library would take that for a fault of its own and confirm it all the same, and
      // WhatsApp would never tell it again; a worker ends for it.
      this.#connection?.cut();
      process.nextTick(() => {
        throw error;
      });
      throw error;
    }
    this.#wake.notify();
  }

  get #isOfAnotherNumber(): boolean {
    const { auth, phone } = this.parts;
    return auth.linked && isAnotherNumber(this.#account, phone);
  }

  /** The digits of the linked account. */
  get #account(): string {
    return jidDecode(this.parts.auth.me?.id)?.user ?? "";
  }

  /** The connection that may be sent over. */
  #open(): Connection | null {
    return this.#connection?.isOpen && !this.#isOfAnotherNumber ? this.#connection : null;
  }

  #mustBeOpen(): Connection {
    const connection = this.#open();
    if (!connection) throw new NotConnected("there is no connection");
    return connection;
  }
}
