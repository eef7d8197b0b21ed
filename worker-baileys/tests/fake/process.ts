/** The fake as a program of its own, for tests that kill it or measure it. */

import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { createInterface } from "node:readline";

const PROGRAM = fileURLToPath(new URL("../../fake-whatsapp/main.js", import.meta.url));

export interface FakeProcess {
  child: ChildProcess;
  url: string;
  secureUrl: string;
  adminUrl: string;
  caFile: string;
  rootFile: string;
}

/** Resolves when it listens; rejects if it ends instead. */
export async function spawnFake(...options: string[]): Promise<FakeProcess> {
  const child = spawn(process.execPath, [PROGRAM, ...options], { stdio: ["ignore", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout! });
  const ended = once(child, "exit").then(([code]) => Promise.reject(new Error(`the fake ended with ${code}`)));
  ended.catch(() => undefined);
  const [line] = (await Promise.race([once(lines, "line"), ended])) as [string];
  return { child, ...(JSON.parse(line) as Omit<FakeProcess, "child">) };
}

export async function killFake({ child }: FakeProcess, signal: "SIGKILL" | "SIGTERM"): Promise<number | null> {
  const exited = once(child, "exit");
  child.kill(signal);
  const [code] = (await exited) as [number | null];
  return code;
}
