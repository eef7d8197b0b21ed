/**
 * Named places where a test may kill the process, to prove that nothing is lost or repeated by a crash there.
 *
 * Armed by a file, as in `paceline.kits.failpoint`: with PACELINE_FAILPOINTS=<dir>, the first process that passes
 * `failpoint(name)` while <dir>/<name> exists takes the file away and dies by SIGKILL, as in a power cut: no handler
 * runs, nothing is flushed. Without the variable a failpoint costs one look-up.
 */
import { unlinkSync } from "node:fs";
import { join } from "node:path";

const directory = process.env["PACELINE_FAILPOINTS"];

export function failpoint(name: string): void {
  if (!directory) return;
  try {
    // Removing the file decides the race: of two processes that pass at once, one dies.
    unlinkSync(join(directory, name));
  } catch {
    return;
  }
  process.kill(process.pid, "SIGKILL");
  // The signal may take a moment to arrive; nothing may happen in it.
  for (;;);
}
