/**
 * The worker's environment: the names of SPEC §6, as every runner sets them, and what this driver needs besides.
 * README.md lists them all. Everything that is wrong is told at once.
 */
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { readProxy, type Proxy } from "./driver/proxy-url.js";
import { readTimings, type Timings } from "./timings.js";

/** Bad environment: the process ends with status 2. */
export class ConfigError extends Error {
  constructor(readonly faults: readonly string[]) {
    super(faults.join("; "));
  }
}

export interface Environment {
  readonly sessionId: string;
  /** Digits of the number that the session is for; no other may be linked. */
  readonly phone: string;
  /** Base address of the orchestrator. */
  readonly webhookUrl: string;
  readonly webhookSecret: string;
  /** Null goes out directly, which is the orchestrator's decision, never ours. */
  readonly proxy: Proxy | null;
  readonly keepAlive: boolean;
  readonly logLevel: string;
  readonly instanceId: string;
  readonly generation: number;
  /** Ends when no orchestrator has answered for so long; 0 waits for ever. */
  readonly orphanMs: number;
  /** 32 bytes that the auth state is encrypted with. */
  readonly authKey: Buffer;
  readonly whatsappUrl: string;
  /** Of WhatsApp's web client, if the built-in one is outdated (405). */
  readonly whatsappVersion: readonly [number, number, number] | null;
  readonly volume: string;
  readonly timings: Timings;
}

export const WHATSAPP_URL = "wss://web.whatsapp.com/ws/chat";
const LOOPBACK = new Set(["127.0.0.1", "[::1]", "localhost"]);
const TRUE = ["true", "1", "yes"];
const FALSE = ["false", "0", "no"];

type Env = Readonly<Record<string, string | undefined>>;

export function readEnvironment(env: Env): Environment {
  const faults = ["SESSION_ID", "PHONE", "WEBHOOK_URL", "WEBHOOK_SECRET", "AUTH_KEY"]
    .filter((name) => !env[name])
    .map((name) => `${name}: is not set`);
  const check = (name: string, pattern: RegExp, says: string, byDefault = ""): string => {
    const value = env[name] || byDefault;
    if (value && !pattern.test(value)) faults.push(`${name}: ${says}`);
    return value;
  };
  const attempt = <T>(name: string, read: () => T, instead: T): T => {
    try {
      return read();
    } catch (error) {
      faults.push(`${name}: ${(error as Error).message}`);
      return instead;
    }
  };

  const sessionId = check("SESSION_ID", /^[A-Za-z0-9][A-Za-z0-9._-]*$/, "must be letters, digits, '-', '_' and '.'");
  const webhookUrl = check("WEBHOOK_URL", /^https?:\/\//, "must be an http:// or https:// address").replace(/\/+$/, "");
  const keepAlive = check("ENABLE_KEEP_ALIVE", /^(true|1|yes|false|0|no)$/i, "must be true or false", "true");
  const instanceId = check("INSTANCE_ID", /^[A-Za-z0-9_-]{1,128}$/, "must be at most 128 letters, digits, '-' and '_'");
  const phone = check("PHONE", /^\+?\d{5,15}$/, "must be the digits of a number").replace("+", "");
  const generation = check("GENERATION", /^\d{1,15}$/, "must be a number", "0");
  const orphanMs = check("ORPHAN_MS", /^\d{1,15}$/, "must be a number", "0");
  const version = check("WHATSAPP_VERSION", /^\d+\.\d+\.\d+$/, "must be three numbers with dots");
  const whatsappUrl = attempt("WHATSAPP_URL", () => checkedUrl(env["WHATSAPP_URL"] || WHATSAPP_URL), WHATSAPP_URL);
  const environment: Environment = {
    sessionId,
    phone,
    webhookUrl,
    webhookSecret: env["WEBHOOK_SECRET"] ?? "",
    proxy: attempt("PROXY_URL", () => (env["PROXY_URL"] ? readProxy(env["PROXY_URL"]) : null), null),
    keepAlive: !FALSE.includes(keepAlive.toLowerCase()) && TRUE.includes(keepAlive.toLowerCase()),
    logLevel: env["LOG_LEVEL"] || "info",
    instanceId: instanceId || randomUUID().replaceAll("-", ""),
    generation: Number(generation),
    orphanMs: Number(orphanMs),
    authKey: env["AUTH_KEY"]
      ? attempt("AUTH_KEY", () => readKey(env["AUTH_KEY"] ?? ""), Buffer.alloc(0))
      : Buffer.alloc(0),
    whatsappUrl,
    whatsappVersion: version ? (version.split(".").map(Number) as [number, number, number]) : null,
    volume: join(env["PACELINE_DATA"] || "./data", "sessions", sessionId),
    timings: attempt(
      "WORKER_TIMINGS",
      () => readTimings(env["WORKER_TIMINGS"], isLoopback(whatsappUrl)),
      readTimings(),
    ),
  };
  if (faults.length > 0) throw new ConfigError(faults);
  return environment;
}

export function isLoopback(url: string): boolean {
  return LOOPBACK.has(new URL(url).hostname);
}

/** Without TLS nobody proves to be WhatsApp, so only a test server on this machine may be spoken to in clear. */
function checkedUrl(text: string): string {
  const url = new URL(text);
  if (url.protocol !== "wss:" && !(url.protocol === "ws:" && isLoopback(text))) {
    throw new Error("must be wss://, or ws:// on loopback");
  }
  return text;
}

function readKey(text: string): Buffer {
  const key = /^[0-9a-fA-F]{64}$/.test(text) ? Buffer.from(text, "hex") : Buffer.from(text, "base64");
  if (key.length !== 32) throw new Error("must be 32 bytes, as 64 hex digits or as base64");
  return key;
}
