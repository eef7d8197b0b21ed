/**
 * Addresses: phone numbers, lids and jids, and how they turn into each other.
 *
 * Real lids have nothing to do with the number. Here a lid is the number behind a fixed prefix, so that both
 * directions are a function and nothing about a contact has to be remembered.
 */

const LID_PREFIX = "10";

export interface Address {
  phone: string;
  device: number;
  isLid: boolean;
}

/** Digits only; 5..15 of them, which holds every E.164 number and the short ones that tests like. */
export function isPhone(value: unknown): value is string {
  return typeof value === "string" && /^[1-9][0-9]{4,14}$/.test(value);
}

export function phoneJid(phone: string, device = 0): string {
  return device === 0 ? `${phone}@s.whatsapp.net` : `${phone}:${device}@s.whatsapp.net`;
}

export function lidJid(phone: string, device = 0): string {
  const user = LID_PREFIX + phone;
  return device === 0 ? `${user}@lid` : `${user}:${device}@lid`;
}

/** The person and device behind a jid; undefined for groups, broadcasts, newsletters and the server. */
export function parseJid(jid: string | undefined): Address | undefined {
  const match = /^([0-9]+)(?::([0-9]+))?@(s\.whatsapp\.net|c\.us|lid)$/.exec(jid ?? "");
  if (!match) return undefined;
  const [, user = "", device = "0", server] = match;
  if (server !== "lid") return { phone: user, device: Number(device), isLid: false };
  if (!user.startsWith(LID_PREFIX)) return undefined;
  return { phone: user.slice(LID_PREFIX.length), device: Number(device), isLid: true };
}
