/**
 * How a message is made and written, with Baileys' own parts. All that needs the network (devices, sessions, upload) is
 * done beforehand; what is left is to encrypt and to write. The last look at the window happens in the same turn of the
 * event loop as the socket write: it is hidden in the list of additional nodes, the last thing the library reads of a
 * message.
 */
import {
  type AnyMessageContent,
  type BinaryNode,
  generateWAMessage,
  jidNormalizedUser,
  type proto,
  USyncQuery,
  USyncUser,
  type WASocket,
} from "baileys";
import { within } from "../clock.js";
import { failpoint } from "../failpoint.js";
import { libraryLogger, log } from "../log.js";
import type { Connection } from "./connection.js";
import type { Directory } from "./guard.js";
import { NotConnected, NotWritten, type OutgoingMessage, type Ready } from "./port.js";
import { addressIn } from "./stanzas.js";

/** The window closed between the intent and the write. */
class WindowClosed extends Error {}

/**
 * The library's question for a number, without its reading of the answer: that leaves out a number which is not there
 * and one of which nothing was said alike.
 */
class NumberCheck extends USyncQuery {
  answer: BinaryNode | undefined;

  override parseUSyncQueryResult(result: BinaryNode | undefined): undefined {
    this.answer = result;
  }
}

export function directoryOf(sock: WASocket): Directory {
  return {
    addressOf: async (number) => {
      const check = new NumberCheck();
      await sock.executeUSyncQuery(check.withContactProtocol().withUser(new USyncUser().withPhone(`+${number}`)));
      return addressIn(check.answer);
    },
    devicesOf: async (jid) => {
      const own = jidNormalizedUser(sock.user?.id);
      // Ours are asked for along with theirs, as the send will: so it finds them known and needs no network.
      const devices = await sock.getUSyncDevices([own, jid], true, false);
      const ownUsers = new Set([userOf(sock.user?.id), userOf(sock.user?.lid)]);
      const theirs = devices.filter((device) => !ownUsers.has(device.user));
      if (theirs.length > 0) await sock.assertSessions(devices.map((device) => device.jid));
      return theirs.map((device) => device.jid);
    },
  };
}

function userOf(jid: string | undefined): string {
  return jid?.split("@")[0]?.split(":")[0] ?? "";
}

/** The message as it will be encrypted; its file is uploaded by this. Never by address: only bytes we checked go in. */
export async function messageFor(
  sock: WASocket,
  jid: string,
  outgoing: OutgoingMessage,
  uploadMs: number,
): Promise<proto.IMessage> {
  const made = generateWAMessage(jid, contentOf(outgoing), {
    userJid: sock.user?.id ?? "",
    messageId: outgoing.whatsappId,
    upload: sock.waUploadToServer,
    // Of one host that says nothing; unset, the library waits for ever.
    mediaUploadTimeoutMs: uploadMs,
    logger: libraryLogger(),
  });
  const full = await within(uploadMs, "the upload", made);
  if (!full.message) throw new Error("the library made no message");
  return full.message;
}

function contentOf({ mode, text, media }: OutgoingMessage): AnyMessageContent {
  if (media === null) return { text };
  const caption = text ? { caption: text } : {};
  if (mode === "image") return { image: media.content, mimetype: media.type, ...caption };
  return { document: media.content, mimetype: media.type, fileName: media.name ?? "file", ...caption };
}

export async function showTyping(sock: WASocket, jid: string): Promise<void> {
  try {
    await sock.sendPresenceUpdate("composing", jid);
  } catch (error) {
    // Nobody misses it.
    log.debug("typing could not be shown", { reason: String(error) });
  }
}

/** True once it is handed to the socket; false if `mayGo` said no. */
export async function writeMessage(
  connection: Connection,
  ready: Ready,
  message: proto.IMessage,
  mayGo: () => boolean,
): Promise<boolean> {
  let isAtTheWire = false;
  const lastLook = (): void => {
    if (!connection.isOpen) throw new NotConnected("the connection ended before the write");
    if (!mayGo()) throw new WindowClosed();
    failpoint("at-the-wire");
    isAtTheWire = true;
    // The write follows in this very turn; the library keeps its keys only after it.
    process.nextTick(() => failpoint("written-not-kept"));
  };
  try {
    const { whatsappId: messageId } = ready.outgoing;
    await connection.sock.relayMessage(ready.jid, message, { messageId, additionalNodes: noNodes(lastLook) });
    return true;
  } catch (error) {
    if (isAtTheWire) throw error;
    if (error instanceof WindowClosed) return false;
    if (error instanceof NotConnected || !connection.isOpen) throw new NotConnected(String(error));
    throw new NotWritten(String(error));
  }
}

/** A list of no nodes that calls `whenRead` when it is read. It claims one element, or the library would not look. */
function noNodes(whenRead: () => void): BinaryNode[] {
  const list = {
    length: 1,
    *[Symbol.iterator](): Iterator<BinaryNode> {
      whenRead();
    },
  };
  return list as unknown as BinaryNode[];
}

/** What we hold of a contact's devices is stale (479): the next try asks for them anew. */
export async function forgetContact(sock: WASocket, jid: string): Promise<void> {
  try {
    const { signalRepository } = sock;
    const devices = (await sock.getUSyncDevices([jid], false, false)).map((device) => device.jid);
    // The library keeps a session under the LID where it knows one, and deletes under the very address it is given.
    const mapped = (await signalRepository.lidMapping.getLIDsForPNs(devices)) ?? [];
    await signalRepository.deleteSession([...devices, ...mapped.map(({ lid }) => lid)]);
  } catch (error) {
    log.debug("a contact's sessions could not be dropped", { reason: String(error) });
  }
}
