/**
 * A worker as a process of its own, between a fake WhatsApp and a small orchestrator. Tests wait for conditions, with a
 * cap, and never for a time.
 */
import "../../fake-whatsapp/src/quiet.js";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { LedgerLine } from "../../fake-whatsapp/src/ledger.js";
import { FakeWhatsApp } from "../../fake-whatsapp/src/server.js";
import { SECRET, StubOrchestrator, type Task } from "./orchestrator.js";

export const PHONE = "972500000001";
export const AUTH_KEY = "c3".repeat(32);
const WORKER = fileURLToPath(new URL("../../../bin/worker", import.meta.url));
const PRELOAD = fileURLToPath(new URL("../trust-preload.js", import.meta.url));
// For a machine that has other things to do as well.
const CAP_MS = 60_000;
const LOOK_EVERY_MS = 20;

/** Quick where a test waits for it. What only a broken run reaches is as long as a busy machine may need. */
export const QUICK = {
  connectMs: 15_000,
  watchdogMs: 20_000,
  queryMs: 15_000,
  uploadMs: 15_000,
  ackMs: 30_000,
  backoffFirstMs: 50,
  backoffLongestMs: 400,
  guardGapMs: 0,
  pingMs: 500,
};

type Seen<T> = T | false | null | undefined;

export async function until<T>(what: string, look: () => Seen<T> | Promise<Seen<T>>, capMs = CAP_MS): Promise<T> {
  const untilMs = performance.now() + capMs;
  for (;;) {
    const seen = await look();
    if (seen) return seen;
    if (performance.now() > untilMs) throw new Error(`waited ${capMs} ms in vain for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}

export class Worker {
  readonly process: ChildProcess;
  output = "";
  code: number | null = null;
  signal: NodeJS.Signals | null = null;

  constructor(env: Record<string, string>) {
    this.process = spawn(WORKER, {
      env: { PATH: process.env["PATH"] ?? "", NODE_OPTIONS: `--import ${PRELOAD}`, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [this.process.stdout, this.process.stderr]) {
      stream?.on("data", (chunk: Buffer) => (this.output += chunk.toString()));
    }
    this.process.once("exit", (code, signal) => {
      this.code = code;
      this.signal = signal;
    });
  }

  get isOver(): boolean {
    return this.code !== null || this.signal !== null;
  }

  async ended(): Promise<number | null> {
    await until("the worker's end", () => this.isOver);
    return this.code;
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<number | null> {
    this.process.kill(signal);
    return this.ended();
  }
}

export class Stage {
  readonly folder = mkdtempSync(join(tmpdir(), "worker-"));
  readonly failpoints = join(this.folder, "failpoints");
  readonly orchestrator = new StubOrchestrator();
  readonly workers: Worker[] = [];
  /** More environment, for every worker started from now on. */
  env: Record<string, string> = {};
  timings: Record<string, number> = { ...QUICK };
  sessionId = "s1";

  private constructor(
    readonly fake: FakeWhatsApp,
    private readonly keys: string,
  ) {
    mkdirSync(this.failpoints);
  }

  static async start(): Promise<Stage> {
    const keys = mkdtempSync(join(tmpdir(), "fake-keys-"));
    const stage = new Stage(await FakeWhatsApp.start({ keysDirectory: keys }), keys);
    await stage.orchestrator.start();
    // 812 keys for each new device take their time.
    await stage.admin("PATCH", "/behaviour", { preKeyCount: 100 });
    return stage;
  }

  async stop(): Promise<void> {
    for (const worker of this.workers) if (!worker.isOver) await worker.kill();
    await this.orchestrator.stop();
    await this.fake.close();
    for (const folder of [this.folder, this.keys]) rmSync(folder, { recursive: true });
  }

  get volume(): string {
    return join(this.folder, "sessions", this.sessionId);
  }

  work(env: Record<string, string> = {}): Worker {
    const worker = new Worker({
      SESSION_ID: this.sessionId,
      PHONE,
      WEBHOOK_URL: this.orchestrator.url,
      WEBHOOK_SECRET: SECRET,
      AUTH_KEY,
      PACELINE_DATA: this.folder,
      PACELINE_FAILPOINTS: this.failpoints,
      WHATSAPP_URL: `${this.fake.url}?session=${this.sessionId}`,
      WORKER_TIMINGS: JSON.stringify(this.timings),
      NODE_EXTRA_CA_CERTS: this.fake.caFile,
      FAKE_WHATSAPP_ROOT_FILE: this.fake.rootFile,
      LOG_LEVEL: "debug",
      ...this.env,
      ...env,
    });
    this.workers.push(worker);
    return worker;
  }

  /** A worker that is linked to the phone and online. */
  async linked(env: Record<string, string> = {}): Promise<Worker> {
    const worker = this.work(env);
    await this.scan();
    await this.online();
    return worker;
  }

  async scan(): Promise<void> {
    const [qr] = (await this.events("QR")).slice(-1);
    await this.admin("POST", "/scan", { qr: qr?.data["qr"], phone: PHONE });
  }

  /** Until CONNECTED was told more often than so. */
  async online(times = 0): Promise<void> {
    await until("CONNECTED", () => this.orchestrator.named("CONNECTED").length > times);
  }

  async events(name: string, count = 1): Promise<StubOrchestrator["events"]> {
    return until(`${count} ${name}`, () => {
      const found = this.orchestrator.named(name);
      return found.length >= count && found;
    });
  }

  async settled(task: Task, state: Task["state"] = "sent"): Promise<Task> {
    return until(`${task.taskId} ${state}`, () => task.state === state && task);
  }

  arm(failpoint: string): void {
    writeFileSync(join(this.failpoints, failpoint), "");
  }

  async admin<T = Record<string, unknown>>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await fetch(this.fake.adminUrl + path, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as T & { error?: string };
    if (!response.ok) throw new Error(`${path}: ${response.status} ${answer.error ?? ""}`);
    return answer;
  }

  behave(changes: Record<string, unknown>): Promise<unknown> {
    return this.admin("PATCH", "/behaviour", changes);
  }

  async ledger(): Promise<LedgerLine[]> {
    return (await this.admin<{ lines: LedgerLine[] }>("GET", "/ledger")).lines;
  }

  async disconnect(order: Record<string, unknown>): Promise<void> {
    const { devices } = await this.admin<{ devices: { jid: string; connected: boolean }[] }>("GET", "/devices");
    const jid = devices.find((device) => device.connected)?.jid ?? "";
    await this.admin("POST", `/devices/${encodeURIComponent(jid)}/disconnect`, order);
  }
}
