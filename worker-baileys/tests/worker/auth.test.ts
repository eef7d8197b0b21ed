/** The auth state: sealed, of one piece after any crash, and never gone but by a confirmed logout. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import {
  addTransactionCapability,
  type AuthenticationCreds,
  DEFAULT_CONNECTION_CONFIG,
  generateSignalPubKey,
  proto,
  type SignalRepositoryWithLIDStore,
} from "baileys";
import { AuthFile } from "../../src/driver/auth-file.js";
import { AuthState, type Hear } from "../../src/driver/auth-state.js";
import { Seal, WrongKey } from "../../src/seal.js";
import { libraryLogger } from "../../src/log.js";
import { killWriters } from "./kill-auth.js";

const KEY = Buffer.alloc(32, 1);
const KILL_MS = 20_000;
let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "auth-"));
  path = join(folder, "auth.sqlite");
});
afterEach(() => rmSync(folder, { recursive: true }));

test("a value opens only with its key, its session and in its place", () => {
  const salt = Buffer.alloc(16, 2);
  const seal = new Seal(KEY, salt, "s1");
  const place = seal.name("session", "1.0");
  const sealed = seal.close(place, Buffer.from("secret"));
  assert.equal(seal.open(place, sealed).toString(), "secret");
  assert.throws(() => seal.open(seal.name("session", "2.0"), sealed), WrongKey);
  assert.throws(() => new Seal(Buffer.alloc(32, 9), salt, "s1").open(place, sealed), WrongKey);
  assert.throws(() => new Seal(KEY, salt, "s2").open(place, sealed), WrongKey);
  const changed = Buffer.from(sealed);
  changed[20] = (changed[20] ?? 0) ^ 1;
  assert.throws(() => seal.open(place, changed), WrongKey);
});

test("neither values nor numbers of people can be read in the file", () => {
  const file = AuthFile.open(path, KEY, "s1");
  file.apply([{ kind: "session", id: "972541112233.0", value: Buffer.from("the private key") }]);
  file.keepSent("3EB0AA", Buffer.from("hello dear reader"), 1);
  file.close();
  const bytes = readdirSync(folder)
    .map((name) => readFileSync(join(folder, name)).toString("latin1"))
    .join();
  for (const secret of ["private key", "972541112233", "hello dear", "session"])
    assert.ok(!bytes.includes(secret), secret);
});

test("a file of another key is refused and not touched", () => {
  const file = AuthFile.open(path, KEY, "s1");
  file.apply([{ kind: "creds", id: "creds", value: Buffer.from("1") }]);
  file.close();
  assert.throws(() => AuthFile.open(path, Buffer.alloc(32, 9), "s1"), WrongKey);
  assert.equal(AuthFile.open(path, KEY, "s1").get("creds", "creds")?.toString(), "1");
});

test("the lock that a killed process leaves behind keeps nobody out", () => {
  AuthFile.open(path, KEY, "s1").close();
  writeFileSync(join(folder, "other"), "");
  const first = AuthFile.open(path, KEY, "s1");
  first.apply([{ kind: "a", id: "b", value: Buffer.from("1") }]);
  // Not closed, as by a kill.
  assert.equal(AuthFile.open(path, KEY, "s1").get("a", "b")?.toString(), "1");
});

test("Baileys' keys come back as they were, of every type", async () => {
  const state = new AuthState(path, KEY, "s1").forConnection();
  const pair = { public: Buffer.alloc(32, 3), private: Buffer.alloc(32, 4) };
  const syncKey = proto.Message.AppStateSyncKeyData.fromObject({ keyData: Buffer.alloc(32, 5), timestamp: 7 });
  await state.keys.set({
    "pre-key": { "1": pair, "2": pair },
    session: { "1.0": Buffer.from("record") },
    "lid-mapping": { "1": "2" },
    "device-list": { "1": ["0", "4"] },
    "app-state-sync-key": { k: syncKey },
  });
  await state.keys.set({ "pre-key": { "2": null } });
  const again = new AuthState(path, KEY, "s1").forConnection().keys;
  assert.deepEqual(await again.get("pre-key", ["1", "2", "3"]), { "1": pair });
  assert.deepEqual(Buffer.from((await again.get("session", ["1.0"]))["1.0"] ?? []), Buffer.from("record"));
  assert.deepEqual(await again.get("device-list", ["1"]), { "1": ["0", "4"] });
  assert.deepEqual((await again.get("app-state-sync-key", ["k"]))["k"]?.keyData, syncKey.keyData);
});

test("credentials are there after a restart once the phone has signed them, and only then", () => {
  const first = new AuthState(path, KEY, "s1");
  const { creds } = first.forConnection();
  creds.me = { id: "972500000001@s.whatsapp.net", name: "~" };
  first.saveCreds();
  // An abandoned pairing code: `me` without a signed account. Taken for a login it would earn a 401.
  const second = new AuthState(path, KEY, "s1");
  assert.equal(second.linked, false);
  const linked = second.forConnection().creds;
  assert.equal(linked.me, undefined);
  linked.account = { details: Buffer.from("signed") };
  second.saveCreds();
  const third = new AuthState(path, KEY, "s1");
  assert.equal(third.linked, true);
  assert.deepEqual(third.forConnection().creds.noiseKey, linked.noiseKey);
});

test("a message key that was used is used up, even if the library never came to keep its keys", async () => {
  type Party = {
    repository: SignalRepositoryWithLIDStore;
    keys: ReturnType<typeof addTransactionCapability>;
    state: AuthState;
    creds: AuthenticationCreds;
  };
  const party = (file: string, hear: Hear = () => Promise.resolve()): Party => {
    const state = new AuthState(join(folder, file), KEY, "s1");
    const auth = state.forConnection();
    // Linked, so that it is the same device in its next life.
    auth.creds.account = { details: Buffer.from("signed") };
    state.saveCreds();
    const keys = addTransactionCapability(auth.keys, libraryLogger(), DEFAULT_CONNECTION_CONFIG.transactionOpts);
    return {
      state,
      keys,
      creds: auth.creds,
      repository: state.signalRepository(hear)({ creds: auth.creds, keys }, libraryLogger()),
    };
  };
  const [ours, theirs] = [party("ours"), party("theirs")];
  const { creds } = theirs;
  await ours.repository.injectE2ESession({
    jid: "555@lid",
    session: {
      registrationId: creds.registrationId,
      identityKey: generateSignalPubKey(creds.signedIdentityKey.public),
      signedPreKey: {
        keyId: creds.signedPreKey.keyId,
        publicKey: generateSignalPubKey(creds.signedPreKey.keyPair.public),
        signature: creds.signedPreKey.signature,
      },
    } as Parameters<SignalRepositoryWithLIDStore["injectE2ESession"]>[0]["session"],
  });
  const read = (sealed: { type: "pkmsg" | "msg"; ciphertext: Uint8Array }): Promise<Uint8Array> =>
    theirs.repository.decryptMessage({ jid: "777@lid", ...sealed });
  const write = (party: Party, text: string): ReturnType<SignalRepositoryWithLIDStore["encryptMessage"]> =>
    party.repository.encryptMessage({ jid: "555@lid", data: Buffer.from(text) });
  let first: Awaited<ReturnType<typeof write>> | undefined;
  // As relayMessage does it: encrypt and write inside a transaction. The process dies before its end.
  await assert.rejects(
    ours.keys.transaction(async () => {
      first = await write(ours, "first");
      throw new Error("killed");
    }, "me"),
    /killed/,
  );
  ours.state.close();
  const second = await write(party("ours"), "second");
  assert.ok(first);
  assert.equal(Buffer.from(await read(first)).toString(), "first");
  assert.equal(Buffer.from(await read(second)).toString(), "second");

  // The other direction: whoever dies while the words are being kept can read them once more.
  const third = await write(party("ours"), "third");
  theirs.state.close();
  const dying = party("theirs", () => Promise.reject(new Error("killed")));
  await assert.rejects(dying.repository.decryptMessage({ jid: "777@lid", ...third }), /killed/);
  dying.state.close();
  const heard: string[] = [];
  const next = party("theirs", (_ciphertext, plaintext) => {
    heard.push(Buffer.from(plaintext).toString());
    return Promise.resolve();
  });
  await next.repository.decryptMessage({ jid: "777@lid", ...third });
  assert.deepEqual(heard, ["third"]);
});

test("after a logout a new state is begun and the old one is put aside, the newest only", () => {
  const state = new AuthState(path, KEY, "s1");
  state.forConnection().creds.account = { details: Buffer.from("signed") };
  state.saveCreds();
  state.startAnew(1);
  assert.equal(state.linked, false);
  state.startAnew(2);
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.includes("logged-out")),
    ["auth.sqlite.logged-out-2"],
  );
});

test("a message is kept for whoever asks for it again, and the oldest go", () => {
  const file = AuthFile.open(path, KEY, "s1");
  for (let index = 0; index < 1_005; index += 1) file.keepSent(`id${index}`, Buffer.from(`text ${index}`), index);
  assert.equal(file.sent("id1004")?.toString(), "text 1004");
  assert.equal(file.sent("id4"), null);
  assert.equal(file.sent("id5")?.toString(), "text 5");
});

test("kills in the middle of writes lose no login", async (context) => {
  const untilMs = performance.now() + KILL_MS;
  const { kills, logins, files } = await killWriters((done) => done >= 10 && performance.now() >= untilMs);
  context.diagnostic(`${kills} kills, ${files} files, ${logins} logins written, none lost`);
});
