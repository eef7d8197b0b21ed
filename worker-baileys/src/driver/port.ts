/**
 * The driver port: what the worker's core needs of a connection to WhatsApp, and what it hears from it.
 *
 * A driver never decides to send, to repeat or to reconnect; it carries out and tells what it saw. Events are handed
 * over in the very moment they arrive (`onEvent` returns when they are taken in), because a receipt must be on our disk
 * before the library acknowledges it to the server, which would never tell it again.
 */
import type { ReceiptKind } from "../book.js";
import type { SendError } from "../failures.js";

/** What was asked for cannot be done now: it is linked, it is not, or there is nothing to scan. */
export class CannotLink extends Error {}

/** It cannot be done now, but may be as soon as the connection that is being made stands. */
export class NotYet extends CannotLink {}

/** There is no connection, so certainly nothing was written to it. */
export class NotConnected extends Error {}

/** Something else went wrong before the write: certainly nothing was written. */
export class NotWritten extends Error {}

export interface OutgoingMedia {
  readonly type: string;
  readonly content: Buffer;
  readonly name: string | undefined;
}

/** One message as it goes out. `text` is the caption of an image or a document, and may be empty. */
export interface OutgoingMessage {
  readonly whatsappId: string;
  readonly to: string;
  readonly text: string;
  readonly mode: "message" | "image" | "document";
  readonly media: OutgoingMedia | null;
}

/** The server accepted it · refused it, so it is not out · said nothing before the connection or our patience ended. */
export type SendOutcome =
  | { readonly kind: "accepted" }
  | { readonly kind: "refused"; readonly error: SendError }
  | { readonly kind: "lost"; readonly reason: string };

/** A message whose recipient is known to exist and whose file is uploaded: all that is left is to write it. */
export interface Ready {
  readonly kind: "ready";
  readonly outgoing: OutgoingMessage;
  /** The address WhatsApp gave for the number, which may differ from it. */
  readonly jid: string;
}

export type RestrictionKind = "TIME_LOCKED" | "CAPPED" | "NONE";

export type DriverEvent =
  | { readonly kind: "connected" }
  | { readonly kind: "disconnected"; readonly code: number; readonly reason: string; readonly expireSeconds?: number }
  | { readonly kind: "ack"; readonly whatsappId: string; readonly outcome: SendOutcome }
  /** `receipt` is null if it proves only that the server has the message. */
  | { readonly kind: "receipt"; readonly whatsappId: string; readonly receipt: ReceiptKind | null }
  | {
      readonly kind: "received";
      readonly sender: string;
      readonly text: string;
      readonly whatsappId: string;
      readonly atMs: number;
    }
  | { readonly kind: "restriction"; readonly restriction: RestrictionKind; readonly untilMs: number | null }
  | { readonly kind: "qr"; readonly text: string; readonly validMs: number }
  | { readonly kind: "link_blocked"; readonly reason: string };

export interface PairingCode {
  readonly text: string;
  readonly validMs: number;
}

/** One session's connection. `connect` tries once; whether it worked comes as an event. */
export interface Driver {
  readonly name: string;
  /** Whether the number has linked this session; else `connect` shows codes. */
  readonly linked: boolean;
  onEvent: (event: DriverEvent) => void;
  connect(): void;
  close(): Promise<void>;
  /** For how long not a sign has come over the connection, keep-alives included; null while there is none. */
  quietMs(): number | null;
  waitConnected(timeoutMs: number): Promise<boolean>;
  /** Throws CannotLink; NotYet while no code is shown. */
  pair(): Promise<PairingCode>;
  /** Ends the link and with it the connection (401). Throws CannotLink; NotYet while there is no connection. */
  logout(): Promise<void>;
  /** Does all that can be done before the message may go: nobody sees anything of it. Throws NotConnected. */
  prepare(message: OutgoingMessage): Promise<Ready | { readonly kind: "refused"; readonly error: SendError }>;
  /** Throws NotConnected. */
  showTyping(ready: Ready): Promise<void>;
  /**
   * Writes the message, if `mayGo` says so in the moment of the write. False, or NotConnected or NotWritten thrown:
   * nothing was written. Any other error: nobody knows.
   */
  write(ready: Ready, mayGo: () => boolean): Promise<boolean>;
  /** The server's word on the message written last; null if there is none yet. */
  waitAck(whatsappId: string, timeoutMs: number): Promise<SendOutcome | null>;
}
