/**
 * How the fake WhatsApp behaves: one set of settings for all, and overrides for single phones.
 *
 * `PATCH /behaviour` changes it; every module asks for the settings of the phone it serves when something happens, so a
 * change counts at once. A setting with `times` is used up: it acts that often, then is gone.
 */

import { isPhone } from "./jids.js";
import {
  attributes,
  field,
  flag,
  integer,
  list,
  nullable,
  number,
  oneOf,
  record,
  required,
  SchemaError,
  string,
  within,
} from "./schema.js";
import type { Parse } from "./schema.js";

/** A limit in one place: nothing here waits longer than this. */
const LONGEST_DELAY_MS = 10 * 60 * 1000;
const COUNT_LIMIT = 1_000_000;

const delayMs = integer(0, LONGEST_DELAY_MS);
const ratio = number(0, 1);
const count = integer(0, COUNT_LIMIT);
const phone = string(isPhone, "a phone number");
const times = field(nullable(count), null);

/** Refuse messages: all, those to one number, every n-th, or a share; `code` goes into the ack. */
const nack = record({
  code: required(integer(1, 999)),
  to: field(nullable(phone), null),
  every: field(nullable(integer(1, COUNT_LIMIT)), null),
  ratio: field(nullable(ratio), null),
  times,
});
export type Nack = ReturnType<typeof nack>;

/** What happens to queries (`iq`) of a namespace: an error, no answer at all, one that says nothing, or a late one. */
const queryFault = record({
  xmlns: required(string()),
  kind: field(oneOf("error", "silent", "empty", "slow"), "error"),
  code: field(integer(1, 999), 429),
  text: field(string(), "rate-overlimit"),
  delayMs: field(delayMs, 0),
  times,
});
export type QueryFault = ReturnType<typeof queryFault>;

const timeLock = record({
  active: field(flag, true),
  /** Unix ms; null leaves the end out, as the real server may. */
  endsAtMs: field(nullable(integer(0, Number.MAX_SAFE_INTEGER)), null),
  enforcementType: field(string(), "DEFAULT"),
  /** Refuse messages that would start a chat with 463 while the lock holds. */
  enforce: field(flag, true),
});
export type TimeLock = ReturnType<typeof timeLock>;

const newChatQuota = record({
  total: required(count),
  /** null: counted here, from the chats that were started. */
  used: field(nullable(count), null),
  cycleEndsAtMs: field(nullable(integer(0, Number.MAX_SAFE_INTEGER)), null),
  /** null: NONE, or CAPPED once it is used up. */
  status: field(nullable(oneOf("NONE", "FIRST_WARNING", "SECOND_WARNING", "CAPPED")), null),
  enforce: field(flag, true),
});
export type NewChatQuota = ReturnType<typeof newChatQuota>;

const refuseUpgrade = record({
  status: field(integer(200, 599), 503),
  /** false: the connection is closed behind the answer. */
  keepOpen: field(flag, false),
  times,
});

const loginFailure = record({
  reason: required(integer(1, 999)),
  /** More attributes of the node: a 402 carries `code` and `expire`. */
  attrs: field(attributes, {}),
  times,
});

const mediaFault = record({
  kind: field(oneOf("status", "cut", "hang"), "status"),
  status: field(integer(200, 599), 500),
  times,
});

