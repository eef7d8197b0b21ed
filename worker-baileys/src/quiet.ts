/**
 * Takes the console away from everybody, before any library is loaded: libsignal prints whole sessions with their
 * private keys on it. Must stay the first import of `main.ts`. What this program has to say goes through `log.ts`,
 * which writes to the descriptor itself.
 */

const NOTHING = (): void => undefined;

for (const name of [
  "log",
  "info",
  "warn",
  "error",
  "debug",
  "trace",
  "dir",
  "table",
  "group",
  "groupCollapsed",
] as const) {
  console[name] = NOTHING;
}
process.removeAllListeners("warning");

export {};
