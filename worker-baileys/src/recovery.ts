/**
 * Answering for the past: what an earlier life of this worker claimed and never settled. Runs after every `hello`,
 * before anything new is claimed.
 */
import type { Clock } from "./clock.js";
import { answerForPending, outcomeOf, SENT, unproven } from "./decisions.js";
import type { Driver } from "./driver/port.js";
import { whatsappId } from "./ids.js";
import { lookForReceipts } from "./lookout.js";
import type { PendingTask } from "./protocol.js";
import type { Reporter, Subject } from "./reporter.js";
import type { Shift } from "./shift.js";

/** Gives every pending task its answer, the certain ones at once, the open ones after looking for receipts. */
export class Recovery {
  constructor(
    private readonly shift: Shift,
    private readonly driver: Driver,
    private readonly reporter: Reporter,
    private readonly clock: Clock,
  ) {}

  async answer(pending: readonly PendingTask[]): Promise<void> {
    this.#ownUp(pending);
    const open: PendingTask[] = [];
    for (const task of pending) {
      if (!(await this.#answerIfCertain(task))) open.push(task);
    }
    if (open.length > 0) await this.#answerOpen(open);
    for (const entry of this.shift.journal.unreported()) await this.reporter.reportLeftover(entry);
  }

  /**
   * A journal that is new while tasks are pending was lost with its volume: that it holds no intent proves nothing.
   * Those tasks are entered as begun, durably, before the journal counts as one that knows.
   */
  #ownUp(pending: readonly PendingTask[]): void {
    const { journal } = this.shift;
    if (journal.greeted) return;
    const at = this.clock.nowMs();
    for (const { taskId, to } of pending) {
      journal.intend({ taskId, whatsappId: whatsappId(taskId), to, attempt: 0, at });
    }
    journal.greet(at);
  }

  async #answerIfCertain(task: PendingTask): Promise<boolean> {
    const verdict = answerForPending(this.shift.journal.entry(task.taskId));
    if (verdict.kind === "look_first") return false;
    await this.reporter.report(subjectOf(task), handleOf(task), verdict);
    return true;
  }

  async #answerOpen(tasks: readonly PendingTask[]): Promise<void> {
    const { shift, driver, clock } = this;
    const ids = tasks.map((task) => whatsappId(task.taskId));
    // Only the claim's own epoch could extend its lease, so there is none to keep.
    await lookForReceipts(ids, { shift, driver, clock, keepLease: () => Promise.resolve() });
    for (const task of tasks) {
      const entry = shift.journal.entry(task.taskId);
      const verdict = shift.proven(whatsappId(task.taskId)) ? SENT : unproven(entry);
      shift.journal.conclude({ taskId: task.taskId, at: clock.nowMs(), ...outcomeOf(verdict) });
      await this.reporter.report(subjectOf(task), handleOf(task), verdict);
    }
  }
}

function subjectOf(task: PendingTask): Subject {
  return { taskId: task.taskId, whatsappId: whatsappId(task.taskId), to: task.to };
}

function handleOf(task: PendingTask): { taskId: string; token: string } {
  return { taskId: task.taskId, token: task.token };
}
