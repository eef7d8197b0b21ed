/**
 * A small orchestrator for tests: speaks the worker protocol as `paceline.orchestrator.protocol` does, keeps tasks in
 * memory and writes down every event. It repeats a task whose outcome is unknown (`onUnknown: resend`) and nothing
 * else.
 */
import { createHash } from "node:crypto";
import http from "node:http";
import type { AddressInfo } from "node:net";
import type { Command, WorkerEvent } from "../../src/protocol.js";
import { whatsappId } from "../../src/ids.js";

export interface NewTask {
  readonly to: string;
  readonly text: string;
  readonly mode?: string;
  readonly media?: { readonly content: Buffer; readonly type: string; readonly kind: string; readonly name?: string };
  /** From the claim on. */
  readonly sendAfterMs?: number;
  readonly sendBeforeMs?: number;
}

export interface Task extends NewTask {
  readonly taskId: string;
  readonly whatsappId: string;
  state: "queued" | "claimed" | "sent" | "failed";
  resend: boolean;
  token: number;
  attempt: number;
  /** Every nack, in words: `returned`, `unknown <code>` or `refused <code>`. */
  readonly nacks: string[];
  error: { code: string; message: string } | null;
}

export const SECRET = "the-secret-of-this-session";
const JOB = "01JAR7Z3V5W8Q2M4N6P8R0T2V4";
const LEASE_MS = 120_000;
const LONGEST_POLL_MS = 5_000;

type Body = Record<string, unknown>;
type Answer = readonly [number, unknown];

export class StubOrchestrator {
  readonly tasks: Task[] = [];
  readonly events: WorkerEvent[] = [];
  readonly calls: string[] = [];
  commands: Command[] = [];
  epoch = 0;
  /** How far its clock is ahead of the workers'. */
  aheadMs = 0;
  typing = { minMs: 0, maxMs: 20 };
  /** Told with each hello. A proof ends the wait; where none comes, all of it passes. */
  unknownGraceMs = 5_000;
  /** Answers every call so, as something in the way may. */
  broken: number | null = null;
  /** Only these, webhooks by their event; null breaks all. */
  brokenCalls: readonly string[] | null = null;
  /** What was answered so. */
  readonly inVain: string[] = [];
  /** Given in place of every file. */
  mediaInstead: Buffer | null = null;
  #url = "";
  #wakers = new Set<() => void>();
  readonly #server = http.createServer((request, response) => void this.#serve(request, response));

