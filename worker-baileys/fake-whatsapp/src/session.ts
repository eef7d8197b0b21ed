/**
 * What a client's connection is about: registration or login, then every stanza to the module that knows it.
 *
 * One device has one connection: a second login ends the first with 440, as on the real platform.
 */

import type { BinaryNode } from "baileys";
import { act } from "./behaviour.js";
import type { Connection, ConnectionHandlers } from "./connection.js";
import type { Context } from "./context.js";
import type { Device } from "./devices.js";
import { phoneJid } from "./jids.js";
import { receiveMessage } from "./messages.js";
import { child, children, iqResult, node, nowSeconds, SERVER_JID } from "./nodes.js";
import type { ClientFinish } from "./noise.js";
import type { CodePairing } from "./pairing-code.js";
import { answerQuery } from "./queries.js";

const UNAUTHORISED = 401;
const ROUTE = Buffer.from("fake-route");

export class Sessions implements ConnectionHandlers {
  readonly open = new Set<Connection>();

  constructor(
    private readonly context: Context,
    private readonly codes: CodePairing,
  ) {}

  async opened(connection: Connection, finish: ClientFinish): Promise<void> {
    this.open.add(connection);
    if (finish.payload.devicePairingData) this.context.pairing.offer(connection, finish);
    else this.login(connection, finish);
  }

  async received(connection: Connection, received: BinaryNode): Promise<void> {
    const { device } = connection;
    if (received.tag === "iq") return this.iq(connection, received);
    if (!device) return;
    if (received.tag === "message") return receiveMessage(this.context, connection, received);
    if (received.tag === "receipt") return this.receipt(device, received);
    if (received.tag === "ack") return this.acked(device, received);
    if (received.tag === "chatstate") {
      this.context.events.add("chatstate", {
        phone: device.phone,
        to: received.attrs.to,
        state: children(received)[0]?.tag,
      });
    }
  }

  closed(connection: Connection): void {
    this.open.delete(connection);
    this.context.pairing.forget(connection);
    this.codes.forget(connection);
    const { device } = connection;
    if (device?.connection === connection) device.connection = undefined;
    this.context.events.add("closed", { jid: device?.jid });
  }

  failed(connection: Connection, error: Error): void {
    this.context.events.add("server-error", { jid: connection.device?.jid, error: error.message, stack: error.stack });
  }

  /** Take a device off its account. What it was to be told is forgotten. */
  unlink(device: Device): void {
    this.context.devices.unlink(device);
    this.context.outbox.forget(device);
    this.context.phones.forgetDevice(device.address);
    this.context.events.add("unlinked", { jid: device.jid });
  }

  private login(connection: Connection, { payload, staticKey }: ClientFinish): void {
    const { behaviours, devices, events } = this.context;
    const phone = String(payload.username);
    const device = devices.get(phoneJid(phone, payload.device ?? 0));
    const { loginFailure, neverSuccess } = behaviours.for(phone);
    if (loginFailure && act(loginFailure)) {
      return this.refuse(connection, phone, loginFailure.reason, loginFailure.attrs);
    }
    if (!device?.knows(staticKey)) return this.refuse(connection, phone, UNAUTHORISED);
    device.connection?.streamError({}, node("conflict", { type: "replaced" }));
    device.online(connection, connection.hints.get("session"));
    connection.device = device;
    events.add("login", { jid: device.jid });
    if (neverSuccess) return;
    // A client that knows its route puts it before the handshake of its next connection.
    connection.send(node("ib", { from: SERVER_JID }, [node("edge_routing", {}, [node("routing_info", {}, ROUTE)])]));
    connection.send(node("success", { t: nowSeconds(), lid: device.lid, props: "1", location: "fake" }));
  }

  private refuse(connection: Connection, phone: string, reason: number, attrs: Record<string, string> = {}): void {
    this.context.events.add("login-refused", { phone, reason });
    connection.dismiss(node("failure", { reason: String(reason), location: "fake", ...attrs }));
  }

  private async iq(connection: Connection, iq: BinaryNode): Promise<void> {
    const { device, registration } = connection;
    if (iq.attrs.type === "result" || iq.attrs.type === "error") {
      // Also the plain answer to pair-device comes here; the one that matters carries the signature.
      if (child(iq, "pair-device-sign")) registration?.signing?.done(iq);
      return;
    }
    const request = child(iq, "link_code_companion_reg");
    if (request) return this.codes.handle(connection, iq, request);
    if (!device) return connection.send(iqResult(iq));
    if (child(iq, "remove-companion-device")) return this.logout(connection, device, iq);
    answerQuery(this.context, connection, device, iq);
    if (iq.attrs.xmlns === "passive" && child(iq, "active")) await this.activate(connection, device);
  }

  /** The client is ready: everything that waited for it, and at the first login its history. */
  private async activate(connection: Connection, device: Device): Promise<void> {
    if (connection.active) return;
    connection.active = true;
    const count = this.context.outbox.flush(device);
    connection.send(node("ib", { from: SERVER_JID }, [node("offline", { count: String(count) })]));
    const { historySync } = this.context.behaviours.for(device.phone);
    if (historySync && !device.stored.historySent) await this.context.inbound.sendHistory(device);
  }

  private logout(connection: Connection, device: Device, iq: BinaryNode): void {
    connection.send(iqResult(iq));
    this.unlink(device);
  }

  /** A device got a message of ours, or could not read it. */
  private async receipt(device: Device, receipt: BinaryNode): Promise<void> {
    const { id, to, type } = receipt.attrs;
    device.connection?.send(node("ack", { class: "receipt", id, from: to, type }));
    this.context.events.add("receipt", { phone: device.phone, id, type });
    if (type === "retry") await this.context.inbound.askedAgain(device, id);
    else this.context.outbox.confirmMessage(device, id);
  }

  private acked(device: Device, { attrs }: BinaryNode): void {
    if (attrs.class === "message") this.context.outbox.confirmMessage(device, attrs.id);
    else this.context.outbox.confirm(device, attrs.class ?? "", attrs.id, attrs.type);
  }
}
