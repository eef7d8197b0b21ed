/**
 * Test only: `node --import ./dist/tests/trust-preload.js …` makes the library trust the fake WhatsApp's Noise root.
 *
 * The library has no option for it. Its rc14 accepts any well-formed chain, so today nothing depends on this file; it
 * is here for the day on which the check is repaired. It must never be part of what ships.
 */

import { readFileSync } from "node:fs";
import { WA_CERT_DETAILS } from "baileys";

/** The file that the fake names as `rootFile` when it is ready. */
export function trustRoot(rootFile: string): void {
  WA_CERT_DETAILS.PUBLIC_KEY = Buffer.from(readFileSync(rootFile, "utf8").trim(), "hex");
}

const rootFile = process.env.FAKE_WHATSAPP_ROOT_FILE;
if (rootFile) trustRoot(rootFile);
