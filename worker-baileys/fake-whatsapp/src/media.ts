/**
 * The media host: takes encrypted uploads over https and gives them out again; opens them for the ledger.
 *
 * The library insists on https, so this host has its own certificate (`keys.ts`). What it stores is ciphertext; the key
 * comes with the message, end to end, and only then can `digest` say what was in it.
 */

import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { getMediaKeys } from "baileys";
import type { MediaType } from "baileys";
import { act } from "./behaviour.js";
import type { Behaviours } from "./behaviour.js";
import type { EventLog } from "./events.js";

const MAC_BYTES = 10;
/** WhatsApp's own limit for documents is 2 GB; nothing that a test sends is near this one. */
const UPLOAD_LIMIT_BYTES = 64 * 1024 * 1024;
/** Ciphertexts in memory, all together; the oldest go first. */
const STORE_LIMIT_BYTES = 512 * 1024 * 1024;

/** What a message says of a file on the media host. */
export interface FileReference {
  mediaKey: Uint8Array;
  directPath: string;
  fileSha256: Uint8Array;
  fileEncSha256: Uint8Array;
  fileLength: number;
}

export class MediaHost {
  private readonly store = new Map<string, Buffer>();
  private storedBytes = 0;

  constructor(
    private readonly behaviours: Behaviours,
    private readonly events: EventLog,
  ) {}

  /** `POST /mms/<kind>/<hash>` and `GET /o/<hash>`. */
  readonly serve = (request: IncomingMessage, response: ServerResponse): void => {
    const url = new URL(request.url ?? "/", "https://localhost");
    const name = url.pathname.split("/").at(-1) ?? "";
    const { mediaFault } = this.behaviours.for(undefined);
    if (mediaFault && act(mediaFault)) {
      this.events.add("media-fault", { kind: mediaFault.kind });
      if (mediaFault.kind === "hang") return;
      if (mediaFault.kind === "cut") return void request.socket.destroy();
      return respond(response, mediaFault.status, { error: "told to fail" });
    }
    if (request.method === "GET") return this.download(name, response);
    if (!url.pathname.startsWith("/mms/")) return respond(response, 404, { error: "no such path" });
    this.upload(name, request, response).catch((error: Error) => respond(response, 400, { error: error.message }));
  };

  /** SHA-256 (hex) of what was uploaded, decrypted with the message's key; undefined if it is not here or not right. */
  async digest(encryptedSha256: Uint8Array, mediaKey: Uint8Array, type: MediaType): Promise<string | undefined> {
    const stored = this.store.get(Buffer.from(encryptedSha256).toString("base64url"));
    if (!stored) return undefined;
    const { iv, cipherKey, macKey } = await getMediaKeys(mediaKey, type);
    const body = stored.subarray(0, -MAC_BYTES);
    if (!timingSafeEqual(macOf(iv, body, macKey!), stored.subarray(-MAC_BYTES))) return undefined;
    const decipher = createDecipheriv("aes-256-cbc", cipherKey, iv);
    return createHash("sha256").update(decipher.update(body)).update(decipher.final()).digest("hex");
  }

  /** Stores a file of somebody else's, as their client would have uploaded it. */
  async put(content: Buffer, type: MediaType): Promise<FileReference> {
    const mediaKey = randomBytes(32);
    const { iv, cipherKey, macKey } = await getMediaKeys(mediaKey, type);
    const cipher = createCipheriv("aes-256-cbc", cipherKey, iv);
    const body = Buffer.concat([cipher.update(content), cipher.final()]);
    const stored = Buffer.concat([body, macOf(iv, body, macKey!)]);
    const fileEncSha256 = createHash("sha256").update(stored).digest();
    const name = fileEncSha256.toString("base64url");
    this.keep(name, stored);
    const fileSha256 = createHash("sha256").update(content).digest();
    return { mediaKey, directPath: `/o/${name}`, fileSha256, fileEncSha256, fileLength: content.length };
  }

  clear(): void {
    this.store.clear();
    this.storedBytes = 0;
  }

  private async upload(name: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    let length = 0;
    for await (const part of request as AsyncIterable<Buffer>) {
      length += part.length;
      if (length > UPLOAD_LIMIT_BYTES) throw new Error("too large");
      parts.push(part);
    }
    const body = Buffer.concat(parts);
    const hash = createHash("sha256").update(body).digest("base64url");
    // The path carries the hash in the library's own base64; what matters is that it names these bytes.
    if (decodeURIComponent(name).replace(/=+$/, "") !== hash)
      throw new Error("the hash in the path is not that of the body");
    this.keep(hash, body);
    this.events.add("upload", { bytes: length, host: request.headers.host });
    const path = `/o/${hash}`;
    respond(response, 200, { url: `https://${request.headers.host}${path}`, direct_path: path });
  }

  private download(name: string, response: ServerResponse): void {
    const stored = this.store.get(name);
    if (!stored) return respond(response, 404, { error: "no such media" });
    this.events.add("download", { bytes: stored.length });
    response
      .writeHead(200, { "content-type": "application/octet-stream", "content-length": stored.length })
      .end(stored);
  }

  private keep(hash: string, body: Buffer): void {
    if (this.store.has(hash)) return;
    this.store.set(hash, body);
    this.storedBytes += body.length;
    for (const [oldest, bytes] of this.store) {
      if (this.storedBytes <= STORE_LIMIT_BYTES) break;
      this.store.delete(oldest);
      this.storedBytes -= bytes.length;
    }
  }
}

function macOf(iv: Uint8Array, body: Buffer, macKey: Uint8Array): Buffer {
  return createHmac("sha256", macKey).update(iv).update(body).digest().subarray(0, MAC_BYTES);
}

function respond(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
