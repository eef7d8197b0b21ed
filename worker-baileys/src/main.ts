/**
 * The worker process: wires the core to HTTP, files, signals and Baileys, and ends with the status its runner acts on.
 *
 * 0 stopped as asked · 1 something is wrong, start me again later · 2 bad environment · 3 another instance is wanted ·
 * 4 another worker has the volume · 5 no orchestrator answered for ORPHAN_MS.
 */
import "./quiet.js"; // First: what comes after it prints keys.
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { SteadyClock } from "./clock.js";
import { EXIT_DONE, EXIT_REFUSED, EXIT_REPLACED, type Exit, WorkerCore } from "./core.js";
import { AuthState } from "./driver/auth-state.js";
import { BaileysDriver } from "./driver/baileys.js";
import { refuseDirectConnections, routesThrough } from "./driver/routes.js";
import { ConfigError, type Environment, readEnvironment } from "./environment.js";
import { EventFile } from "./event-file.js";
import { Journal } from "./journal.js";
import { configureLog, log } from "./log.js";
import { watchMemory } from "./memory.js";
import { HttpProtocol } from "./protocol-http.js";
import { registerSecret } from "./redaction.js";
import { systemRng } from "./rng.js";
import { WrongKey } from "./seal.js";
import { ServerTime } from "./servertime.js";
import { Volume, VolumeTaken } from "./volume.js";

const EXIT_BAD_ENVIRONMENT = 2;
const EXIT_TAKEN = 4;
const EXIT_ORPHANED = 5;

// Enough for a server's ack, and half of what docker grants before it kills.
const STOP_GRACE_MS = 5_000;
const FAREWELL_MS = 3_000;
const ORPHAN_LOOK_MS = 500;

/** What ended first, and with which status. */
type End = { readonly code: number; readonly reason: string };

async function main(): Promise<number> {
  let env: Environment;
  try {
    env = readEnvironment(process.env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`worker: ${error.message}\n`);
    return EXIT_BAD_ENVIRONMENT;
  }
  configureLog(env.logLevel, { sessionId: env.sessionId });
  for (const secret of [env.webhookSecret, env.proxy?.password, process.env["AUTH_KEY"]]) registerSecret(secret);
  // Nothing that this process starts or prints shall find it there.
  delete process.env["AUTH_KEY"];
  try {
    const volume = new Volume(env.volume, { instance: env.instanceId, generation: String(env.generation) });
    try {
      return await hold(env);
    } finally {
      volume.close();
    }
  } catch (error) {
    if (error instanceof VolumeTaken) {
      log.error("another worker has the volume", { volume: env.volume, reason: error.message });
      return EXIT_TAKEN;
    }
    if (error instanceof WrongKey) {
      log.error("the auth state is kept and not used", { reason: error.message });
      return EXIT_BAD_ENVIRONMENT;
    }
    throw error;
  }
}

async function hold(env: Environment): Promise<number> {
  if (env.proxy) refuseDirectConnections([env.proxy, placeOf(env.webhookUrl)]);
  const clock = new SteadyClock();
  const journal = Journal.open(env.volume, () => clock.nowMs());
  const protocol = new HttpProtocol(env.webhookUrl, env.sessionId, env.webhookSecret);
  const auth = new AuthState(join(env.volume, "auth.sqlite"), env.authKey, env.sessionId);
  const events = EventFile.open(join(env.volume, "events.sqlite"), env.authKey, env.sessionId, clock.nowMs());
  const time = new ServerTime();
  const driver = new BaileysDriver({
    auth,
    clock,
    serverMs: () => time.earliest(clock.nowMs()),
    phone: env.phone,
    whatsappUrl: env.whatsappUrl,
    whatsappVersion: env.whatsappVersion,
    timings: env.timings,
    routes: await routesThrough(env.proxy, env.whatsappUrl, env.timings.connectMs),
    lastError: (whatsappId) => journal.find(whatsappId)?.error ?? null,
  });
  const { sessionId, instanceId, timings, keepAlive } = env;
  const core = new WorkerCore({
    sessionId,
    instanceId,
    lifeId: randomUUID().replaceAll("-", ""),
    protocol,
    driver,
    journal,
    events,
    clock,
    time,
    rng: systemRng,
    timings,
    keepAlive,
  });
  log.info("the worker begins", { linked: driver.linked, proxied: env.proxy !== null });
  watchMemory();
  try {
    return await workUntilSignalled(core, protocol, env.orphanMs);
  } finally {
    protocol.close();
    journal.close();
    events.close();
  }
}

async function workUntilSignalled(core: WorkerCore, protocol: HttpProtocol, orphanMs: number): Promise<number> {
  const run = core.run().then(
    (exit: Exit): End => exit,
    (error: unknown): End => failed("run", error),
  );
  const post = core.postEvents().catch((error: unknown): End => failed("post", error));
  const stop = untilSignalled().then((): null => null);
  const alone = untilOrphaned(protocol, orphanMs).then((): End => ({
    code: EXIT_ORPHANED,
    reason: "no orchestrator answers",
  }));
  let end = await Promise.race([run, post, stop, alone]);
  if (end === null) {
    core.requestStop();
    const stopped: End = { code: EXIT_DONE, reason: "stopped" };
    // Who only waits for a task has nothing to finish; who holds one gets time to finish or give it back.
    end = core.polling ? stopped : await Promise.race([run, after(STOP_GRACE_MS, stopped)]);
  }
  log.info("the worker ends", { code: end.code, reason: end.reason });
  // A replaced worker says nothing: its word would be taken for its successor's. An orphan has nobody to tell.
  const isTold = end.code !== EXIT_REPLACED && end.code !== EXIT_ORPHANED;
  await Promise.race([core.farewell(isTold), after(FAREWELL_MS, undefined)]);
  return end.code;
}

function failed(part: string, error: unknown): End {
  log.error("the worker failed", {
    part,
    reason: error instanceof Error ? (error.stack ?? error.message) : String(error),
  });
  return { code: EXIT_REFUSED, reason: `${part} failed` };
}

function after<T>(ms: number, value: T): Promise<T> {
  return new Promise((resolve) => setTimeout(() => resolve(value), ms));
}

function untilSignalled(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => resolve());
  });
}

/** Resolves when nobody has answered for that long; never with 0. */
function untilOrphaned(protocol: HttpProtocol, orphanMs: number): Promise<void> {
  return new Promise((resolve) => {
    if (orphanMs === 0) return;
    const timer = setInterval(() => {
      if (protocol.unansweredMs() < orphanMs) return;
      clearInterval(timer);
      resolve();
    }, ORPHAN_LOOK_MS);
  });
}

function placeOf(url: string): { host: string; port: number } {
  const { hostname, port, protocol } = new URL(url);
  return { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port) || (protocol === "https:" ? 443 : 80) };
}

// The library lets go of promises when a connection ends; a worker must not end for that.
process.on("unhandledRejection", (reason) => log.warning("a promise was left alone", { reason: String(reason) }));
process.on("uncaughtException", (error) => {
  log.error("the worker failed", { part: "process", reason: error.stack ?? error.message });
  process.exit(EXIT_REFUSED);
});

// Timers of the library may live for half a minute; nothing of them is needed.
process.exit(await main());
