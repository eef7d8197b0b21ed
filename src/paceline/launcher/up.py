"""`paceline up`: everything on one machine, started in order, watched, and stopped in reverse.

The composition root of the launcher. `Platform` is the running whole; `run_up` is the command around it.
"""

import asyncio
import contextlib
import os
import shlex
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from types import TracebackType
from typing import Any, Self

from paceline.kits.http import STOP_SIGNALS
from paceline.kits.log_files import rotate
from paceline.kits.logging import configure_logging
from paceline.kits.tasks import Supervisor
from paceline.launcher.children import Child, ChildSpec
from paceline.launcher.client import ApiError, PlatformClient
from paceline.launcher.data import DataDirectory, tail
from paceline.launcher.errors import LauncherError
from paceline.launcher.fake_whatsapp import HOST, FakeWhatsApp, Scanner
from paceline.launcher.preflight import (
    FIRST_PHONE,
    UpOptions,
    add_keys,
    check_fake_whatsapp,
    check_options,
    check_policy,
    check_port,
    check_ports,
    load_up_settings,
)
from paceline.launcher.redis_binary import find_binary
from paceline.launcher.redis_server import RedisServer
from paceline.launcher.services import Processes
from paceline.launcher.workers import stop_workers

# Nothing on one machine takes this long, short of a Redis that loads gigabytes.
READY_SECONDS = 60.0
# A child that died this often before it answered once will not get better by waiting.
DEATHS_BEFORE_GIVING_UP = 3
LOOK_SECONDS = 0.1
LOG_CHECK_SECONDS = 60.0

# Redis writes out what it has in memory buffers before it goes.
REDIS_GRACE_MS = 10_000

# What a shell reports for a command that was interrupted before it had done its work.
INTERRUPTED = 130


def say(message: str) -> None:
    """Progress for the person in front of it; stdout is left to the `ready` line."""
    print(message, file=sys.stderr, flush=True)


