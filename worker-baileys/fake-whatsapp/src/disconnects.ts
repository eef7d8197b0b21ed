/**
 * Ways to lose a connection, as an operator of the fake orders them: `POST /devices/:jid/disconnect`.
 *
 * Each is a row of the disconnect table that the worker's rules are tested against; which code the library makes of it
 * stands in the README.
 */

import type { Connection } from "./connection.js";
import type { Device } from "./devices.js";
import { node, SERVER_JID } from "./nodes.js";
import { attributes, field, integer, nullable, oneOf, record, required, string } from "./schema.js";

export const KINDS = [
  "stream-error",
  "failure",
  "cut",
  "xmlstreamend",
  "silence",
  "replaced",
  "device-removed",
  "downgrade",
] as const;

export const parseDisconnect = record({
  kind: required(oneOf(...KINDS)),
  /** stream-error: its code, none if null. failure: its reason. */
  code: field(nullable(integer(1, 999)), null),
  /** stream-error: the tag inside it, such as `ack` or `xml-not-well-formed`. */
  child: field(nullable(string()), null),
  /** failure: further attributes. A 402 has `code` and `expire` (seconds). */
  attrs: field(attributes, {}),
});
export type Disconnect = ReturnType<typeof parseDisconnect>;

/** Act on the device's connection; false if it has none. `removed` takes the link away. */
export function disconnect(device: Device, order: Disconnect, removed: (device: Device) => void): boolean {
  const connection = device.connection;
  if (!connection) return false;
  if (order.kind === "device-removed") removed(device);
  act(connection, order);
  return true;
}

function act(connection: Connection, order: Disconnect): void {
  const code = order.code === null ? undefined : String(order.code);
  switch (order.kind) {
    case "stream-error":
      return connection.streamError(code ? { code } : {}, order.child === null ? undefined : node(order.child));
    case "failure":
      return connection.dismiss(node("failure", { reason: code ?? "500", location: "fake", ...order.attrs }));
    case "replaced":
      return connection.streamError({}, node("conflict", { type: "replaced" }));
    case "device-removed":
      return connection.streamError({ code: "401" }, node("conflict", { type: "device_removed" }));
    case "xmlstreamend":
      return connection.dismiss(node("xmlstreamend"));
    case "downgrade":
      return connection.dismiss(node("ib", { from: SERVER_JID }, [node("downgrade_webclient")]));
    case "silence":
      return connection.silence();
    case "cut":
      return connection.cut();
  }
}
