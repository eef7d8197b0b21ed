/**
 * A SQLite file of sealed values: one session's, under one key. `driver/auth-file.ts` keeps the login in one,
 * `event-file.ts` in another what the orchestrator has not been told yet.
 *
 * The library is SQLite compiled to WebAssembly, because it needs no build tools. Its file layer has one trap: it
 * answers "does anybody write?" with yes whenever we ourselves hold the lock, and SQLite then leaves a half-done
 * rollback journal alone, which would be a broken file after a crash. A write-ahead log has no such question, so this
 * file is never in any other mode: it is made aside, complete, and renamed into place. The lock of that layer is a
 * directory that a killed process leaves behind; whoever opens this holds the volume (`volume.ts`), so it may be taken
 * away.
 */
import { randomBytes } from "node:crypto";
import { chmodSync, closeSync, existsSync, fsyncSync, openSync, renameSync, rmdirSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import sqlite from "node-sqlite3-wasm";
import { fsyncDirectory } from "./journal.js";
import { Seal } from "./seal.js";

const ABOUT = "CREATE TABLE about (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;";
const CHECK = "check";

type Database = InstanceType<typeof sqlite.Database>;

export class SealedFile {
  private constructor(
    readonly database: Database,
    readonly seal: Seal,
  ) {}

  /** Opens, or creates. Throws WrongKey for a file of another key; such a file is never touched. */
  static open(path: string, key: Buffer, sessionId: string, schema: string): SealedFile {
    if (!existsSync(path)) create(path, key, sessionId, schema);
    const database = open(path);
    try {
      const seal = new Seal(key, about(database, "salt"), sessionId);
      seal.open(Buffer.from(CHECK), about(database, CHECK));
      return new SealedFile(database, seal);
    } catch (error) {
      database.close();
      throw error;
    }
  }

  get isOpen(): boolean {
    return this.database.isOpen;
  }

  /** All of it or nothing, on the disk when this returns. */
  transaction(work: () => void): void {
    this.database.exec("BEGIN IMMEDIATE");
    try {
      work();
      this.database.exec("COMMIT");
    } catch (error) {
      if (this.database.inTransaction) this.database.exec("ROLLBACK");
      throw error;
    }
  }

  close(): void {
    if (this.database.isOpen) this.database.close();
  }
}

function create(path: string, key: Buffer, sessionId: string, schema: string): void {
  const draft = `${path}.new`;
  for (const rest of [draft, `${draft}-wal`, `${draft}-journal`]) rmSync(rest, { force: true });
  const salt = randomBytes(16);
  const place = Buffer.from(CHECK);
  const database = open(draft);
  try {
    database.exec(ABOUT + schema);
    database.run("INSERT INTO about VALUES ('salt', ?)", [salt]);
    database.run("INSERT INTO about VALUES (?, ?)", [CHECK, new Seal(key, salt, sessionId).close(place, place)]);
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

function open(path: string): Database {
  if (existsSync(`${path}.lock`)) rmdirSync(`${path}.lock`);
  const database = new sqlite.Database(path);
  // In this order: only an exclusive lock allows a write-ahead log without shared memory.
  database.exec("PRAGMA locking_mode = EXCLUSIVE");
  const mode = database.get("PRAGMA journal_mode = WAL")?.["journal_mode"];
  if (mode !== "wal") throw new Error(`SQLite would not use a write-ahead log (${String(mode)})`);
  database.exec("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 200");
  return database;
}

function about(database: Database, name: string): Buffer {
  const row = database.get("SELECT value FROM about WHERE name = ?", [name]);
  if (!row) throw new Error("this is no file of ours");
  return Buffer.from(row["value"] as Uint8Array);
}