class Platform:
    """All processes of one data directory. Leaving the context stops them, however it is left."""

    def __init__(self, options: UpOptions, *, say: Callable[[str], None] = say) -> None:
        self._options = options
        self._say = say
        self._cleanup = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        try:
            self._prepare()
        except BaseException:
            await self._cleanup.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._say("stopping")
        await self._cleanup.aclose()

    def _prepare(self) -> None:
        """All that can be refused is refused here, before anything runs."""
        check_options(self._options)
        settings, missing_keys = load_up_settings(self._options)
        check_fake_whatsapp(self._options, settings)
        self.policy = check_policy(self._options.policy or settings.policy)
        self.data = DataDirectory(settings.data)
        self.data.create()
        self._cleanup.enter_context(self.data.locked())
        self.settings = add_keys(settings, missing_keys, self.data)
        self.api_key = self.settings.api_key.get_secret_value() if self.settings.api_key else ""
        self.whatsapp: FakeWhatsApp | None = None
        if self._options.fake_whatsapp:
            self.whatsapp = FakeWhatsApp(settings.baileys_folder, self.data, settings.fake_whatsapp_port)
            self._cleanup.push_async_callback(self.whatsapp.close)
        self.key_file = self.data.api_key if "api_key" in missing_keys else None

    async def start(self) -> None:
        """Redis, services; returns when all answer and the asked-for numbers are connected. Their workers are the
        orchestrator's."""
        self._say(f"the API key is {f'in {self.key_file}' if self.key_file else 'that of API_KEY'}")
        redis = self._embedded_redis()
        redis_url = redis.url if redis else self.settings.redis_url
        for_workers = self.whatsapp.for_workers() if self.whatsapp else {}
        processes = Processes(
            self.settings, self.data, redis_url=redis_url, policy=self.policy, for_workers=for_workers
        )
        services = processes.services(self._options.dispatchers)
        check_ports(self.settings.host, services)
        self.services = {service.spec.name: service for service in services}
        self.client = PlatformClient(self.api_key, orchestrator=self.services["orchestrator"].url)
        self._cleanup.push_async_callback(self.client.close)
        if redis:
            await self._start_redis(redis)
        if self.whatsapp:
            await self._start_whatsapp(self.whatsapp)
        await self._start_services()
        self._start_housekeeping()
        await self._connect_sessions()

    def log_to_file(self) -> None:
        """The launcher's own log lies with its children's; the file stays open as long as the process lives."""
        stream = self.data.log_file("up").open("a", encoding="utf-8")
        configure_logging("up", self.settings.log_level, secrets=(self.api_key,), stream=stream)

    def ready_line(self) -> str:
        addresses = {name: self.services[name].url for name in ("gateway", "dispatcher", "orchestrator")}
        others = ("dispatcher-", "dashboard")
        addresses |= {name: service.url for name, service in self.services.items() if name.startswith(others)}
        facts = {
            **addresses,
            **({"whatsapp": self.whatsapp.admin_url} if self.whatsapp else {}),
            "sessions": self._options.sessions,
            "data": self.data.root,
            "key-file": self.key_file or "-",
        }
        return "ready " + " ".join(f"{name}={shlex.quote(str(value))}" for name, value in facts.items())

    def _embedded_redis(self) -> RedisServer | None:
        if "redis_url" in self.settings.model_fields_set:
            self._say("using the Redis at REDIS_URL")
            return None
        return RedisServer(self.data, find_binary(self.data.redis))

    async def _start_redis(self, server: RedisServer) -> None:
        self._say(f"starting Redis ({server.binary})")
        child = self._start_child(ChildSpec("redis", server.command(), env={}, grace_ms=REDIS_GRACE_MS))
        self._cleanup.push_async_callback(child.stop)
        await self._wait_for("Redis", server.is_ready, lambda: [child])

    async def _start_whatsapp(self, whatsapp: FakeWhatsApp) -> None:
        self._say(f"starting the fake WhatsApp ({whatsapp.admin_url})")
        for port in whatsapp.ports:
            check_port(HOST, port, "fake WhatsApp", "FAKE_WHATSAPP_PORT")
        child = self._start_child(whatsapp.child({"PATH": os.environ.get("PATH", "")}))
        self._cleanup.push_async_callback(child.stop)
        await self._wait_for("the fake WhatsApp", whatsapp.is_ready, lambda: [child])

    async def _start_services(self) -> None:
        services = list(self.services.values())
        self._say(f"starting {', '.join(self.services)}")
        # Taken down in reverse: the orchestrator ends its workers while it can still hear them; then those it left.
        self._cleanup.push_async_callback(stop_workers, self.data)
        children = [self._start_child(service.spec) for service in services]
        self._cleanup.push_async_callback(_stop_all, children)
        for service, child in zip(services, children, strict=True):
            healthy = partial(self.client.is_healthy, service.url)
            await self._wait_for(service.spec.name, healthy, partial(list, [child]))

    def _start_housekeeping(self) -> None:
        tasks = Supervisor()
        self._cleanup.push_async_callback(tasks.stop)
        tasks.start("log sizes", self._keep_logs_small)
        if self.whatsapp:
            tasks.start("scanner", Scanner(self.client, self.whatsapp, self._options.driver).run)

    async def _connect_sessions(self) -> None:
        driver = self._options.driver
        prefix, more = ("wa", {"proxy": "direct"}) if driver == "baileys" else ("sim", {})
        wanted = {f"{prefix}-{number}": FIRST_PHONE + number - 1 for number in range(1, self._options.sessions + 1)}
        if not wanted:
            return
        self._say(f"connecting {len(wanted)} {driver} {'number' if len(wanted) == 1 else 'numbers'}")
        for session_id, phone in wanted.items():
            await self.client.create_session(session_id, str(phone), driver, **more)

        async def all_connected() -> bool:
            try:
                sessions = await self.client.sessions()
            except ApiError:
                return False
            missing = [s for s in sessions if s["sessionId"] in wanted and s["connection"] != "CONNECTED"]
            awaited = [session for session in missing if _should_run(session)]
            for session in awaited:
                if session.get("starts", 0) >= DEATHS_BEFORE_GIVING_UP:
                    name = f"worker-{session['sessionId']}"
                    raise self._failure(f"{name} keeps dying", name)
            if not awaited:
                self._tell_of_those_away(missing)
            return not awaited

        # Each worker is a process to start, and some have to be linked; on a small machine a hundred take their time.
        seconds = READY_SECONDS + 3 * len(wanted)
        await self._wait_for("the sessions to connect", all_connected, lambda: [], seconds)

    def _tell_of_those_away(self, sessions: list[dict[str, Any]]) -> None:
        for session in sessions:
            reason = session.get("failedReason") or session["connection"]
            self._say(f"{session['sessionId']} is not connected ({reason}); it stays so until somebody starts it")

    def _start_child(self, spec: ChildSpec) -> Child:
        child = Child(spec, self.data, self._say)
        child.start()
        return child

    async def _wait_for(
        self,
        what: str,
        is_true: Callable[[], Awaitable[bool]],
        watched: Callable[[], list[Child]],
        seconds: float = READY_SECONDS,
    ) -> None:
        """Wait with a bound, and not even that long if one of the watched children will not come up."""
        try:
            async with asyncio.timeout(seconds):
                while not await is_true():
                    for child in watched():
                        if child.deaths >= DEATHS_BEFORE_GIVING_UP:
                            raise self._failure(f"{child.spec.name} keeps dying", child.spec.name)
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError:
            names = [child.spec.name for child in watched()] or ["up"]
            raise self._failure(f"waited {seconds:.0f} s for {what}", names[0]) from None

    def _failure(self, problem: str, child: str) -> LauncherError:
        path = self.data.log_file(child)
        return LauncherError(f"{problem}; the end of {path}:\n{tail(path)}")

    async def _keep_logs_small(self) -> None:
        while True:
            for path in self.data.log.glob("*.log"):
                # The orchestrator minds those of its workers.
                if not path.name.startswith("worker-"):
                    rotate(path)
            await asyncio.sleep(LOG_CHECK_SECONDS)


