/**
 * The admin API: JSON over HTTP on loopback, for tests in any language and for `paceline up --fake-whatsapp`.
 *
 * One table of routes. Input is checked by `schema.ts`; an error is `{"error": "what is wrong"}` with a 4xx.
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import { disconnect, parseDisconnect } from "./disconnects.js";
import { isPhone } from "./jids.js";
import { announceLimits } from "./limits.js";
import { PairingError } from "./pairing.js";
import { field, flag, nullable, record, required, SchemaError, string } from "./schema.js";
import type { FakeWhatsApp } from "./server.js";

const BODY_LIMIT_BYTES = 1024 * 1024;
const ANSWER_LIMIT = 10_000;

const phone = string(isPhone, "a phone number, digits only");
const maybe = (parse: ReturnType<typeof string>) => field(nullable(parse), null);

const parseAccount = record({
  phone: required(phone),
  name: maybe(string()),
  canonical: maybe(phone),
  exists: field(flag, true),
});
const parseScan = record({ qr: required(string()), phone: maybe(phone) });
const parseCode = record({ phone: required(phone), code: required(string()) });
const parseInbound = record({
  from: required(phone),
  to: required(phone),
  text: required(string()),
  id: maybe(string()),
  name: maybe(string()),
});
const parseReset = record({ links: field(flag, false) });

interface Call {
  body: unknown;
  query: URLSearchParams;
  /** What the path holds in place of `:name`. */
  name: string;
}

class NotFound extends Error {}

type Handler = (call: Call) => unknown;

export class Admin {
  private readonly routes: Record<string, Handler>;

  constructor(private readonly fake: FakeWhatsApp) {
    this.routes = {
      "GET /health": () => ({
        status: "ok",
        devices: fake.context.devices.list().length,
        connections: fake.sessions.open.size,
      }),
      "GET /stats": () => this.stats(),
      "GET /devices": () => ({ devices: this.devices() }),
      "GET /accounts": () => ({ accounts: fake.context.phones.list() }),
      "POST /accounts": ({ body }) => this.setAccount(parseAccount(body)),
      "DELETE /accounts/:name": ({ name }) => this.setAccount(parseAccount({ phone: name, exists: false })),
      "POST /scan": ({ body }) => this.scan(parseScan(body)),
      "POST /enter-code": ({ body }) => this.enterCode(parseCode(body)),
      "PATCH /behaviour": ({ body }) => this.behave(body),
      "GET /behaviour": ({ query }) => fake.context.behaviours.for(query.get("phone") ?? undefined),
      "POST /devices/:name/disconnect": ({ name, body }) => this.disconnect(name, body),
      "POST /inbound": ({ body }) => this.inbound(parseInbound(body)),
      "POST /accounts/:name/forget-sessions": ({ name }) => this.forgetSessions(name),
      "GET /ledger": ({ query }) => this.ledger(index(query)),
      "GET /events": ({ query }) => fake.context.events.after(index(query)),
      "POST /reset": ({ body }) => this.reset(parseReset(body)),
    };
  }

  readonly serve = (request: IncomingMessage, response: ServerResponse): void => {
    this.handle(request)
      .then((answer) => respond(response, 200, answer ?? { status: "ok" }))
      .catch((error: Error) => respond(response, statusOf(error), { error: error.message }));
  };

  private async handle(request: IncomingMessage): Promise<unknown> {
    // A web page in a browser on this machine must not be able to call: it cannot choose another Host.
    if (!/^(127\.0\.0\.1|localhost)(:\d+)?$/.test(request.headers.host ?? ""))
      throw new SchemaError("host: not loopback");
    const url = new URL(request.url ?? "/", "http://localhost");
    const [, first = "", second, third] = url.pathname.split("/");
    const path = ["", first, ...(second === undefined ? [] : [":name"]), ...(third === undefined ? [] : [third])].join(
      "/",
    );
    const handler = this.routes[`${request.method} ${path}`];
    if (!handler) throw new NotFound("no such endpoint");
    return handler({ body: await readBody(request), query: url.searchParams, name: decodeURIComponent(second ?? "") });
  }

  private stats(): unknown {
    const { devices, ledger, events } = this.fake.context;
    const all = devices.list();
    return {
      devices: all.length,
      connected: all.filter((device) => device.connection).length,
      connections: this.fake.sessions.open.size,
      ledger: ledger.length,
      events: events.counts,
      rssBytes: process.memoryUsage().rss,
      heapBytes: process.memoryUsage().heapUsed,
    };
  }

