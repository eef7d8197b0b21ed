/**
 * What the orchestrator has not been told yet, on the volume: WhatsApp tells a receipt or what a person wrote once and,
 * when we have confirmed it, never again. So it is here first, sealed like the login, and goes when the orchestrator
 * has answered. Neighbours: `poster`, which posts it and holds the limit.
 */
import { renameSync } from "node:fs";
import { log } from "./log.js";
import type { EventStore } from "./poster.js";
import type { WorkerEvent } from "./protocol.js";
import { WrongKey } from "./seal.js";
import { SealedFile } from "./sealed-file.js";

const SCHEMA = "CREATE TABLE waiting (place INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE, value BLOB NOT NULL);";

export class EventFile implements EventStore {
  private constructor(private readonly file: SealedFile) {}

  /** Whoever lost the key of a login links anew; a file that only the lost key opens must not stand in the way. */
  static open(path: string, key: Buffer, sessionId: string, nowMs: number): EventFile {
    try {
      return new EventFile(SealedFile.open(path, key, sessionId, SCHEMA));
    } catch (error) {
      if (!(error instanceof WrongKey)) throw error;
      const aside = `${path}.unreadable-${nowMs}`;
      log.error("events of another key are put aside", { path: aside });
      renameSync(path, aside);
      return new EventFile(SealedFile.open(path, key, sessionId, SCHEMA));
    }
  }

  all(): WorkerEvent[] {
    const rows = this.file.database.all("SELECT name, value FROM waiting ORDER BY place");
    return rows.map(({ name, value }) => {
      const place = Buffer.from(name as Uint8Array);
      return JSON.parse(this.file.seal.open(place, value as Uint8Array).toString("utf8")) as WorkerEvent;
    });
  }

  add(event: WorkerEvent): boolean {
    const { database, seal } = this.file;
    const name = this.#name(event);
    const value = seal.close(name, Buffer.from(JSON.stringify(event)));
    return database.run("INSERT OR IGNORE INTO waiting (name, value) VALUES (?, ?)", [name, value]).changes > 0;
  }

  remove(event: WorkerEvent): void {
    // A post may be answered when all is closed already; then it is told once more.
    if (this.file.isOpen) this.file.database.run("DELETE FROM waiting WHERE name = ?", [this.#name(event)]);
  }

  close(): void {
    this.file.close();
  }

  #name({ eventId }: WorkerEvent): Buffer {
    return this.file.seal.name("event", eventId);
  }
}
