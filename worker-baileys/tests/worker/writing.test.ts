/**
 * The last look before the socket write: where it stands in the library, and what follows from each answer. And what is
 * forgotten of a contact.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import {
  addTransactionCapability,
  type BinaryNode,
  DEFAULT_CONNECTION_CONFIG,
  generateSignalPubKey,
  initAuthCreds,
  type SignalRepositoryWithLIDStore,
  type WASocket,
} from "baileys";
import { AuthState } from "../../src/driver/auth-state.js";
import type { Connection } from "../../src/driver/connection.js";
import { NotConnected, NotWritten, type Ready } from "../../src/driver/port.js";
import { forgetContact, writeMessage } from "../../src/driver/writing.js";
import { libraryLogger } from "../../src/log.js";

const READY: Ready = {
  kind: "ready",
  jid: "1@s.whatsapp.net",
  outgoing: { whatsappId: "3EB0", to: "1", text: "", mode: "message", media: null },
};

type Relay = (
  jid: string,
  message: unknown,
  options: { messageId: string; additionalNodes: BinaryNode[] },
) => Promise<unknown>;

/** A connection whose library reads the additional nodes and then writes, as the real one does. */
function connection(
  write: () => void = () => undefined,
  before: () => void = () => undefined,
  isOpen = true,
): Connection {
  const relayMessage: Relay = (_jid, _message, { additionalNodes }) => {
    before();
    const content: BinaryNode[] = [];
    if (additionalNodes.length > 0) content.push(...additionalNodes);
    assert.deepEqual(content, []);
    write();
    return Promise.resolve();
  };
  return {
    isOpen,
    sock: { relayMessage: async (...args: Parameters<Relay>) => relayMessage(...args) },
  } as unknown as Connection;
}

describe("a message that is written", () => {
  test("goes if the window is open in that moment", async () => {
    let written = false;
    assert.equal(
      await writeMessage(
        connection(() => (written = true)),
        READY,
        {},
        () => true,
      ),
      true,
    );
    assert.ok(written);
  });
  test("does not go if it has closed", async () => {
    const write = (): void => assert.fail("it was written");
    assert.equal(await writeMessage(connection(write), READY, {}, () => false), false);
  });
  test("does not go over a connection that has ended", async () => {
    const write = (): void => assert.fail("it was written");
    await assert.rejects(
      writeMessage(connection(write, undefined, false), READY, {}, () => true),
      NotConnected,
    );
  });
  test("was certainly not written if the library failed before", async () => {
    const before = (): void => {
      throw new Error("All encryptions failed");
    };
    await assert.rejects(
      writeMessage(connection(undefined, before), READY, {}, () => true),
      NotWritten,
    );
  });
  test("may have been written if the library failed after: that is nobody’s certainty", async () => {
    const write = (): void => {
      throw new Error("write EPIPE");
    };
    await assert.rejects(
      writeMessage(connection(write), READY, {}, () => true),
      (error: Error) => {
        return error.message === "write EPIPE" && !(error instanceof NotWritten) && !(error instanceof NotConnected);
      },
    );
  });
});

describe("the sessions with a contact are forgotten", () => {
  const JID = "972541112233@s.whatsapp.net";
  const DEVICES = [JID, "972541112233:7@s.whatsapp.net"];

  async function meet(repository: SignalRepositoryWithLIDStore, jid: string): Promise<void> {
    const { registrationId, signedIdentityKey, signedPreKey } = initAuthCreds();
    const session = {
      registrationId,
      identityKey: generateSignalPubKey(signedIdentityKey.public),
      signedPreKey: {
        keyId: signedPreKey.keyId,
        publicKey: generateSignalPubKey(signedPreKey.keyPair.public),
        signature: signedPreKey.signature,
      },
    };
    type Injected = Parameters<SignalRepositoryWithLIDStore["injectE2ESession"]>[0]["session"];
    await repository.injectE2ESession({ jid, session: session as Injected });
  }

  for (const [name, lid] of [
    ["whose LID is known", "555@lid"],
    ["whose LID is not", null],
  ] as const) {
    test(name, async () => {
      const folder = mkdtempSync(join(tmpdir(), "writing-"));
      const state = new AuthState(join(folder, "auth.sqlite"), Buffer.alloc(32, 1), "s1");
      const auth = state.forConnection();
      const keys = addTransactionCapability(auth.keys, libraryLogger(), DEFAULT_CONNECTION_CONFIG.transactionOpts);
      const signalRepository = state.signalRepository(() => Promise.resolve())({ ...auth, keys }, libraryLogger());
      const known = async (): Promise<boolean[]> =>
        Promise.all(DEVICES.map(async (jid) => (await signalRepository.validateSession(jid)).exists));
      if (lid) await signalRepository.lidMapping.storeLIDPNMappings([{ lid, pn: JID }]);
      for (const jid of DEVICES) await meet(signalRepository, jid);
      assert.deepEqual(await known(), [true, true]);
      const getUSyncDevices = (): Promise<{ jid: string }[]> => Promise.resolve(DEVICES.map((jid) => ({ jid })));
      await forgetContact({ getUSyncDevices, signalRepository } as unknown as WASocket, JID);
      assert.deepEqual(await known(), [false, false]);
      state.close();
      rmSync(folder, { recursive: true });
    });
  }
});

test("in the pinned library nothing is waited for between the last look and the write", () => {
  const source = readFileSync(new URL(import.meta.resolve("baileys/lib/Socket/messages-send.js")), "utf8");
  const from = source.indexOf("stanza.content.push(...additionalNodes)");
  const to = source.indexOf("await sendNode(stanza)", from);
  assert.ok(from > 0 && to > from);
  assert.ok(!source.slice(from, to).includes("await"));
  const socket = readFileSync(new URL(import.meta.resolve("baileys/lib/Socket/socket.js")), "utf8");
  const raw = socket.slice(socket.indexOf("const sendRawMessage"), socket.indexOf("/** send a binary node */"));
  assert.ok(raw.indexOf("await") === raw.indexOf("await promiseTimeout"), "sendRawMessage waits before it writes");
});
