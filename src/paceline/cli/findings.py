"""What `paceline doctor` makes of what it saw: facts in, findings out, each with how to mend it. No I/O here.

Neighbours: `examining` gathers the facts, `doctor` prints the findings.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "note", "warning", "fault"]

GIB = 2**30
LEAST_FREE_BYTES = GIB
"""Redis rewrites its file beside the old one now and then; under this there is no room for that."""
OTHERS = 0o077
OLDEST_REDIS = (6, 2)
FULL_ABOVE = 0.8
"""The gateway refuses new jobs above this share of Redis' memory."""
CLOCK_WARNING_MS = 2_000
CLOCK_FAULT_MS = 30_000
"""Signed webhooks are refused after minutes, and logs of two machines can no longer be laid side by side."""


@dataclass(frozen=True)
class Finding:
    about: str
    state: State
    found: str
    mend: str = ""


@dataclass(frozen=True)
class DataFacts:
    path: str
    exists: bool
    writable: bool = True
    mode: int = 0o700
    free_bytes: int = 100 * GIB


def data_directory(facts: DataFacts) -> Iterator[Finding]:
    name = "data directory"
    if not facts.exists:
        yield Finding(name, "note", f"{facts.path} is not there yet; `paceline up` makes it")
        return
    if not facts.writable:
        mend = f"chown it to the user that runs paceline, or set PACELINE_DATA; it is {facts.path}"
        yield Finding(name, "fault", f"{facts.path} cannot be written", mend)
        return
    # A group may have been let in on purpose; to the keys in it nobody is.
    if facts.mode & 0o007:
        mend = f"chmod o= {facts.path}"
        yield Finding(name, "warning", "other users of this machine can look into it; keys and texts lie there", mend)
    if facts.free_bytes < LEAST_FREE_BYTES:
        mend = "make room, or set PACELINE_DATA to another disk"
        yield Finding(name, "fault", f"only {facts.free_bytes / GIB:.1f} GiB are free", mend)
        return
    yield Finding(name, "ok", f"{facts.path}, {facts.free_bytes / GIB:.0f} GiB free")


@dataclass(frozen=True)
class SecretFacts:
    variable: str
    source: Literal["environment", "file", "nowhere"]
    path: str
    guessable: bool = False
    mode: int = 0o600


def secret(facts: SecretFacts) -> Finding:
    name = facts.variable
    if facts.source == "nowhere":
        return Finding(name, "note", f"not set; `paceline up` makes one in {facts.path}")
    where = "from the environment" if facts.source == "environment" else f"in {facts.path}"
    if facts.guessable:
        mend = f"{name}=$(openssl rand -base64 32), and the same to all services"
        return Finding(name, "warning", f"{where}, and easy to guess: refused on any address beyond loopback", mend)
    if facts.source == "file" and facts.mode & OTHERS:
        return Finding(name, "fault", "other users of this machine can read it", f"chmod 600 {facts.path}")
    return Finding(name, "ok", where)


@dataclass(frozen=True)
class RedisFacts:
    where: str
    version: str
    config: dict[str, str] | None
    """None: this Redis does not let us look (a managed one)."""
    info: dict[str, str]
    is_remote: bool = False
    is_encrypted: bool = False


def redis(facts: RedisFacts) -> Iterator[Finding]:
    yield _version(facts)
    yield from _durability(facts)
    yield from _memory(facts)
    if facts.info.get("role") == "slave":
        yield Finding("Redis role", "fault", "this is a replica and takes no writes", "point REDIS_URL at the primary")
    if facts.info.get("aof_last_write_status", "ok") != "ok":
        mend = "its disk is full or broken: see its log, make room"
        yield Finding("Redis disk", "fault", "its last write to the append-only file failed", mend)
    if facts.is_remote and not facts.is_encrypted:
        mend = "use rediss:// and Redis' ACL, or a private network that nobody else is on"
        yield Finding("Redis network", "warning", "another machine, and the connection is not encrypted", mend)


def _version(facts: RedisFacts) -> Finding:
    version = tuple(int(part) for part in facts.version.split(".")[:2] if part.isdigit())
    if version < OLDEST_REDIS:
        return Finding("Redis", "fault", f"{facts.version} is too old", "install Redis or Valkey 6.2 or newer")
    return Finding("Redis", "ok", f"{facts.version} at {facts.where}")


def _durability(facts: RedisFacts) -> Iterator[Finding]:
    config = facts.config
    if config is None:
        mend = "ask who runs it for appendonly yes, appendfsync always, maxmemory-policy noeviction"
        yield Finding("Redis durability", "warning", "this Redis does not show its settings", mend)
        return
    is_kept = config.get("appendonly") == "yes"
    if not is_kept:
        mend = "redis-cli CONFIG SET appendonly yes, and `appendonly yes` in redis.conf"
        yield Finding("Redis durability", "fault", "appendonly is off: a restart forgets what was accepted", mend)
    elif config.get("appendfsync") == "no":
        mend = "redis-cli CONFIG SET appendfsync always, and the same in redis.conf"
        yield Finding("Redis durability", "fault", "appendfsync no: a power cut loses what was accepted", mend)
    elif config.get("appendfsync") != "always":
        mend = "redis-cli CONFIG SET appendfsync always, and the same in redis.conf"
        found = f"appendfsync {config.get('appendfsync')}: a power cut may lose the last second"
        yield Finding("Redis durability", "warning", found, mend)
    else:
        yield Finding("Redis durability", "ok", "every write is on the disk before it is answered")
    if config.get("maxmemory-policy") != "noeviction":
        mend = "redis-cli CONFIG SET maxmemory-policy noeviction, and the same in redis.conf"
        found = f"maxmemory-policy {config.get('maxmemory-policy')}: when memory is short, queues are deleted"
        yield Finding("Redis eviction", "fault", found, mend)
    else:
        yield Finding("Redis eviction", "ok", "nothing is ever evicted")


