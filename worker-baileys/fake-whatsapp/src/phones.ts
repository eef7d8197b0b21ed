/**
 * Every phone number there is: by default all of them are on WhatsApp, under the number itself.
 *
 * Holds what is said of a number (missing, canonical form, name) and its Signal endpoint, made when first needed.
 */

import { randomBytes } from "node:crypto";
import { Endpoint } from "./endpoint.js";
import type { StoredSession } from "./endpoint.js";
import type { StateFile } from "./state.js";

/** Endpoints follow from the seed, so the oldest can go. A session that goes costs its contact one retry receipt. */
const ENDPOINT_LIMIT = 10_000;
const SESSION_LIMIT = 100_000;

export interface Phone {
  phone: string;
  name: string;
  exists: boolean;
  /** The number under which WhatsApp knows this one, if another (the Brazilian ninth digit). */
  canonical?: string;
}

export class Phones {
  private seed: Buffer;
  private readonly told: Map<string, Phone>;
  private readonly endpoints = new Map<string, Endpoint>();
  private readonly sessions: Map<string, StoredSession>;

  constructor(private readonly state: StateFile) {
    const seed = state.take<string>("seed").get("");
    this.seed = seed === undefined ? randomBytes(32) : Buffer.from(seed, "base64");
    if (seed === undefined) state.put("seed", this.seed.toString("base64"));
    this.told = state.take("phone/");
    this.sessions = state.take("session/");
  }

  get(phone: string): Phone {
    return this.told.get(phone) ?? { phone, name: `Phone ${phone.slice(-4)}`, exists: true };
  }

  set(phone: Phone): void {
    this.told.set(phone.phone, phone);
    this.state.put(`phone/${phone.phone}`, phone);
  }

  list(): Phone[] {
    return [...this.told.values()];
  }

  /** The number to write to: undefined if it is not on WhatsApp. */
  canonical(phone: string): string | undefined {
    const known = this.get(phone);
    return known.exists ? (known.canonical ?? phone) : undefined;
  }

  /** A phone that can be written to under exactly this number. */
  reachable(phone: string): boolean {
    return this.canonical(phone) === phone;
  }

  endpoint(phone: string): Endpoint {
    let endpoint = this.endpoints.get(phone);
    if (!endpoint) {
      endpoint = new Endpoint(this.seed, phone, {
        load: (device) => this.sessions.get(`${phone}/${device}`),
        save: (device, session) => this.saveSession(`${phone}/${device}`, session),
      });
      this.endpoints.set(phone, endpoint);
      trim(this.endpoints, ENDPOINT_LIMIT);
    }
    return endpoint;
  }

  /** As if the phones were new: their keys stay, what was said of them goes. */
  reset(): void {
    for (const phone of this.told.keys()) this.state.put(`phone/${phone}`, null);
    this.told.clear();
  }

  /** A device that is gone leaves no sessions: a later one may get its number. */
  forgetDevice(device: string): void {
    for (const key of this.sessions.keys()) {
      const [phone = "", address] = key.split("/");
      if (address === device) this.endpoint(phone).forgetSession(device);
    }
  }

  private saveSession(key: string, session: StoredSession | undefined): void {
    // Deleted first, so that the order is that of the last use.
    this.sessions.delete(key);
    if (session) this.sessions.set(key, session);
    this.state.put(`session/${key}`, session ?? null);
    for (const gone of trim(this.sessions, SESSION_LIMIT)) this.state.put(`session/${gone}`, null);
  }
}

function trim(map: Map<string, unknown>, limit: number): string[] {
  const gone: string[] = [];
  for (const key of map.keys()) {
    if (map.size <= limit) break;
    map.delete(key);
    gone.push(key);
  }
  return gone;
}