  private devices(): unknown[] {
    return this.fake.context.devices.list().map((device) => ({
      jid: device.jid,
      lid: device.lid,
      phone: device.phone,
      sessionId: device.stored.sessionId,
      connected: device.connection !== undefined,
      active: device.connection?.active ?? false,
      preKeys: device.preKeyCount,
      waiting: this.fake.context.outbox.count(device),
      linkedAt: device.stored.linkedAtMs,
      lastLoginAt: device.lastLoginMs,
    }));
  }

  private setAccount(account: ReturnType<typeof parseAccount>): unknown {
    const { phones } = this.fake.context;
    const known = phones.get(account.phone);
    phones.set({
      phone: account.phone,
      exists: account.exists,
      name: account.name ?? known.name,
      ...(account.canonical !== null && { canonical: account.canonical }),
    });
    return phones.get(account.phone);
  }

  private async scan({ qr, phone: by }: ReturnType<typeof parseScan>): Promise<unknown> {
    return { jid: await this.fake.context.pairing.scan(qr, by ?? undefined) };
  }

  private async enterCode({ phone: by, code }: ReturnType<typeof parseCode>): Promise<unknown> {
    return { jid: await this.fake.codes.enter(by, code.replace(/-/g, "").toUpperCase()) };
  }

  private behave(body: unknown): unknown {
    if (typeof body !== "object" || body === null) throw new SchemaError("must be an object");
    const { phone: of, ...changes } = body as Record<string, unknown>;
    const number = of === undefined ? undefined : phone(of);
    this.fake.context.behaviours.patch(changes, number);
    announceLimits(this.fake.context, number, changes);
    return this.fake.context.behaviours.for(number);
  }

  private disconnect(jid: string, body: unknown): unknown {
    const device = this.fake.context.devices.get(jid);
    if (!device) throw new NotFound("no such device");
    const done = disconnect(device, parseDisconnect(body), (removed) => this.fake.sessions.unlink(removed));
    if (!done) throw new PairingError(409, "the device is not connected");
    return undefined;
  }

  private async inbound({ from, to, text, id, name }: ReturnType<typeof parseInbound>): Promise<unknown> {
    const devices = this.fake.context.devices.ofPhone(to).length;
    if (devices === 0) throw new NotFound("no device is linked to this phone");
    return { id: await this.fake.context.inbound.write(from, to, text, id ?? undefined, name ?? undefined), devices };
  }

  /** As a contact who reinstalled without the keys that were not in the backup: it can read nothing under way. */
  private forgetSessions(number: string): unknown {
    for (const device of this.fake.context.devices.list()) {
      this.fake.context.phones.endpoint(phone(number)).forgetSession(device.address);
    }
    return undefined;
  }

  private ledger(after: number): unknown {
    return this.fake.context.ledger.after(after, ANSWER_LIMIT);
  }

  private reset({ links }: ReturnType<typeof parseReset>): unknown {
    const { behaviours, phones, ledger, events, outbox, media, timers, devices } = this.fake.context;
    timers.clear();
    behaviours.reset();
    phones.reset();
    ledger.clear();
    outbox.clear();
    media.clear();
    for (const connection of this.fake.sessions.open) connection.cut();
    if (links) for (const device of devices.list()) this.fake.sessions.unlink(device);
    events.clear();
    return undefined;
  }
}

async function readBody(request: IncomingMessage): Promise<unknown> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    length += part.length;
    if (length > BODY_LIMIT_BYTES) throw new SchemaError("body: too large");
    parts.push(part);
  }
  if (length === 0) return {};
  try {
    return JSON.parse(Buffer.concat(parts).toString("utf8"));
  } catch {
    throw new SchemaError("body: not JSON");
  }
}

function index(query: URLSearchParams): number {
  const after = Number(query.get("after") ?? 0);
  if (!Number.isSafeInteger(after) || after < 0) throw new SchemaError("after: must be a whole number");
  return after;
}

function statusOf(error: Error): number {
  if (error instanceof SchemaError) return 400;
  if (error instanceof NotFound) return 404;
  if (error instanceof PairingError) return error.status;
  return 500;
}

function respond(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
