/**
 * The worker's core: say hello, answer for the past, then claim and send, one task at a time. Nothing new is claimed
 * while a result is unreported.
 *
 *     main ──► core ──► sender ──► driver/…           one task: ask, wait, type, write, wait for the server's ack
 *               │  └──► recovery                      what an earlier life of this worker left unanswered
 *               ├──► pump ──► poster ──► protocol     driver events → our own knowledge → the disk → webhooks
 *               └──► reporter ──► protocol            verdicts, repeated until the orchestrator answers
 *     journal ◄── all of them                         what was intended, what came of it, what was told
 */
import { type Clock, Wake } from "./clock.js";
import { backoffMs, type Verdict } from "./decisions.js";
import type { Driver } from "./driver/port.js";
import { failpoint } from "./failpoint.js";
import { whatsappId } from "./ids.js";
import type { Journal } from "./journal.js";
import { log } from "./log.js";
import { Orders } from "./orders.js";
import { type EventStore, Poster } from "./poster.js";
import {
  type ClaimAnswer,
  type ClaimedTask,
  type HelloAnswer,
  NotWanted,
  RequestRefused,
  StaleEpoch,
  Unavailable,
  type WorkerProtocol,
} from "./protocol.js";
import { EventPump } from "./pump.js";
import { Recovery } from "./recovery.js";
import { Reporter } from "./reporter.js";
import type { Rng } from "./rng.js";
import { Sender } from "./sender.js";
import type { ServerTime } from "./servertime.js";
import { Interrupted, Lease, Shift } from "./shift.js";
import type { Timings } from "./timings.js";

export const EXIT_DONE = 0;
export const EXIT_REFUSED = 1;
export const EXIT_REPLACED = 3;

const WAIT_CONNECTED_MS = 1_000;
// How often a linked worker without a connection asks whether it is to do something. One that is not linked asks every
// second: somebody waits for its pairing code.
const ORDERS_EVERY_MS = 15_000;
// An orchestrator that answers a long poll at once with nothing must not be asked in a tight loop.
const MIN_POLL_MS = 250;

/** Why `run` ended; `code` is the exit status of the process. */
export interface Exit {
  readonly code: number;
  readonly reason: string;
}

export interface CoreParts {
  readonly sessionId: string;
  readonly instanceId: string;
  /** Made anew at each start of the process: an instance may be started again after a crash. */
  readonly lifeId: string;
  readonly protocol: WorkerProtocol;
  readonly driver: Driver;
  readonly journal: Journal;
  readonly events: EventStore;
  readonly clock: Clock;
  readonly time: ServerTime;
  readonly rng: Rng;
  readonly timings: Timings;
  readonly keepAlive: boolean;
}

/** One session's worker, apart from processes, sockets and files. */
export class WorkerCore {
  readonly #shift: Shift;
  readonly #reporter: Reporter;
  readonly #sender: Sender;
  readonly #recovery: Recovery;
  readonly #poster: Poster;
  readonly #orders: Orders;
  readonly #pump: EventPump;
  /** When we last asked the orchestrator for something to do. */
  #askedAtMs: number;
  /** True while the worker holds nothing and only waits for a task: it may be cut off without harm. */
  polling = false;

