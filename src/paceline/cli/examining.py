"""What `paceline doctor` looks at: the disk, the secrets, Redis, the clock, Docker, the ports, the running services.

It changes nothing and starts nothing. What is seen is judged in `findings`.
"""

import asyncio
import ctypes
import os
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

import httpx

from paceline.cli import findings
from paceline.cli.findings import (
    DataFacts,
    DockerFacts,
    Finding,
    NumbersFacts,
    PortFacts,
    RedisFacts,
    RunningFacts,
    SecretFacts,
)
from paceline.domain.drivers import is_simulated
from paceline.kits.addresses import is_loopback
from paceline.launcher.data import DataDirectory, data_here, find_key
from paceline.launcher.errors import LauncherError
from paceline.launcher.preflight import UpOptions, load_up_settings
from paceline.launcher.redis_binary import find_binary
from paceline.launcher.redis_server import RedisServer
from paceline.policy.trust import DEMO
from paceline.settings import SettingsError, UpSettings, env_name
from paceline.settings.access import is_guessable

if TYPE_CHECKING:
    from pydantic import SecretStr

ASK_SECONDS = 5.0
_TIME_ERROR = 5
"""What adjtimex(2) returns while nobody keeps the clock."""
_TIMEX_BYTES = 512
"""More than the structure has on any machine; all zero asks for nothing to be changed."""

Names = Literal["gateway", "dispatcher", "orchestrator", "dashboard"]
SERVICES: tuple[Names, ...] = ("gateway", "dispatcher", "orchestrator", "dashboard")


def examine(key: str | None) -> Iterator[Finding]:
    try:
        settings, missing = load_up_settings(UpOptions(data=data_here()))
    except SettingsError as error:
        for fault in error.faults:
            variable, _, wrong = fault.partition(": ")
            yield Finding(variable, "fault", wrong, f"set {variable} right; docs/settings.md explains it")
        return
    data = DataDirectory(settings.data)
    yield from findings.data_directory(_data(data))
    for field, path in (("api_key", data.api_key), ("webhook_secret", data.webhook_secret)):
        given = None if field in missing else getattr(settings, field)
        yield findings.secret(_secret(env_name(field), given, path))
    yield from _redis_and_clock(settings, data)
    yield from findings.docker(_docker(settings))
    ports = [_port(settings, service) for service in SERVICES]
    yield from map(findings.port, ports)
    if ports[0].use == "ours":
        yield from findings.running(_running(settings, key))


def _data(data: DataDirectory) -> DataFacts:
    root = data.root
    if not root.exists():
        return DataFacts(str(root), exists=False)
    free = shutil.disk_usage(root).free
    return DataFacts(str(root), True, os.access(root, os.W_OK | os.X_OK), root.stat().st_mode, free)


def _secret(variable: str, given: "SecretStr | None", path: Path) -> SecretFacts:
    if given is not None:
        return SecretFacts(variable, "environment", str(path), is_guessable(given.get_secret_value()))
    try:
        return SecretFacts(variable, "file", str(path), is_guessable(path.read_text().strip()), path.stat().st_mode)
    except OSError:
        return SecretFacts(variable, "nowhere", str(path))


def _redis_and_clock(settings: UpSettings, data: DataDirectory) -> Iterator[Finding]:
    url, offset_ms = settings.redis_url, None
    if "redis_url" not in settings.model_fields_set:
        try:
            server = RedisServer(data, find_binary(data.redis))
        except LauncherError as error:
            yield Finding("Redis", "fault", str(error), "apt install valkey-server or redis-server, or set REDIS_URL")
            return
        if not server.socket.exists():
            yield Finding("Redis", "ok", f"`paceline up` starts {server.binary}, with every write on the disk")
            yield findings.clock(None, _is_synchronised())
            return
        url = server.url
    where = urlsplit(url)
    try:
        facts, offset_ms, drivers = asyncio.run(_ask_redis(url))
    except Exception as error:
        mend = "start it, or set REDIS_URL right (its password too)"
        yield Finding("Redis", "fault", f"no answer at {where.hostname or where.path}: {error}", mend)
    else:
        yield from findings.redis(facts)
        yield from findings.numbers(_numbers(settings, drivers))
    yield findings.clock(offset_ms, _is_synchronised())