  async start(port = 0): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(port, "127.0.0.1", resolve));
    this.#url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get url(): string {
    return this.#url;
  }

  /** Gone, as by a kill; `start(port)` brings it back with all it knew. */
  async stop(): Promise<number> {
    const port = Number(new URL(this.#url).port);
    this.#wake();
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
    return port;
  }

  add(task: NewTask): Task {
    const taskId = `${JOB}:${this.tasks.length}`;
    const added: Task = {
      ...task,
      taskId,
      whatsappId: whatsappId(taskId),
      state: "queued",
      resend: false,
      token: 0,
      attempt: 0,
      nacks: [],
      error: null,
    };
    this.tasks.push(added);
    this.#wake();
    return added;
  }

  command(kind: string): void {
    this.commands.push({ id: `c-${this.calls.length}-${kind}`, kind, until: this.#nowMs() + 60_000 });
    this.#wake();
  }

  named(name: string, about?: Task): WorkerEvent[] {
    return this.events.filter((event) => event.event === name && (!about || event.data["messageId"] === about.taskId));
  }

  #nowMs(): number {
    return Date.now() + this.aheadMs;
  }

  #wake(): void {
    for (const wake of [...this.#wakers]) wake();
  }

  async #serve(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const body = (chunks.length > 0 ? JSON.parse(Buffer.concat(chunks).toString()) : {}) as Body;
    const url = new URL(request.url ?? "/", this.#url);
    const [status, answer] =
      this.#breaks(url, body) && this.broken !== null
        ? ([this.broken, {}] as const)
        : request.headers["x-webhook-secret"] === SECRET
          ? await this.#answer(url, body, response)
          : error(401, "UNAUTHORIZED");
    if (Buffer.isBuffer(answer)) response.writeHead(status).end(answer);
    else response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(answer));
  }

  #breaks(url: URL, body: Body): boolean {
    const call = String(body["event"] ?? url.pathname.split("/").at(-1));
    if (this.broken === null || this.brokenCalls?.includes(call) === false) return false;
    this.inVain.push(call);
    return true;
  }

  async #answer(url: URL, body: Body, response: http.ServerResponse): Promise<Answer> {
    const verb = url.pathname.split("/").at(-1) ?? "";
    this.calls.push(verb);
    if (url.pathname.startsWith("/api/worker/media/")) return this.#media(decodeURIComponent(verb));
    if (verb === "webhook") return this.#webhook(body as unknown as WorkerEvent);
    if (verb === "hello") return this.#hello();
    if (body["epoch"] !== this.epoch && verb !== "ack") return error(409, "STALE_EPOCH");
    if (verb === "claim") return this.#claim(Number(url.searchParams.get("timeout")) * 1_000, body, response);
    const task = this.tasks.find(({ taskId }) => taskId === idOf(body));
    if (!task) return error(404, "UNKNOWN_TASK");
    if (verb === "extend") return [200, { status: "ok", leaseUntilMs: this.#nowMs() + LEASE_MS }];
    if (verb === "ack") task.state = "sent";
    else this.#nack(task, body);
    this.#wake();
    return [200, { status: "ok", state: task.state }];
  }

  #hello(): Answer {
    this.epoch += 1;
    const terms = { leaseMs: LEASE_MS, typing: this.typing, unknownGraceMs: this.unknownGraceMs };
    return [
      200,
      { epoch: this.epoch, nowMs: this.#nowMs(), ...terms, pending: this.#pending(), commands: this.#orders() },
    ];
  }

  async #claim(timeoutMs: number, body: Body, response: http.ServerResponse): Promise<Answer> {
    const untilMs = this.#nowMs() + Math.min(timeoutMs, LONGEST_POLL_MS);
    const { epoch } = this;
    // A worker that was killed while it waited must not be given the next task.
    response.once("close", () => this.#wake());
    for (;;) {
      if (response.destroyed) return error(409, "GONE");
      if (epoch !== this.epoch) return error(409, "STALE_EPOCH");
      const [pending, commands] = [this.#pending(), this.#orders()];
      const task =
        body["commandsOnly"] || pending.length ? undefined : this.tasks.find(({ state }) => state === "queued");
      if (task) return [200, { status: "ok", ...this.#give(task), pending, commands, nowMs: this.#nowMs() }];
      if (pending.length || commands.length || this.#nowMs() >= untilMs) {
        return [200, { status: "ok", task: null, pending, commands, nowMs: this.#nowMs() }];
      }
      await new Promise<void>((resolve) => {
        const done = (): void => {
          clearTimeout(timer);
          this.#wakers.delete(done);
          resolve();
        };
        const timer = setTimeout(done, untilMs - this.#nowMs());
        this.#wakers.add(done);
      });
    }
  }

  #give(task: Task): { task: unknown; raw: string } {
    task.state = "claimed";
    task.token += 1;
    task.attempt += 1;
    const nowMs = this.#nowMs();
    const { taskId, to, text, mode = "message", media, attempt, resend, token } = task;
    const given = {
      taskId,
      to,
      text,
      whatsappId: task.whatsappId,
      attempt,
      resend,
      token,
      mode,
      requestId: `request-of-${taskId}`,
      sendAfterMs: nowMs + (task.sendAfterMs ?? 0),
      sendBeforeMs: nowMs + (task.sendBeforeMs ?? 60_000),
      leaseUntilMs: nowMs + LEASE_MS,
      ...(media && {
        mediaRef: refOf(media),
        mediaType: media.type,
        mediaSize: media.content.length,
        mediaName: media.name,
      }),
    };
    return { task: given, raw: JSON.stringify(given) };
  }

  #nack(task: Task, body: Body): void {
    const problem = (body["error"] ?? null) as Task["error"];
    if (body["notSent"] === true && problem === null) {
      task.nacks.push("returned");
      task.state = "queued";
    } else if (body["notSent"] === true) {
      task.nacks.push(`refused ${problem?.code ?? ""}`);
      task.state = "failed";
      task.error = problem;
    } else {
      task.nacks.push(`unknown ${problem?.code ?? ""}`);
      task.state = "queued";
      task.resend = true;
    }
  }

  #webhook(event: WorkerEvent): Answer {
    this.events.push(event);
    const task = this.tasks.find(({ taskId }) => taskId === event.data["messageId"]);
    if (task && event.event === "MESSAGE_SENT") task.state = "sent";
    if (event.event === "COMMAND_DONE")
      this.commands = this.commands.filter(({ id }) => id !== event.data["commandId"]);
    this.#wake();
    return [200, { status: "ok" }];
  }

  #media(ref: string): Answer {
    const task = this.tasks.find(({ media }) => media && refOf(media) === ref);
    return task?.media ? [200, this.mediaInstead ?? task.media.content] : error(404, "UNKNOWN_MEDIA");
  }

  #pending(): unknown[] {
    return this.tasks
      .filter(({ state }) => state === "claimed")
      .map(({ taskId, token, to, whatsappId: wireId }) => ({ taskId, token: String(token), to, whatsappId: wireId }));
  }

  #orders(): Command[] {
    return this.commands;
  }
}

function refOf(media: NonNullable<NewTask["media"]>): string {
  return `${createHash("sha256").update(media.content).digest("hex")}-${media.kind}`;
}

function idOf(body: Body): unknown {
  return typeof body["raw"] === "string" ? (JSON.parse(body["raw"]) as { taskId: string }).taskId : body["taskId"];
}

function error(status: number, code: string): Answer {
  return [status, { error: { code, message: code.toLowerCase(), details: {} } }];
}
