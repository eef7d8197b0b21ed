/**
 * One SQLite file for all that must survive: sealed values by name. `auth-state.ts` gives it the shape Baileys wants.
 *
 * The library is SQLite compiled to WebAssembly, because it needs no build tools. Its file layer has one trap: it
 * answers "does anybody write?" with yes whenever we ourselves hold the lock, and SQLite then leaves a half-done
 * rollback journal alone, which would be a broken file after a crash. A write-ahead log has no such question, so this
 * file is never in any other mode: it is made aside, complete, and renamed into place. The lock of that layer is a
 * directory that a killed process leaves behind; whoever opens this holds the volume (`volume.ts`), so it may be taken
 * away.
 */
import { randomBytes } from "node:crypto";
import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import sqlite from "node-sqlite3-wasm";
import { fsyncDirectory } from "../journal.js";
import { Seal } from "./seal.js";

const SCHEMA = `
  CREATE TABLE about (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
  CREATE TABLE kept (name BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
  CREATE TABLE sent (name BLOB PRIMARY KEY, at INTEGER NOT NULL, value BLOB NOT NULL) WITHOUT ROWID;
  CREATE INDEX sent_at ON sent (at);
`;
const CHECK = "check";
// A recipient's device asks for a message again within hours or never.
const SENT_KEEP = 1_000;
const SENT_KEEP_MS = 7 * 24 * 3600 * 1000;

export interface Change {
  readonly kind: string;
  readonly id: string;
  /** Null takes it away. */
  readonly value: Buffer | null;
}

export class AuthFile {
  readonly #database: InstanceType<typeof sqlite.Database>;
  readonly #seal: Seal;

  private constructor(path: string, authKey: Buffer, sessionId: string) {
    this.#database = open(path);
    this.#seal = new Seal(authKey, about(this.#database, "salt"), sessionId);
    try {
      this.#seal.open(Buffer.from(CHECK), about(this.#database, CHECK));
    } catch (error) {
      this.#database.close();
      throw error;
    }
  }

  /** Opens, or creates. Throws WrongKey for a file of another key; such a file is never touched. */
  static open(path: string, authKey: Buffer, sessionId: string): AuthFile {
    if (!existsSync(path)) create(path, authKey, sessionId);
    return new AuthFile(path, authKey, sessionId);
  }

  get(kind: string, id: string): Buffer | null {
    if (!this.#database.isOpen) return null;
    const name = this.#seal.name(kind, id);
    const row = this.#database.get("SELECT value FROM kept WHERE name = ?", [name]);
    return row ? this.#seal.open(name, row["value"] as Uint8Array) : null;
  }

  /** All of them or none, on the disk when this returns. What a connection says after the end is not kept. */
  apply(changes: readonly Change[]): void {
    if (changes.length === 0 || !this.#database.isOpen) return;
    this.#transaction(() => {
      const put = this.#database.prepare(
        "INSERT INTO kept VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
      );
      const drop = this.#database.prepare("DELETE FROM kept WHERE name = ?");
      try {
        for (const { kind, id, value } of changes) {
          const name = this.#seal.name(kind, id);
          if (value === null) drop.run([name]);
          else put.run([name, this.#seal.close(name, value)]);
        }
      } finally {
        put.finalize();
        drop.finalize();
      }
    });
  }

  /** Keeps a message for a while, in case a device of the recipient cannot read it and asks again. */
  keepSent(whatsappId: string, content: Buffer, atMs: number): void {
    const name = this.#seal.name("sent", whatsappId);
    this.#transaction(() => {
      this.#database.run("INSERT OR REPLACE INTO sent VALUES (?, ?, ?)", [name, atMs, this.#seal.close(name, content)]);
      this.#database.run("DELETE FROM sent WHERE at < ?", [atMs - SENT_KEEP_MS]);
      this.#database.run("DELETE FROM sent WHERE name IN (SELECT name FROM sent ORDER BY at DESC LIMIT -1 OFFSET ?)", [
        SENT_KEEP,
      ]);
    });
  }

  sent(whatsappId: string): Buffer | null {
    if (!this.#database.isOpen) return null;
    const name = this.#seal.name("sent", whatsappId);
    const row = this.#database.get("SELECT value FROM sent WHERE name = ?", [name]);
    return row ? this.#seal.open(name, row["value"] as Uint8Array) : null;
  }

  close(): void {
    if (this.#database.isOpen) this.#database.close();
  }

  #transaction(work: () => void): void {
    this.#database.exec("BEGIN IMMEDIATE");
    try {
      work();
      this.#database.exec("COMMIT");
    } catch (error) {
      if (this.#database.inTransaction) this.#database.exec("ROLLBACK");
      throw error;
    }
  }
}

/** Puts the whole file away, under another name, after a confirmed logout. Only the newest such is kept. */
export function putAside(path: string, nowMs: number): void {
  const prefix = `${basename(path)}.logged-out-`;
  for (const name of readdirSync(dirname(path))) {
    if (name.startsWith(prefix)) rmSync(join(dirname(path), name), { force: true });
  }
  renameSync(path, join(dirname(path), `${prefix}${nowMs}`));
  fsyncDirectory(dirname(path));
}

function create(path: string, authKey: Buffer, sessionId: string): void {
  const draft = `${path}.new`;
  for (const rest of [draft, `${draft}-wal`, `${draft}-journal`]) rmSync(rest, { force: true });
  const salt = randomBytes(16);
  const place = Buffer.from(CHECK);
  const database = open(draft);
  try {
    database.exec(SCHEMA);
    database.run("INSERT INTO about VALUES ('salt', ?)", [salt]);
    database.run("INSERT INTO about VALUES (?, ?)", [CHECK, new Seal(authKey, salt, sessionId).close(place, place)]);
  } finally {
    database.close();
  }
  chmodSync(draft, 0o600);
  const descriptor = openSync(draft, "r+");
  fsyncSync(descriptor);
  closeSync(descriptor);
  renameSync(draft, path);
  fsyncDirectory(dirname(path));
}

function open(path: string): InstanceType<typeof sqlite.Database> {
  if (existsSync(`${path}.lock`)) rmdirSync(`${path}.lock`);
  const database = new sqlite.Database(path);
  // In this order: only an exclusive lock allows a write-ahead log without shared memory.
  database.exec("PRAGMA locking_mode = EXCLUSIVE");
  const mode = database.get("PRAGMA journal_mode = WAL")?.["journal_mode"];
  if (mode !== "wal") throw new Error(`SQLite would not use a write-ahead log (${String(mode)})`);
  database.exec("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 200");
  return database;
}

function about(database: InstanceType<typeof sqlite.Database>, name: string): Buffer {
  const row = database.get("SELECT value FROM about WHERE name = ?", [name]);
  if (!row) throw new Error("this is no auth state");
  return Buffer.from(row["value"] as Uint8Array);
}
