/** A proxy as PROXY_URL names it. `proxy-connect.ts` goes through it; `routes.ts` has everything go that way. */

export interface Proxy {
  readonly kind: "socks5h" | "http" | "https";
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
}

// Its length goes before it in one byte.
const SOCKS_LIMIT_BYTES = 255;
const PORTS: Readonly<Record<string, number>> = { "socks5h:": 1080, "http:": 80, "https:": 443 };

export function readProxy(text: string): Proxy {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new Error("is no address");
  }
  if (url.protocol === "socks5:") throw new Error("socks5:// resolves names here; use socks5h://");
  const byDefault = PORTS[url.protocol];
  if (byDefault === undefined || !url.hostname) throw new Error("must be socks5h://, http:// or https://");
  const [user, password] = [decodeURIComponent(url.username), decodeURIComponent(url.password)];
  if (url.protocol === "socks5h:" && [user, password].some((text) => Buffer.byteLength(text) > SOCKS_LIMIT_BYTES)) {
    throw new Error(`SOCKS takes at most ${SOCKS_LIMIT_BYTES} bytes of a user or a password`);
  }
  return {
    kind: url.protocol.slice(0, -1) as Proxy["kind"],
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port ? Number(url.port) : byDefault,
    user,
    password,
  };
}