  constructor(private readonly parts: CoreParts) {
    const { protocol, driver, clock, rng, timings } = parts;
    this.#askedAtMs = clock.nowMs();
    const shift = (this.#shift = new Shift(parts.sessionId, parts.instanceId, parts.journal, parts.time));
    const pingEveryMs = parts.keepAlive ? timings.pingMs : 0;
    const pauses = {
      firstMs: timings.backoffFirstMs,
      longestMs: timings.backoffLongestMs,
      longMs: timings.longPauseMs,
    };
    const quietMs = (): number | null => driver.quietMs();
    this.#reporter = new Reporter(shift, protocol, clock, rng);
    this.#sender = new Sender({ shift, protocol, driver, clock, rng, ackMs: timings.ackMs });
    this.#recovery = new Recovery(shift, driver, this.#reporter, clock);
    this.#poster = new Poster({
      shift,
      protocol,
      store: parts.events,
      clock,
      rng,
      wake: new Wake(),
      pingEveryMs,
      quietMs,
    });
    this.#orders = new Orders(shift, driver, this.#poster);
    this.#pump = new EventPump({ shift, driver, poster: this.#poster, clock, rng, pauses });
  }

  /** Work until asked to stop or told that another instance does. */
  async run(): Promise<Exit> {
    try {
      while (!this.#shift.stopping) {
        const welcome = await this.#greet();
        await this.#recovery.answer(welcome.pending);
        await this.#orders.obey(welcome.commands);
        await this.#claimWhileSure();
      }
    } catch (error) {
      if (error instanceof Interrupted) {
        return { code: EXIT_DONE, reason: "stopped; the open task is answered for at the next start" };
      }
      if (error instanceof StaleEpoch) return { code: EXIT_REPLACED, reason: "STALE_EPOCH" };
      if (error instanceof NotWanted) return { code: EXIT_REPLACED, reason: "NOT_WANTED" };
      if (error instanceof RequestRefused) return { code: EXIT_REFUSED, reason: error.message };
      throw error;
    }
    return { code: EXIT_DONE, reason: "stopped" };
  }

  /** Webhooks and keep-alives; never returns. */
  postEvents(): Promise<never> {
    return this.#poster.run();
  }

  /** Let `run` end soon: an unsent task is given back, a written one is waited for. */
  requestStop(): void {
    this.#shift.stopping = true;
  }

  /** Close the connection and say so, best effort. After `run` has ended. */
  async farewell(isTold: boolean): Promise<void> {
    this.#pump.rest();
    // A message that is being decrypted is heard once: who is deaf to it while its key is used up has lost it.
    await this.parts.driver.close();
    this.#pump.stop();
    if (isTold) await this.#poster.say("DISCONNECTED", { code: 0, reason: "stopped" });
  }

  /**
   * Hello until it is answered, then open the connection: an instance that is not wanted must not connect, or it would
   * throw out the one that is.
   */
  async #greet(): Promise<HelloAnswer> {
    const { clock, rng, protocol, driver, journal, instanceId, lifeId } = this.parts;
    for (let failures = 0; ; failures += 1) {
      const askedMs = clock.nowMs();
      try {
        const { journalId } = journal;
        const terms = await protocol.hello({ instanceId, lifeId, journalId, driver: driver.name });
        this.#shift.time.observe(terms.nowMs, { askedMs, answeredMs: clock.nowMs() });
        const isFirst = this.#shift.terms === null;
        this.#shift.terms = terms;
        if (isFirst) this.#pump.start();
        return terms;
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error;
        log.warning("hello not answered", { reason: error.message });
      }
      if (this.#shift.stopping) throw new Interrupted();
      await clock.sleepMs(backoffMs(failures, rng));
    }
  }

  /**
   * Claim and send until asked to stop, or until a claim got no answer: it may have been carried out, and then the next
   * `hello` says so.
   */
  async #claimWhileSure(): Promise<void> {
    let inVain = 0;
    while (!this.#shift.stopping) {
      if (!(await this.parts.driver.waitConnected(WAIT_CONNECTED_MS))) {
        await this.#askForOrders();
        continue;
      }
      this.#askedAtMs = this.parts.clock.nowMs();
      let answer: ClaimAnswer;
      try {
        answer = await this.#claim();
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error;
        log.warning("claim not answered", { reason: error.message });
        inVain = await this.#pauseAfter(inVain);
        if (error.maybeDone) return;
        continue;
      }
      // By the orchestrator's books we hold something although we ask for work; we answer as after a hello.
      if (answer.pending?.length) await this.#recovery.answer(answer.pending);
      await this.#orders.obey(answer.commands);
      if (!answer.task || !answer.raw) continue;
      const verdict = await this.#carryOut(answer.task, answer.raw);
      // Given back, and perhaps offered again at once: the two of us must not go round in circles.
      inVain = verdict.kind === "not_sent" && !verdict.error ? await this.#pauseAfter(inVain) : 0;
    }
  }

  /**
   * Who is not connected claims nothing, but must hear that it is to pair, or to go; asking so tells besides that it is
   * not connected, as a claim tells that it is. Who was told too early asks on at once: its connection may never come.
   */
  async #askForOrders(): Promise<void> {
    const { driver, clock } = this.parts;
    const isUrgent = !driver.linked || this.#orders.isWaiting;
    if (!isUrgent && clock.nowMs() - this.#askedAtMs < ORDERS_EVERY_MS) return;
    this.#askedAtMs = clock.nowMs();
    try {
      const answer = await this.parts.protocol.claim(this.#shift.agreed.epoch, true);
      await this.#orders.obey(answer.commands);
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      log.warning("asked for orders, not answered", { reason: error.message });
    }
  }

  async #pauseAfter(inVain: number): Promise<number> {
    if (!this.#shift.stopping) await this.parts.clock.sleepMs(backoffMs(inVain, this.parts.rng));
    return inVain + 1;
  }

  async #claim(): Promise<ClaimAnswer> {
    const { clock, protocol } = this.parts;
    const askedMs = clock.nowMs();
    this.polling = true;
    try {
      const answer = await protocol.claim(this.#shift.agreed.epoch);
      const answeredMs = clock.nowMs();
      this.#shift.time.observe(answer.nowMs, { askedMs, answeredMs, waitedMs: answer.waitedMs });
      if (!answer.task && answeredMs - askedMs < MIN_POLL_MS) await clock.sleepMs(MIN_POLL_MS);
      return answer;
    } finally {
      this.polling = false;
    }
  }

  async #carryOut(task: ClaimedTask, raw: string): Promise<Verdict> {
    failpoint("claimed-not-sent");
    const messageId = whatsappId(task.taskId);
    this.#shift.takeUp(messageId);
    const lease = new Lease({ raw }, task.leaseUntilMs);
    const verdict = await this.#sender.send(task, lease);
    await this.#reporter.report({ taskId: task.taskId, whatsappId: messageId, to: task.to }, lease.handle, verdict);
    this.#shift.putDown();
    log.info("a task was carried out", { taskId: task.taskId, request_id: task.requestId, verdict: verdict.kind });
    if (this.#shift.stale) throw new StaleEpoch("another instance took over while this one was sending");
    return verdict;
  }
}
