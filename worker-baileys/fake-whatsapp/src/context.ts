/** The parts of one fake WhatsApp, as every module that serves a client gets them. Put together in `server.ts`. */

import type { Behaviours } from "./behaviour.js";
import type { Devices } from "./devices.js";
import type { EventLog } from "./events.js";
import type { Inbound } from "./inbound.js";
import type { Ledger } from "./ledger.js";
import type { MediaHost } from "./media.js";
import type { Outbox } from "./outbox.js";
import type { Pairing } from "./pairing.js";
import type { Phones } from "./phones.js";
import type { Timers } from "./timers.js";

export interface Context {
  phones: Phones;
  devices: Devices;
  ledger: Ledger;
  behaviours: Behaviours;
  events: EventLog;
  media: MediaHost;
  outbox: Outbox;
  inbound: Inbound;
  pairing: Pairing;
  timers: Timers;
  /** Host and port that uploads go to. */
  mediaHost: string;
  /** 0..1, from the server's seed. */
  random: () => number;
}
