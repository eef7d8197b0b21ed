/**
 * The fake WhatsApp as a program: `node dist/fake-whatsapp/main.js --port P --admin-port Q --ledger FILE`.
 *
 * Prints one JSON line with its addresses when it is ready, and stops on SIGTERM or SIGINT.
 */

import "./src/quiet.js";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { FakeWhatsApp } from "./src/server.js";

const USAGE = `usage: main.js [--port P] [--admin-port Q] [--media-port M] --ledger FILE [--state FILE] [--keys DIR] [--seed N]

  --port, --admin-port, --media-port   0 or left out: any free port
  --ledger   JSON lines of every accepted message
  --state    keeps linked devices and Signal sessions over a restart; without it they are in memory only
  --keys     the server's Noise and TLS keys (default: fake-whatsapp-keys beside the ledger)
`;

function fail(message: string): never {
  process.stderr.write(`${message}\n\n${USAGE}`);
  process.exit(2);
}

function readArguments(): Record<string, string | undefined> {
  const names = ["port", "admin-port", "media-port", "ledger", "state", "keys", "seed"];
  const options = Object.fromEntries(names.map((name) => [name, { type: "string" as const }]));
  try {
    return parseArgs({ options }).values as Record<string, string | undefined>;
  } catch (error) {
    return fail((error as Error).message);
  }
}

function number(name: string, value: string | undefined, most: number): number | undefined {
  if (value === undefined) return undefined;
  const parsed = Number(value);
  if (!Number.isSafeInteger(parsed) || parsed < 0 || parsed > most)
    fail(`--${name}: ${value} is not from 0 to ${most}`);
  return parsed;
}

async function main(): Promise<void> {
  const given = readArguments();
  if (given.ledger === undefined) fail("--ledger is missing");
  const ledgerFile = resolve(given.ledger);
  const fake = await FakeWhatsApp.start({
    port: number("port", given.port, 65535) ?? 0,
    adminPort: number("admin-port", given["admin-port"], 65535) ?? 0,
    mediaPort: number("media-port", given["media-port"], 65535) ?? 0,
    seed: number("seed", given.seed, 0xffffffff) ?? 1,
    ledgerFile,
    keysDirectory: resolve(given.keys ?? join(dirname(ledgerFile), "fake-whatsapp-keys")),
    ...(given.state !== undefined && { stateFile: resolve(given.state) }),
  });
  const { url, secureUrl, adminUrl, caFile, rootFile } = fake;
  process.stdout.write(`${JSON.stringify({ ready: true, url, secureUrl, adminUrl, caFile, rootFile })}\n`);
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.once(signal, () => void fake.close().then(() => process.exit(0)));
  }
}

main().catch((error: Error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
