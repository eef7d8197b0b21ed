/**
 * The worker protocol over HTTP, on Node's own client: it never looks at HTTP_PROXY, which is for the way to WhatsApp
 * and never for the way to the orchestrator. Every call has a time limit, every answer a size limit, and every error is
 * translated here.
 */
import http from "node:http";
import https from "node:https";
import type { SendError } from "./failures.js";
import {
  Blocked,
  type ByRaw,
  CLAIM_TIMEOUT_SECONDS,
  type ClaimAnswer,
  type Handle,
  type HelloAnswer,
  NotWanted,
  ProtocolError,
  RequestRefused,
  StaleEpoch,
  Unavailable,
  type WorkerEvent,
  type WorkerProtocol,
} from "./protocol.js";

// An orchestrator that needs longer is in trouble; asking again is then as good as waiting.
const CALL_TIMEOUT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 5_000;
// A file is on the same network; a lease is four times as long.
const MEDIA_TIMEOUT_MS = 30_000;
// The longest answer is a claim with a text of 4,096 characters.
const ANSWER_LIMIT_BYTES = 1_048_576;
const ERROR_LIMIT_BYTES = 65_536;
// What the orchestrator takes of an error message.
const MESSAGE_LIMIT = 1_024;

interface Call {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: unknown;
  readonly waitMs: number;
  readonly limitBytes: number;
}

/** One session's line to the orchestrator. */
export class HttpProtocol implements WorkerProtocol {
  readonly #base: URL;
  readonly #agent: http.Agent;
  readonly #session: string;
  readonly #pending = new Set<http.ClientRequest>();
  #silentSinceMs: number | null = null;

  constructor(
    baseUrl: string,
    private readonly sessionId: string,
    private readonly secret: string,
  ) {
    this.#base = new URL(baseUrl);
    this.#agent = new (this.#base.protocol === "https:" ? https.Agent : http.Agent)({ keepAlive: true, maxSockets: 8 });
    this.#session = `/api/worker/sessions/${encodeURIComponent(sessionId)}`;
  }

  /** How long ago the first call failed since the last that was answered, however it was answered. */
  unansweredMs(): number {
    return this.#silentSinceMs === null ? 0 : performance.now() - this.#silentSinceMs;
  }

  close(): void {
    for (const request of this.#pending) request.destroy();
    this.#agent.destroy();
  }

  hello(who: { instanceId: string; lifeId: string; journalId: string; driver: string }): Promise<HelloAnswer> {
    return this.#ask(`${this.#session}/hello`, who, (answer: HelloAnswer) => Number.isInteger(answer.epoch));
  }

  claim(epoch: number, commandsOnly = false): Promise<ClaimAnswer> {
    const path = `${this.#session}/outbox/claim?timeout=`;
    const isAnswer = (answer: ClaimAnswer): boolean => Number.isInteger(answer.nowMs);
    if (commandsOnly) return this.#ask(`${path}0`, { epoch, commandsOnly: true }, isAnswer);
    return this.#ask(
      `${path}${CLAIM_TIMEOUT_SECONDS}`,
      { epoch },
      isAnswer,
      CLAIM_TIMEOUT_SECONDS * 1_000 + CALL_TIMEOUT_MS,
    );
  }

  async ack(handle: Handle, epoch: number, whatsappId: string): Promise<void> {
    await this.#report(`${this.#session}/outbox/ack`, { ...handle, epoch, whatsappId });
  }

  async nack(handle: Handle, epoch: number, notSent: boolean, error?: SendError): Promise<void> {
    // A library's message may be a page long; a report refused for its length would be no report at all.
    const said = error && { error: { code: error.code, message: error.message.slice(0, MESSAGE_LIMIT) } };
    await this.#report(`${this.#session}/outbox/nack`, { ...handle, epoch, notSent, ...said });
  }

  async extend(handle: ByRaw, epoch: number): Promise<number> {
    const isAnswer = (answer: { leaseUntilMs: number }): boolean => Number.isInteger(answer.leaseUntilMs);
    return (await this.#ask(`${this.#session}/outbox/extend`, { ...handle, epoch }, isAnswer)).leaseUntilMs;
  }

  async media(ref: string, size: number): Promise<Buffer> {
    const path = `/api/worker/media/${encodeURIComponent(ref)}?sessionId=${encodeURIComponent(this.sessionId)}`;
    return this.#call({ method: "GET", path, waitMs: MEDIA_TIMEOUT_MS, limitBytes: Math.max(size, ERROR_LIMIT_BYTES) });
  }

  async webhook(event: WorkerEvent): Promise<void> {
    await this.#report("/api/webhook", event);
  }

  /** Told only if the orchestrator itself says so: a page of something in between is no word of it. */
  async #report(path: string, body: unknown): Promise<void> {
    await this.#ask(path, body, (answer: { status: unknown }) => answer.status === "ok");
  }

