/**
 * The file of a task: fetched from the orchestrator before anything is typed, and believed only if it is what its name
 * says. The last one is kept: a job of ten thousand sends one file ten thousand times. Neighbour: `sender`, which gives
 * a task back that has no file.
 */
import { createHash } from "node:crypto";
import { RequestRefused, Unavailable, type WorkerProtocol } from "./protocol.js";

/** There is no file to send now. Certainly nothing went out. */
export class MediaUnavailable extends Error {}

const REF = /^([0-9a-f]{64})-[a-z]{2,8}$/;

export class MediaKeeper {
  #ref = "";
  #content: Buffer = Buffer.alloc(0);

  constructor(private readonly protocol: WorkerProtocol) {}

  /** The bytes that `ref` names. Throws MediaUnavailable. */
  async get(ref: string, size: number): Promise<Buffer> {
    if (ref !== this.#ref) {
      // Let go of the old one first, so that there is only ever one in memory.
      this.#ref = "";
      this.#content = Buffer.alloc(0);
      this.#content = await this.#fetch(ref, size);
      this.#ref = ref;
    }
    return this.#content;
  }

  async #fetch(ref: string, size: number): Promise<Buffer> {
    const sha256 = REF.exec(ref)?.[1];
    if (!sha256) throw new MediaUnavailable("the orchestrator named no file of a kind we know");
    let content: Buffer;
    try {
      content = await this.protocol.media(ref, size);
    } catch (error) {
      if (error instanceof Unavailable || error instanceof RequestRefused) throw new MediaUnavailable(error.message);
      throw error;
    }
    if (content.length !== size) throw new MediaUnavailable(`${content.length} bytes instead of ${size}`);
    if (createHash("sha256").update(content).digest("hex") !== sha256) {
      throw new MediaUnavailable("the file is not the one that was uploaded");
    }
    return content;
  }
}