def _numbers(settings: UpSettings, drivers: dict[str, int]) -> NumbersFacts:
    simulated = sum(count for driver, count in drivers.items() if is_simulated(driver))
    is_demo = settings.policy == DEMO and settings.whatsapp_url is None
    return NumbersFacts(sum(drivers.values()) - simulated, simulated, is_demo)


async def _ask_redis(url: str) -> tuple[RedisFacts, int, dict[str, int]]:
    from paceline.store.client import RedisError, RedisLink
    from paceline.store.store import Store

    where, link = urlsplit(url), RedisLink(url)
    try:
        async with asyncio.timeout(ASK_SECONDS):
            (info,) = await link.read(("INFO",))
            drivers = await Store(link).sessions.drivers()
            before, theirs, after = time.time(), await link.time_ms(), time.time()
            config: dict[str, str] | None = {}
            try:
                for name in ("appendonly", "appendfsync", "maxmemory-policy"):
                    (found,) = await link.read(("CONFIG", "GET", name))
                    config = {**(config or {}), **found}
            except RedisError:
                config = None
    finally:
        await link.close()
    facts = RedisFacts(
        where=f"{where.hostname}:{where.port or 6379}" if where.hostname else where.path,
        version=str(info.get("redis_version", "0")),
        config=config,
        info={name: str(value) for name, value in info.items()},
        is_remote=bool(where.hostname) and not is_loopback(where.hostname or ""),
        is_encrypted=where.scheme == "rediss",
    )
    return facts, theirs - round((before + after) * 500), drivers


def _is_synchronised() -> bool | None:
    """What the kernel says; None where it cannot be asked."""
    if sys.platform != "linux":
        return None
    try:
        answer: int = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    except (OSError, AttributeError):
        return None
    return None if answer < 0 else answer != _TIME_ERROR


def _docker(settings: UpSettings) -> DockerFacts:
    host = settings.docker_host
    known = DockerFacts(settings.runner, host)
    is_unix = host.startswith("unix://")
    transport = httpx.HTTPTransport(uds=host.removeprefix("unix://")) if is_unix else None
    base = "http://docker" if is_unix else host.replace("tcp://", "http://")
    try:
        with httpx.Client(transport=transport, base_url=base, timeout=ASK_SECONDS, trust_env=False) as engine:
            version = str(engine.get("/version").json().get("Version", "?"))
            images = (settings.worker_image,) if settings.runner == "docker" else ()
            missing = tuple(image for image in images if engine.get(f"/images/{image}/json").status_code != 200)
            return DockerFacts(settings.runner, host, version, missing)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError):
        return known


def _port(settings: UpSettings, service: Names) -> PortFacts:
    variable = f"{service.upper()}_PORT"
    port: int = getattr(settings, f"{service}_port")
    if _is_free(_host(settings), port):
        return PortFacts(service, variable, port, "free")
    return PortFacts(service, variable, port, "ours" if _is_ours(_url(settings, service)) else "taken")


def _host(settings: UpSettings) -> str:
    """A service that listens everywhere is asked on loopback."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)


def _url(settings: UpSettings, service: Names) -> str:
    host = _host(settings)
    return f"http://{f'[{host}]' if ':' in host else host}:{getattr(settings, f'{service}_port')}"


def _is_free(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def _is_ours(url: str) -> bool:
    """Our services say so at /health; other programs have other words there."""
    try:
        answer = httpx.get(f"{url}/health", timeout=ASK_SECONDS, trust_env=False)
        return answer.status_code == 200 and answer.json().get("status") == "ok"
    except (httpx.HTTPError, ValueError, AttributeError):
        return False


def _running(settings: UpSettings, key: str | None) -> RunningFacts:
    from paceline.client import Operator, PacelineError, Refused, Retries, Urls

    urls = Urls(*(_url(settings, service) for service in SERVICES[:3]))
    try:
        with Operator(urls, find_key(key), retries=Retries(tries=1), timeout_seconds=ASK_SECONDS) as operator:
            scopes = tuple(operator.keys.own().scopes)
            if not {"read", "admin"} & set(scopes):
                return RunningFacts(scopes)
            state, statuses = operator.fleet.state(), operator.inventory.status().sessions
    except Refused as error:
        return RunningFacts(refused=f"{error.code}: {error.message}")
    except (PacelineError, LauncherError) as error:
        return RunningFacts(refused=str(error))
    return RunningFacts(scopes, "", state.paused_reason, not state.running, statuses)