def _memory(facts: RedisFacts) -> Iterator[Finding]:
    used, limit = int(facts.info.get("used_memory", 0)), int(facts.info.get("maxmemory", 0))
    if limit and used > FULL_ABOVE * limit:
        found = f"{used / limit:.0%} of maxmemory is used: new jobs are refused"
        yield Finding("Redis memory", "fault", found, "redis-cli CONFIG SET maxmemory, with more than now")
    else:
        of = f" of {limit / 2**20:.0f}" if limit else ", no limit set"
        yield Finding("Redis memory", "ok", f"{used / 2**20:.0f} MiB{of}")


def clock(offset_ms: int | None, is_synchronised: bool | None) -> Finding:
    """How far Redis' clock, which all services go by, is ahead of this machine's."""
    if offset_ms is not None and abs(offset_ms) >= CLOCK_WARNING_MS:
        state: State = "fault" if abs(offset_ms) >= CLOCK_FAULT_MS else "warning"
        found = f"Redis' clock is {offset_ms / 1000:+.1f} s from this machine's"
        return Finding("clock", state, found, "run an NTP client on both machines: timedatectl set-ntp true")
    if is_synchronised is False:
        return Finding("clock", "warning", "no NTP client keeps it", "timedatectl set-ntp true, or install chrony")
    near = "" if offset_ms is None else f", within {CLOCK_WARNING_MS / 1000:g} s of Redis'"
    return Finding("clock", "ok", f"{'kept by NTP' if is_synchronised else 'as this machine says'}{near}")


@dataclass(frozen=True)
class NumbersFacts:
    real: int = 0
    simulated: int = 0
    simulated_only: bool = False
    """The policy is the demo's."""


def numbers(facts: NumbersFacts) -> Iterator[Finding]:
    if facts.real and facts.simulated:
        beside = f"{facts.simulated} simulated beside {facts.real} real"
        found = f"{beside}: they take a share of every job and call it sent (SIMULATED_BESIDE_REAL)"
        yield Finding("numbers", "fault", found, "paceline sessions list, then paceline sessions remove each of them")
    if facts.real and facts.simulated_only:
        found = f"the demo policy has no limits, and {facts.real} of the sessions are real (DEMO_POLICY)"
        yield Finding("policy", "fault", found, "set PACELINE_POLICY to another one")


@dataclass(frozen=True)
class DockerFacts:
    runner: str
    host: str
    version: str | None = None
    """None: the engine did not answer."""
    missing_images: tuple[str, ...] = ()


def docker(facts: DockerFacts) -> Iterator[Finding]:
    if facts.runner != "docker":
        seen = f"; an engine answers all the same ({facts.version})" if facts.version else ""
        yield Finding("Docker", "ok", f"not needed: RUNNER is {facts.runner}{seen}")
        return
    if facts.version is None:
        mend = "start it (systemctl start docker), let this user use it (group docker), or set DOCKER_HOST"
        yield Finding("Docker", "fault", f"no engine answers at {facts.host}", mend)
        return
    yield Finding("Docker", "ok", f"{facts.version} at {facts.host}")
    for image in facts.missing_images:
        yield Finding("Docker image", "fault", f"{image} is not there", "make images")


@dataclass(frozen=True)
class PortFacts:
    service: str
    variable: str
    port: int
    use: Literal["free", "ours", "taken"]


def port(facts: PortFacts) -> Finding:
    name = f"port {facts.port}"
    if facts.use == "taken":
        mend = f"stop what listens there (ss -ltnp 'sport = :{facts.port}'), or set {facts.variable}"
        return Finding(name, "fault", f"for the {facts.service}, is taken by another program", mend)
    return Finding(
        name, "ok", f"the {facts.service} answers" if facts.use == "ours" else f"free for the {facts.service}"
    )


@dataclass(frozen=True)
class RunningFacts:
    """What the running services said; None is what could not be asked."""

    scopes: tuple[str, ...] | None = None
    refused: str = ""
    paused: str | None = None
    stopped: bool = False
    statuses: dict[str, int] | None = None


def running(facts: RunningFacts) -> Iterator[Finding]:
    if facts.refused:
        mend = "set API_KEY to a key that `paceline keys list` knows, or PACELINE_DATA to its data directory"
        yield Finding("API key", "fault", f"not accepted: {facts.refused}", mend)
    elif facts.scopes is not None:
        yield Finding("API key", "ok", f"accepted; may {', '.join(facts.scopes)}")
    if facts.paused:
        found = f"paused by {facts.paused}: nothing is sent"
        yield Finding("fleet", "warning", found, "paceline fleet incidents tells why; paceline fleet resume")
    if facts.stopped:
        yield Finding("fleet", "warning", "the dispatchers are stopped: nothing is routed", "paceline fleet start")
    known = facts.statuses or {}
    if waiting := known.get("SCAN_QR", 0):
        mend = "paceline sessions list --status SCAN_QR, then paceline sessions qr ID"
        yield Finding("sessions", "warning", f"{waiting} wait to be linked", mend)
    if failed := sum(known.get(status, 0) for status in ("FAILED", "LOGGED_OUT", "QUARANTINED", "LINK_BLOCKED")):
        mend = "paceline sessions list, then paceline sessions show ID and logs ID"
        yield Finding("sessions", "warning", f"{failed} are down", mend)
