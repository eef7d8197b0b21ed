/**
 * The server's keys on disk: its Noise identity and the TLS certificate of its media host.
 *
 * Both are made once per directory and kept, so that a restarted server is the one its devices know and a worker that
 * was started with `NODE_EXTRA_CA_CERTS` keeps trusting it. `noise-root.pub` and `tls-ca.pem` are what others read.
 */

import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createNoiseIdentity } from "./certificates.js";
import type { NoiseIdentity } from "./certificates.js";
import { createTls } from "./x509.js";
import type { TlsFiles } from "./x509.js";

/**
 * The wildcard is for tests in which only a proxy can resolve the name; the last is where the library downloads from,
 * whatever it is told. Only who was given this CA believes us.
 */
const TLS_NAMES = ["localhost", "127.0.0.1", "*.fake-whatsapp.test", "mmg.whatsapp.net"];

export interface ServerKeys {
  noise: NoiseIdentity;
  tls: TlsFiles;
  /** PEM of the CA, for NODE_EXTRA_CA_CERTS. */
  caFile: string;
  /** Hex of the Noise test root, for the tests' trust preload. */
  rootFile: string;
}

export function loadKeys(directory: string): ServerKeys {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const caFile = join(directory, "tls-ca.pem");
  const rootFile = join(directory, "noise-root.pub");
  const tls = loadJson(join(directory, "tls.json"), () => createTls(TLS_NAMES));
  const stored = loadJson(join(directory, "noise.json"), () => packNoise(createNoiseIdentity()));
  const noise = unpackNoise(stored);
  writeWhole(caFile, tls.caPem);
  writeWhole(rootFile, `${noise.rootPublic.toString("hex")}\n`);
  return { noise, tls, caFile, rootFile };
}

interface StoredNoise {
  private: string;
  public: string;
  certificate: string;
  root: string;
}

function packNoise({ staticKey, certificate, rootPublic }: NoiseIdentity): StoredNoise {
  return {
    private: Buffer.from(staticKey.private).toString("base64"),
    public: Buffer.from(staticKey.public).toString("base64"),
    certificate: certificate.toString("base64"),
    root: rootPublic.toString("base64"),
  };
}

function unpackNoise(stored: StoredNoise): NoiseIdentity {
  const unpack = (value: string): Buffer => Buffer.from(value, "base64");
  return {
    staticKey: { private: unpack(stored.private), public: unpack(stored.public) },
    certificate: unpack(stored.certificate),
    rootPublic: unpack(stored.root),
  };
}

function loadJson<Value>(path: string, create: () => Value): Value {
  if (existsSync(path)) return JSON.parse(readFileSync(path, "utf8")) as Value;
  const value = create();
  writeWhole(path, JSON.stringify(value));
  return value;
}

/** Whole or not at all: another process may be reading. */
function writeWhole(path: string, content: string): void {
  const draft = `${path}.draft`;
  writeFileSync(draft, content, { mode: 0o600 });
  renameSync(draft, path);
}
