/**
 * A worker's hold on its volume: one worker at a time writes there, whatever started the second.
 *
 * The lock is the kernel's, so it goes with the process however that ends, and it is the same `flock` on the same
 * `worker.lock` as the Python worker's. Node has no call for it: `flock(1)` takes the lock on the descriptor it
 * inherits, and ends; the lock belongs to the open file, which we keep. The file says who holds it, for the runner that
 * looks for workers it does not know (`orchestrator.runners.process`).
 */
import { spawnSync } from "node:child_process";
import { closeSync, constants, ftruncateSync, mkdirSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";

/** Another worker has it. */
export class VolumeTaken extends Error {}

const FLOCK_TIMEOUT_MS = 5_000;
// Position in /proc/<pid>/stat behind the name, which may itself hold spaces and brackets.
const STARTED = 19;

export class Volume {
  readonly #descriptor: number;

  constructor(folder: string, about: Readonly<Record<string, string>>) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const path = join(folder, "worker.lock");
    this.#descriptor = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600);
    const taken = spawnSync("flock", ["-n", "-x", "3"], {
      stdio: ["ignore", "ignore", "ignore", this.#descriptor],
      timeout: FLOCK_TIMEOUT_MS,
    });
    if (taken.error) throw new Error(`flock(1) cannot be run: ${taken.error.message}`);
    if (taken.status !== 0) {
      const holder = readFileSync(path, "utf8").split("\n")[0] || "unknown";
      closeSync(this.#descriptor);
      throw new VolumeTaken(`held by process ${holder}`);
    }
    ftruncateSync(this.#descriptor, 0);
    writeSync(this.#descriptor, `${process.pid}\n${JSON.stringify({ ticks: startedTicks(), ...about })}\n`, 0);
  }

  close(): void {
    closeSync(this.#descriptor);
  }
}

/** When this process was started, in the kernel's ticks since boot: with it a pid names one process for ever. */
function startedTicks(): string {
  try {
    const stat = readFileSync("/proc/self/stat", "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[STARTED] ?? "0";
  } catch {
    return "0";
  }
}
