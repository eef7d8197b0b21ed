/**
 * What an operator has a worker do beside sending: pair, log out. (`scan` is for simulated drivers.)
 *
 * Orders come with `hello` and with claims, until their end is told or their time is up, so whoever has done one
 * remembers it, and what cannot be done yet is done when it comes again. The end of each is told as COMMAND_DONE; a
 * pairing code goes with it and is written nowhere else.
 */
import { CannotLink, type Driver, NotYet } from "./driver/port.js";
import { log } from "./log.js";
import type { Poster } from "./poster.js";
import type { Command } from "./protocol.js";
import type { Shift } from "./shift.js";

// More than one worker can be told within the time such an order is valid.
const REMEMBERED = 32;

export class Orders {
  readonly #done: string[] = [];
  /** Something we were told last cannot be done yet. */
  isWaiting = false;

  constructor(
    private readonly shift: Shift,
    private readonly driver: Driver,
    private readonly poster: Poster,
  ) {}

  async obey(commands: readonly Command[] = []): Promise<void> {
    this.isWaiting = false;
    for (const command of commands) {
      if (this.#done.includes(command.id)) continue;
      let answer: Record<string, unknown>;
      try {
        answer = { ok: true, ...(await this.#carryOut(command.kind)) };
      } catch (error) {
        if (!(error instanceof CannotLink)) throw error;
        // After the last connection nothing comes that could be waited for.
        if (error instanceof NotYet && !this.shift.endedForGood) {
          this.isWaiting = true;
          continue;
        }
        answer = { ok: false, error: error.message };
      }
      this.#done.push(command.id);
      if (this.#done.length > REMEMBERED) this.#done.shift();
      log.info("an order was carried out", { kind: command.kind, ok: answer["ok"], reason: answer["error"] });
      this.poster.tell("COMMAND_DONE", { commandId: command.id, kind: command.kind, ...answer });
    }
  }

  async #carryOut(kind: string): Promise<Record<string, unknown>> {
    switch (kind) {
      case "pair": {
        const code = await this.driver.pair();
        return { pairingCode: code.text, expiresInMs: code.validMs };
      }
      case "logout":
        await this.#logOut();
        return {};
      case "scan":
        throw new CannotLink("a real number is linked by its phone alone");
      default:
        throw new CannotLink("this worker does not know that order");
    }
  }

  async #logOut(): Promise<void> {
    // Done by an earlier life of this worker that died before it could say so.
    if (!this.driver.linked) return;
    this.shift.loggingOut = true;
    try {
      await this.driver.logout();
    } catch (error) {
      this.shift.loggingOut = false;
      throw error;
    }
  }
}
