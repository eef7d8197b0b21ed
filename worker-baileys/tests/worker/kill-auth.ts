/**
 * Kills a writer of an auth file in the middle of its writes, again and again, and looks at the file after each: the
 * login that was last on the disk is there, whole. `node dist/tests/worker/kill-auth.js 1000` does it a thousand times.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { AuthFile } from "../../src/driver/auth-file.js";

const KEY = "5a".repeat(32);
const WRITER = fileURLToPath(new URL("./auth-writer.js", import.meta.url));
// Every so many kills a new file is begun, so that its making is interrupted as well.
const FILE_LIVES = 25;

export interface Killed {
  readonly kills: number;
  readonly logins: number;
  readonly files: number;
}

/** Until `enough` says so, with the number of kills so far. Throws at the first login that is lost or half. */
export async function killWriters(enough: (kills: number) => boolean): Promise<Killed> {
  let [kills, logins, files] = [0, 0, 0];
  while (!enough(kills)) {
    const folder = mkdtempSync(join(tmpdir(), "kill-auth-"));
    const path = join(folder, "auth.sqlite");
    files += 1;
    let last = 0;
    for (let life = 0; life < FILE_LIVES && !enough(kills); life += 1) {
      last = Math.max(last, await writeUntilKilled(path, life === 0));
      kills += 1;
      last = look(path, last);
    }
    logins += last;
    rmSync(folder, { recursive: true });
  }
  return { kills, logins, files };
}

/** The last number the writer said. */
async function writeUntilKilled(path: string, isFirst: boolean): Promise<number> {
  const writer = spawn(process.execPath, [WRITER, path, KEY], { stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  const kill = (): boolean => writer.kill("SIGKILL");
  // A first life is sometimes cut before it has said anything: while the file is being made.
  if (isFirst && Math.random() < 0.5) setTimeout(kill, 40 + Math.random() * 120);
  writer.stdout.on("data", (chunk: Buffer) => {
    if (said === "") setTimeout(kill, Math.random() * 60);
    said += chunk.toString();
  });
  await new Promise((resolve) => writer.once("close", resolve));
  return Math.max(0, ...said.split("\n").slice(0, -1).map(Number));
}

/** What the file holds is at least what was said to be on the disk, and of one piece. */
function look(path: string, last: number): number {
  const file = AuthFile.open(path, Buffer.from(KEY, "hex"), "s1");
  try {
    const numberOf = (kind: string, id: string): number => {
      const value = file.get(kind, id);
      return value ? (JSON.parse(value.toString()) as { number: number }).number : 0;
    };
    const login = numberOf("creds", "creds");
    assert.ok(login >= last, `login ${last} was on the disk, ${login} is there`);
    assert.ok(login <= last + 1, `login ${login} was never begun`);
    for (let index = 0; index < 40; index += 1)
      assert.equal(numberOf("pre-key", String(index)), login, "a half transaction");
    return login;
  } finally {
    file.close();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const wanted = Number(process.argv[2] ?? 1_000);
  const startedMs = performance.now();
  const { kills, logins, files } = await killWriters((done) => done >= wanted);
  const seconds = Math.round((performance.now() - startedMs) / 1_000);
  process.stdout.write(`${kills} kills in ${seconds} s, ${files} files, ${logins} logins written, none lost\n`);
}
