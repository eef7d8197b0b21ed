/**
 * The auth state as Baileys wants it, kept in an `AuthFile`. Everything is on the disk when a call returns, so whatever
 * the library does after `creds.update` or a key's `set`, it does with what a restart will find.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import {
  type AuthenticationCreds,
  type AuthenticationState,
  BufferJSON,
  DEFAULT_CONNECTION_CONFIG,
  initAuthCreds,
  proto,
  type SignalDataTypeMap,
  type SignalKeyStoreWithTransaction,
  type SocketConfig,
} from "baileys";
import { failpoint } from "../failpoint.js";
import { AuthFile, type Change, putAside } from "./auth-file.js";

const CREDS = { kind: "creds", id: "creds" };

type KeyData = { readonly [T in keyof SignalDataTypeMap]?: { readonly [id: string]: SignalDataTypeMap[T] | null } };

/** Told what was in a ciphertext, padding included, before anybody is told that we have it. */
export type Hear = (ciphertext: Uint8Array, plaintext: Uint8Array) => Promise<void>;

export class AuthState {
  #file: AuthFile;
  #creds: AuthenticationCreds;

  constructor(
    private readonly path: string,
    private readonly authKey: Buffer,
    private readonly sessionId: string,
  ) {
    this.#file = AuthFile.open(path, authKey, sessionId);
    this.#creds = read(this.#file, CREDS.kind, CREDS.id) ?? initAuthCreds();
  }

  /** Whether the phone signed this device in. `me` alone says nothing: asking for a pairing code sets it. */
  get linked(): boolean {
    return this.#creds.account !== undefined && this.#creds.account !== null;
  }

  get me(): AuthenticationCreds["me"] {
    return this.#creds.me;
  }

  /**
   * For one connection. What an abandoned try to link left behind is forgotten first, or it would be taken for a login.
   */
  forConnection(): AuthenticationState {
    if (!this.linked) this.#creds = initAuthCreds();
    // A connection that outlives a logout must not write into the new state.
    const file = this.#file;
    return {
      creds: this.#creds,
      keys: {
        get: (type, ids) => {
          const found: { [id: string]: SignalDataTypeMap[typeof type] } = {};
          for (const id of ids) {
            const value = read<SignalDataTypeMap[typeof type]>(file, type, id);
            if (value !== null) found[id] = revived(type, value);
          }
          return found;
        },
        set: (data) => file.apply(changesOf(data as KeyData)),
      },
    };
  }

  /**
   * Signal's ratchet, moved in the order that survives a crash.
   *
   * Baileys writes a message to the socket inside of a transaction on its keys and keeps them only after it. Killed in
   * between, the next life would use the same message key once more, for another text. So what encrypting changes in a
   * session is kept at once: the ratchet is on the disk before the ciphertext is on the wire.
   *
   * Decrypting is the other way round: `hear` has the words before the ratchet is on the disk. Killed in between, the
   * server brings the message again and it opens again; after it, the library would call it a key used twice and lose
   * it.
   */
  signalRepository(hear: Hear): SocketConfig["makeSignalRepository"] {
    const file = this.#file;
    const encrypting = new AsyncLocalStorage<true>();
    const decrypting = new AsyncLocalStorage<Uint8Array>();
    return (auth, logger, pnToLid) => {
      // The library has given them transactions by now, whatever the type says.
      const keys = auth.keys as SignalKeyStoreWithTransaction;
      const set: typeof keys.set = async (data) => {
        await keys.set(data);
        if (data.session && encrypting.getStore()) file.apply(changesOf({ session: data.session }));
      };
      const transaction: typeof keys.transaction = (work, key) =>
        keys.transaction(async () => {
          const done = await work();
          const ciphertext = decrypting.getStore();
          if (ciphertext && done instanceof Uint8Array) await hear(ciphertext, done);
          return done;
        }, key);
      const ordered = { ...auth, keys: { ...keys, set, transaction } };
      const repository = DEFAULT_CONNECTION_CONFIG.makeSignalRepository(ordered, logger, pnToLid);
      const encrypt = repository.encryptMessage.bind(repository);
      const decrypt = repository.decryptMessage.bind(repository);
      repository.encryptMessage = (message) => encrypting.run(true, () => encrypt(message));
      repository.decryptMessage = async (message) => {
        const plaintext = await decrypting.run(message.ciphertext, () => decrypt(message));
        failpoint("ratcheted-not-confirmed");
        return plaintext;
      };
      return repository;
    };
  }

  saveCreds(): void {
    this.#file.apply([{ ...CREDS, value: encoded(this.#creds) }]);
  }

  keepSent(whatsappId: string, message: proto.IMessage, atMs: number): void {
    this.#file.keepSent(whatsappId, Buffer.from(proto.Message.encode(message).finish()), atMs);
  }

  sent(whatsappId: string): proto.IMessage | undefined {
    const content = this.#file.sent(whatsappId);
    return content ? proto.Message.decode(content) : undefined;
  }

  /** After a confirmed logout alone: the old state is put aside and a new one begun. */
  startAnew(nowMs: number): void {
    this.#file.close();
    putAside(this.path, nowMs);
    this.#file = AuthFile.open(this.path, this.authKey, this.sessionId);
    this.#creds = initAuthCreds();
  }

  close(): void {
    this.#file.close();
  }
}

function changesOf(data: KeyData): Change[] {
  return Object.entries(data).flatMap(([kind, values]) =>
    Object.entries(values ?? {}).map(([id, value]) => ({ kind, id, value: value === null ? null : encoded(value) })),
  );
}

function read<T>(file: AuthFile, kind: string, id: string): T | null {
  const content = file.get(kind, id);
  return content ? (JSON.parse(content.toString("utf8"), BufferJSON.reviver) as T) : null;
}

function encoded(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value, BufferJSON.replacer));
}

function revived<T>(type: string, value: T): T {
  // The one kind of key that the library wants as a protobuf object.
  return type === "app-state-sync-key" ? (proto.Message.AppStateSyncKeyData.fromObject(value as object) as T) : value;
}
