/**
 * Memory of a process of which a host runs hundreds. V8 keeps the garbage of linking and of the first sends for hours,
 * because nothing more happens: so an idle worker collects it itself now and then, and says how much it takes.
 */
import v8 from "node:v8";
import vm from "node:vm";
import { log } from "./log.js";

const LOOK_EVERY_MS = 5_000;
const SAY_EVERY_MS = 600_000;
const FIRST_SAID_MS = 20_000;
// Below this there is nothing to win: the libraries alone take some 100.
const TIDY_ABOVE_MB = 120;
// A collection takes some 30 ms; one that won nothing is not repeated soon.
const TIDY_AGAIN_MS = 60_000;
const MEGABYTE = 1_048_576;

const inMb = (bytes: number): number => Math.round(bytes / MEGABYTE);

export function watchMemory(): void {
  v8.setFlagsFromString("--expose-gc");
  const collect = vm.runInNewContext("gc") as () => void;
  let notBeforeMs = 0;
  const tidy = (): void => {
    if (inMb(process.memoryUsage.rss()) <= TIDY_ABOVE_MB || performance.now() < notBeforeMs) return;
    notBeforeMs = performance.now() + TIDY_AGAIN_MS;
    collect();
  };
  const say = (): void => {
    const { rss, heapUsed, external } = process.memoryUsage();
    log.info("memory", { rssMb: inMb(rss), heapMb: inMb(heapUsed), externalMb: inMb(external) });
  };
  setInterval(tidy, LOOK_EVERY_MS).unref();
  setInterval(say, SAY_EVERY_MS).unref();
  setTimeout(say, FIRST_SAID_MS).unref();
}
