/**
 * Driver events to webhooks: what WhatsApp tells goes first into our own knowledge, then to the `poster`; and
 * connections that ended are opened again, as `disconnects` says. Taking in is synchronous: when the driver's call
 * returns, what must survive a crash is on the disk.
 */
import type { Entry, ReceiptKind } from "./book.js";
import type { Clock } from "./clock.js";
import { LOGGED_OUT, type Pauses, pauseMs, ruleOf, WRONG_NUMBER } from "./disconnects.js";
import type { Driver, DriverEvent } from "./driver/port.js";
import { log } from "./log.js";
import type { Poster } from "./poster.js";
import { messageEvent } from "./reporter.js";
import type { Rng } from "./rng.js";
import type { Shift } from "./shift.js";

// So many failures in a row are told as an ERROR, once: somebody should look at the proxy or the network.
const ALARM_AFTER_FAILURES = 10;

export interface PumpParts {
  readonly shift: Shift;
  readonly driver: Driver;
  readonly poster: Poster;
  readonly clock: Clock;
  readonly rng: Rng;
  readonly pauses: Pauses;
}

/** Takes in driver events and keeps the connection up. */
export class EventPump {
  #toldConnected: boolean | null = null;
  #connectFailures = 0;
  #reconnect: NodeJS.Timeout | null = null;

  constructor(private readonly parts: PumpParts) {}

  /** Opens the first connection; from here on the pump opens the others. */
  start(): void {
    this.parts.driver.onEvent = (event) => this.takeIn(event);
    this.parts.driver.connect();
  }

  /** No connection is opened any more; what the present one brings is taken in until `stop`. */
  rest(): void {
    if (this.#reconnect) clearTimeout(this.#reconnect);
    this.#reconnect = null;
  }

  stop(): void {
    this.rest();
    this.parts.driver.onEvent = () => undefined;
  }

  takeIn(event: DriverEvent): void {
    const { shift, poster, clock } = this.parts;
    switch (event.kind) {
      case "connected":
        this.#connectFailures = 0;
        this.#tellConnection(true, "CONNECTED", {});
        break;
      case "disconnected":
        this.#takeInEnd(event);
        break;
      case "qr":
        this.#toldConnected = null;
        poster.tell("QR", { qr: event.text, expiresInMs: event.validMs });
        break;
      case "link_blocked":
        shift.endedForGood = true;
        poster.tell("LINK_BLOCKED", { reason: event.reason });
        break;
      case "ack":
        if (event.outcome.kind === "accepted") this.#takeInAck(event.whatsappId);
        if (event.outcome.kind === "refused") shift.noteRefusal(event.whatsappId, event.outcome.error);
        break;
      case "receipt":
        this.#takeInReceipt(event.whatsappId, event.receipt);
        break;
      case "received":
        poster.post({
          sessionId: shift.sessionId,
          event: "MESSAGE_RECEIVED",
          data: { from: event.sender, text: event.text, whatsappId: event.whatsappId },
          timestamp: event.atMs,
          eventId: `MESSAGE_RECEIVED:${event.whatsappId}`,
        });
        break;
      case "restriction":
        // A number's sessions have clocks of their own, and of what they heard the last counts.
        poster.tell(
          "RESTRICTION",
          { kind: event.restriction, until: event.untilMs },
          shift.time.earliest(clock.nowMs()),
        );
    }
  }

  #takeInEnd(event: Extract<DriverEvent, { kind: "disconnected" }>): void {
    const { shift } = this.parts;
    const rule = ruleOf(event.code, event.reason);
    log.info("the connection ended", { code: event.code, reason: event.reason, action: rule.action });
    // After LINK_BLOCKED this is only how it ended; told, it would read as if we tried again.
    if (shift.endedForGood) return;
    if (!(shift.loggingOut && event.code === LOGGED_OUT)) {
      const { code, reason, expireSeconds } = event;
      const data = { code, reason, ...(expireSeconds === undefined ? {} : { expireSeconds }) };
      // The login goes with it, so no later life could find out again.
      if (code === LOGGED_OUT || reason === WRONG_NUMBER) this.parts.poster.tellSurely("DISCONNECTED", data);
      // A ban often shows only when one comes back: that is news although the connection was gone before.
      else this.#tellConnection(false, "DISCONNECTED", data, rule.action === "stop");
    }
    this.#planReconnect(event.code, event.reason);
  }

  #planReconnect(code: number, reason: string): void {
    const { shift, driver, rng, pauses, poster } = this.parts;
    const waitMs = pauseMs(ruleOf(code, reason), this.#connectFailures, pauses, rng);
    if (waitMs === null) {
      log.error("the connection ended for good", { code, reason });
      shift.endedForGood = true;
      return;
    }
    this.#connectFailures += 1;
    if (this.#connectFailures === ALARM_AFTER_FAILURES) {
      poster.tell("ERROR", {
        code: "CANNOT_CONNECT",
        message: `${ALARM_AFTER_FAILURES} tries in vain, last: ${code} ${reason}`,
      });
    }
    if (this.#reconnect) clearTimeout(this.#reconnect);
    this.#reconnect = setTimeout(() => {
      this.#reconnect = null;
      driver.connect();
    }, waitMs);
  }

  #takeInAck(whatsappId: string): void {
    const { shift } = this.parts;
    // An ack that the sender waits for is the sender's to write down; a late one is ours.
    if (whatsappId === shift.inFlight) shift.noteProof(whatsappId);
    else {
      const entry = shift.journal.find(whatsappId);
      if (entry) this.#prove(entry);
    }
  }

  #takeInReceipt(whatsappId: string, kind: ReceiptKind | null): void {
    const { shift, poster, clock } = this.parts;
    const entry = shift.journal.find(whatsappId);
    if (!entry) {
      log.debug("receipt of a message that is not in the journal", { whatsappId });
      return;
    }
    this.#prove(entry);
    // Never backwards: who has read it has received it, and a late "delivered" is no news.
    if (kind === null || entry.receipts.has(kind) || entry.receipts.has("read")) return;
    const name = kind === "delivered" ? "MESSAGE_DELIVERED" : "MESSAGE_READ";
    poster.post(messageEvent(shift, name, entry, clock.nowMs()));
  }

  /** WhatsApp will not tell twice, so the proof goes to the disk before anything else. */
  #prove(entry: Entry): void {
    const { shift, poster, clock } = this.parts;
    if (entry.sent) return;
    shift.journal.conclude({ taskId: entry.taskId, outcome: "sent", at: clock.nowMs() });
    if (entry.whatsappId !== shift.inFlight) {
      poster.post(messageEvent(shift, "MESSAGE_SENT", entry, clock.nowMs()));
    }
  }

  #tellConnection(connected: boolean, name: string, data: Readonly<Record<string, unknown>>, isNews = false): void {
    if (!isNews && connected === this.#toldConnected) return;
    this.#toldConnected = connected;
    this.parts.poster.tell(name, data);
  }
}
