/**
 * A program that is killed: writes logins to an auth file without end, one transaction each, and says every number that
 * is on the disk. Run by `kill-auth.ts`.
 */
import { writeSync } from "node:fs";
import { AuthFile } from "../../src/driver/auth-file.js";

const [path = "", key = ""] = process.argv.slice(2);
const file = AuthFile.open(path, Buffer.from(key, "hex"), "s1");
const kept = file.get("creds", "creds");
let number = kept ? (JSON.parse(kept.toString()) as { number: number }).number : 0;

for (;;) {
  number += 1;
  const value = Buffer.from(JSON.stringify({ number, filler: "x".repeat(500 + (number % 7) * 300) }));
  const keys = Array.from({ length: 40 }, (_, index) => ({ kind: "pre-key", id: String(index), value }));
  file.apply([{ kind: "creds", id: "creds", value }, ...keys]);
  writeSync(1, `${number}\n`);
}