  async #ask<T>(path: string, body: unknown, isAnswer: (answer: T) => boolean, waitMs = CALL_TIMEOUT_MS): Promise<T> {
    const content = await this.#post(path, body, waitMs);
    let answer: T | null = null;
    try {
      answer = JSON.parse(content.toString("utf8")) as T;
    } catch {
      // Told below.
    }
    if (answer === null || typeof answer !== "object" || !isAnswer(answer)) {
      throw new Unavailable(`${path}: unreadable answer`);
    }
    return answer;
  }

  #post(path: string, body: unknown, waitMs = CALL_TIMEOUT_MS): Promise<Buffer> {
    return this.#call({ method: "POST", path, body, waitMs, limitBytes: ANSWER_LIMIT_BYTES });
  }

  async #call(call: Call): Promise<Buffer> {
    try {
      const content = await this.#exchange(call);
      this.#silentSinceMs = null;
      return content;
    } catch (error) {
      // An answer that says no is an answer.
      if (error instanceof Unavailable && !error.message.startsWith("answered ")) {
        this.#silentSinceMs ??= performance.now();
      } else {
        this.#silentSinceMs = null;
      }
      throw error;
    }
  }

  #exchange(call: Call): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const content = call.body === undefined ? undefined : Buffer.from(JSON.stringify(call.body));
      const headers: http.OutgoingHttpHeaders = { "X-Webhook-Secret": this.secret };
      if (content) Object.assign(headers, { "Content-Type": "application/json", "Content-Length": content.length });
      let isConnected = false;
      let timer: NodeJS.Timeout;
      const done = (settle: () => void): void => {
        clearTimeout(timer);
        this.#pending.delete(request);
        settle();
      };
      const giveUp = (reason: string): void => {
        request.destroy();
        done(() => reject(new Unavailable(`${call.path}: ${reason}`, isConnected)));
      };
      const request = (this.#base.protocol === "https:" ? https : http).request(
        new URL(this.#base.pathname.replace(/\/$/, "") + call.path, this.#base),
        { method: call.method, headers, agent: this.#agent },
        (response) => {
          const chunks: Buffer[] = [];
          let bytes = 0;
          response.on("data", (chunk: Buffer) => {
            chunks.push(chunk);
            bytes += chunk.length;
            if (bytes > call.limitBytes) giveUp(`more than ${call.limitBytes} bytes`);
          });
          response.on("end", () => {
            const answer = Buffer.concat(chunks);
            const status = response.statusCode ?? 0;
            if (!response.complete) giveUp("the answer broke off");
            else done(() => (status >= 200 && status < 300 ? resolve(answer) : reject(errorOf(status, answer))));
          });
          response.on("error", (error) => giveUp(error.message));
        },
      );
      this.#pending.add(request);
      request.on("error", (error) => giveUp(error.message));
      request.on("socket", (socket) => {
        if (!socket.connecting) isConnected = true;
        else {
          const timeout = setTimeout(() => giveUp("no connection in time"), CONNECT_TIMEOUT_MS);
          socket.once("close", () => clearTimeout(timeout));
          socket.once("connect", () => {
            clearTimeout(timeout);
            isConnected = true;
          });
        }
      });
      timer = setTimeout(() => giveUp(`no answer within ${call.waitMs} ms`), call.waitMs);
      request.end(content);
    });
  }
}

/**
 * The protocol error that an answer without success stands for. Whatever stands between us and the orchestrator answers
 * in a shape of its own; then nobody has heard us yet, whatever the status says.
 */
export function errorOf(status: number, content: Buffer): ProtocolError {
  const said = errorBody(content);
  // 408 and 429 say nothing about the request itself: too slow, too many.
  const isRefusal = status >= 400 && status < 500 && status !== 408 && status !== 429;
  if (said === null) return new (isRefusal ? Blocked : Unavailable)(`answered ${status} UNREADABLE`);
  const { code, message } = said;
  if (status === 409 && code === "STALE_EPOCH") return new StaleEpoch(message);
  if (status === 409 && code === "NOT_WANTED") return new NotWanted(message);
  if (isRefusal) return new RequestRefused(status, code, message);
  return new Unavailable(`answered ${status} ${code}: ${message}`);
}

/** What the orchestrator says (`paceline.kits.problem`); null if it is not the one who speaks. */
function errorBody(content: Buffer): { code: string; message: string } | null {
  try {
    const { error } = JSON.parse(content.toString("utf8")) as { error: Record<string, unknown> };
    const { code, message, details } = error;
    const isOurs = typeof code === "string" && typeof message === "string" && typeof details === "object";
    return isOurs && details !== null ? { code, message } : null;
  } catch {
    return null;
  }
}