const FIELDS = {
  /** The server's ack of a message. */
  ackDelayMs: field(delayMs, 0),
  /** How many acks to lose from now on, though the messages are accepted. */
  loseAcks: field(count, 0),
  loseAckRatio: field(ratio, 0),
  /** Cut the connection on the next messages: before they are accepted, or after it and without an ack. */
  cutBeforeAccept: field(count, 0),
  cutAfterAccept: field(count, 0),
  nacks: field(list(nack), []),
  deliveredDelayMs: field(delayMs, 20),
  deliveredRatio: field(ratio, 1),
  readDelayMs: field(delayMs, 40),
  readRatio: field(ratio, 1),
  /** Which jid receipts come from; the real one uses either, so match them by message id. */
  receiptsFrom: field(oneOf("lid", "pn"), "lid"),
  /** Contacts ask once more for what they cannot decrypt. */
  retryReceipts: field(flag, true),
  queryFaults: field(list(queryFault), []),
  timeLock: field(nullable(timeLock), null),
  newChatQuota: field(nullable(newChatQuota), null),
  refuseUpgrade: field(nullable(refuseUpgrade), null),
  hangUpgrade: field(flag, false),
  noServerHello: field(flag, false),
  neverSuccess: field(flag, false),
  loginFailure: field(nullable(loginFailure), null),
  /** How many QR codes a client may show before it must give up. */
  qrRefs: field(integer(1, 100), 6),
  wrongPairingHmac: field(flag, false),
  /** The account may be linked only with a passkey: the client is told so, and pairing goes no further. */
  passkeyGate: field(flag, false),
  /** Pairing by code goes through at once if the client asks with this code (the library's `customPairingCode`). */
  autoLinkCode: field(nullable(string()), null),
  /** What a device is told of its pre-keys here; null is the truth. A high number spares 812 keys per new device. */
  preKeyCount: field(nullable(count), null),
  /** Send the (empty) history that a client waits for at its first login. Without it events are held for 20 s. */
  historySync: field(flag, true),
  /** It lies on the media host, as a long one does, and the client downloads it: from mmg.whatsapp.net, always. */
  historyAsFile: field(flag, false),
  mediaFault: field(nullable(mediaFault), null),
  /** Host names offered for uploads, with port; null is the server's own. */
  mediaHosts: field(nullable(list(string())), null),
};

export type Behaviour = { [Name in keyof typeof FIELDS]: ReturnType<(typeof FIELDS)[Name]["parse"]> };
type Counter = "loseAcks" | "cutBeforeAccept" | "cutAfterAccept";

export class Behaviours {
  private all: Behaviour = defaults();
  private readonly ofPhone = new Map<string, Partial<Behaviour>>();

  /** The settings for a phone; for nobody in particular if it is not known (a socket before its login). */
  for(phoneNumber: string | undefined): Behaviour {
    const own = phoneNumber === undefined ? undefined : this.ofPhone.get(phoneNumber);
    return own ? { ...this.all, ...own } : this.all;
  }

  /** Take over the named settings; null for one sets it back. Throws a SchemaError, and then nothing has changed. */
  patch(changes: Record<string, unknown>, phoneNumber?: string): void {
    const parsed: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(changes)) {
      parsed[name] = parseField(name, value);
    }
    if (phoneNumber === undefined) Object.assign(this.all, parsed);
    else this.ofPhone.set(phoneNumber, { ...this.ofPhone.get(phoneNumber), ...parsed });
  }

  /** Use one up, if any is left. */
  takeOne(counter: Counter, phoneNumber: string | undefined): boolean {
    const own = phoneNumber === undefined ? undefined : this.ofPhone.get(phoneNumber);
    const holder: Partial<Behaviour> = own && own[counter] !== undefined ? own : this.all;
    const left = holder[counter] ?? 0;
    if (left > 0) holder[counter] = left - 1;
    return left > 0;
  }

  reset(): void {
    this.all = defaults();
    this.ofPhone.clear();
  }
}

/** Whether a rule still acts; counts it down if it is limited. */
export function act(rule: { times: number | null } | null): boolean {
  if (rule === null || rule.times === 0) return false;
  if (rule.times !== null) rule.times -= 1;
  return true;
}

function defaults(): Behaviour {
  const values = Object.entries(FIELDS).map(([name, { initial }]) => [name, structuredClone(initial)]);
  return Object.fromEntries(values) as Behaviour;
}

function parseField(name: string, value: unknown): unknown {
  const known = (FIELDS as Record<string, { parse: Parse<unknown>; initial: unknown }>)[name];
  if (!known) throw new SchemaError(`${name}: no such setting`);
  return value === null ? structuredClone(known.initial) : within(name, () => known.parse(value));
}