def _should_run(session: dict[str, Any]) -> bool:
    """What an operator stopped, or the platform ended, is no reason to keep all others from running."""
    is_over = session["connection"] == "FAILED" or session["authorisation"] == "LOGGED_OUT"
    return session["desired"] == "running" and not is_over and session["restriction"] != "QUARANTINED"


async def run_up(options: UpOptions, after_ready: Callable[[Platform], Awaitable[int | None]] | None = None) -> int:
    """Run until SIGINT or SIGTERM; the exit code.

    `after_ready` takes the place of the `ready` line. If it returns an exit code, that is the end; None stays up.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stop.set)
    async with Platform(options) as platform:
        platform.log_to_file()
        if not await _unless_stopped(platform.start(), stop):
            return INTERRUPTED
        if after_ready is None:
            print(platform.ready_line(), flush=True)
        else:
            work = asyncio.ensure_future(after_ready(platform))
            if not await _unless_stopped(work, stop):
                return INTERRUPTED
            if (exit_code := work.result()) is not None:
                return exit_code
        await stop.wait()
        return 0


async def _unless_stopped(work: Awaitable[object], stop: asyncio.Event) -> bool:
    """Whether the work came to its end before somebody asked to stop; what it raised is raised."""
    running = asyncio.ensure_future(work)
    stopped = asyncio.ensure_future(stop.wait())
    await asyncio.wait({running, stopped}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if running.done():
        running.result()
        return True
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return False


async def _stop_all(children: list[Child]) -> None:
    await asyncio.gather(*(child.stop() for child in children))
