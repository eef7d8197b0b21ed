/**
 * A fake WhatsApp for a test file, in a directory of its own, and its admin API as functions.
 */

import "../../fake-whatsapp/src/quiet.js";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { UserFacingSocketConfig } from "baileys";
import { Agent, fetch } from "undici";
import type { FakeEvent } from "../../fake-whatsapp/src/events.js";
import type { LedgerLine } from "../../fake-whatsapp/src/ledger.js";
import { FakeWhatsApp } from "../../fake-whatsapp/src/server.js";
import { trustRoot } from "../trust-preload.js";
import { Client, trusting, waitFor } from "./client.js";

/** Twenty that link at once keep a busy machine from answering for longer than the ten seconds a connection has by default. */
const patient = new Agent({ connect: { timeout: 120_000 } });

export class AdminClient {
  constructor(readonly url: string) {}

  async call<Answer = Record<string, unknown>>(method: string, path: string, body?: unknown): Promise<Answer> {
    const payload = body === undefined ? {} : { body: JSON.stringify(body) };
    const response = await fetch(this.url + path, { method, dispatcher: patient, ...payload });
    const answer = (await response.json()) as Answer & { error?: string };
    if (!response.ok) throw new Error(`${response.status} ${answer.error}`);
    return answer;
  }

  behave(changes: Record<string, unknown>): Promise<unknown> {
    return this.call("PATCH", "/behaviour", changes);
  }

  disconnect(jid: string, order: Record<string, unknown>): Promise<unknown> {
    return this.call("POST", `/devices/${encodeURIComponent(jid)}/disconnect`, order);
  }

  async ledger(): Promise<LedgerLine[]> {
    return (await this.call<{ lines: LedgerLine[] }>("GET", "/ledger")).lines;
  }

  async events(kind: string): Promise<FakeEvent[]> {
    const { events } = await this.call<{ events: FakeEvent[] }>("GET", "/events");
    return events.filter((event) => event.kind === kind);
  }

  /** Pair by QR, go through the restart, and log in. */
  async link(client: Client, phone: string): Promise<void> {
    client.connect();
    await this.call("POST", "/scan", { qr: await client.qr(), phone });
    await client.close();
    client.connect();
    await client.open();
  }

  async lines(count: number): Promise<LedgerLine[]> {
    return waitFor(`${count} lines`, async () => {
      const lines = await this.ledger();
      return lines.length >= count && lines;
    });
  }
}

export interface Running {
  fake: FakeWhatsApp;
  admin: AdminClient;
  directory: string;
  client(options?: Partial<UserFacingSocketConfig>): Client;
  /** A client that is linked to this phone and logged in. */
  linked(phone: string, options?: Partial<UserFacingSocketConfig>): Promise<Client>;
  stop(): Promise<void>;
}

/** Everything it made ends with `stop`. */
export async function startFake(): Promise<Running> {
  const directory = await mkdtemp(join(tmpdir(), "fake-whatsapp-"));
  const fake = await FakeWhatsApp.start({ keysDirectory: directory, ledgerFile: join(directory, "ledger.jsonl") });
  trustRoot(fake.rootFile);
  const admin = new AdminClient(fake.adminUrl);
  const fetchAgent = trusting(readFileSync(fake.caFile, "utf8"));
  const clients: Client[] = [];
  // 812 keys for each new device take a tenth of a second; only the tests about pre-keys need them.
  await admin.behave({ preKeyCount: 100 });
  const client = (options: Partial<UserFacingSocketConfig> = {}): Client => {
    const made = new Client(fake.url, { fetchAgent, ...options });
    clients.push(made);
    return made;
  };
  const linked = async (phone: string, options?: Partial<UserFacingSocketConfig>): Promise<Client> => {
    const made = client(options);
    await admin.link(made, phone);
    return made;
  };
  const stop = async (): Promise<void> => {
    for (const one of clients) one.end();
    await fake.close();
    await rm(directory, { recursive: true });
  };
  return { fake, admin, directory, client, linked, stop };
}
