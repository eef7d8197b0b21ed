/** All of a login that must survive, in one sealed file. `auth-state.ts` gives it the shape Baileys wants. */
import { readdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fsyncDirectory } from "../journal.js";
import { SealedFile } from "../sealed-file.js";

const SCHEMA = `
  CREATE TABLE kept (name BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
  CREATE TABLE sent (name BLOB PRIMARY KEY, at INTEGER NOT NULL, value BLOB NOT NULL) WITHOUT ROWID;
  CREATE INDEX sent_at ON sent (at);
`;
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
  private constructor(private readonly file: SealedFile) {}

  /** Opens, or creates. Throws WrongKey for a file of another key; such a file is never touched. */
  static open(path: string, authKey: Buffer, sessionId: string): AuthFile {
    return new AuthFile(SealedFile.open(path, authKey, sessionId, SCHEMA));
  }

  get(kind: string, id: string): Buffer | null {
    return this.#read("kept", this.file.seal.name(kind, id));
  }

  /** All of them or none, on the disk when this returns. What a connection says after the end is not kept. */
  apply(changes: readonly Change[]): void {
    const { database, seal } = this.file;
    if (changes.length === 0 || !this.file.isOpen) return;
    this.file.transaction(() => {
      const put = database.prepare(
        "INSERT INTO kept VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
      );
      const drop = database.prepare("DELETE FROM kept WHERE name = ?");
      try {
        for (const { kind, id, value } of changes) {
          const name = seal.name(kind, id);
          if (value === null) drop.run([name]);
          else put.run([name, seal.close(name, value)]);
        }
      } finally {
        put.finalize();
        drop.finalize();
      }
    });
  }

  /** Keeps a message for a while, in case a device of the recipient cannot read it and asks again. */
  keepSent(whatsappId: string, content: Buffer, atMs: number): void {
    const { database, seal } = this.file;
    const name = seal.name("sent", whatsappId);
    this.file.transaction(() => {
      database.run("INSERT OR REPLACE INTO sent VALUES (?, ?, ?)", [name, atMs, seal.close(name, content)]);
      database.run("DELETE FROM sent WHERE at < ?", [atMs - SENT_KEEP_MS]);
      database.run("DELETE FROM sent WHERE name IN (SELECT name FROM sent ORDER BY at DESC LIMIT -1 OFFSET ?)", [
        SENT_KEEP,
      ]);
    });
  }

  sent(whatsappId: string): Buffer | null {
    return this.#read("sent", this.file.seal.name("sent", whatsappId));
  }

  close(): void {
    this.file.close();
  }

  #read(table: "kept" | "sent", name: Buffer): Buffer | null {
    if (!this.file.isOpen) return null;
    const row = this.file.database.get(`SELECT value FROM ${table} WHERE name = ?`, [name]);
    return row ? this.file.seal.open(name, row["value"] as Uint8Array) : null;
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
