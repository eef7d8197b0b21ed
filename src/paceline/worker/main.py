"""The worker process: wires the core to HTTP, files and signals, and ends with the status its runner acts on.

0 stopped as asked · 1 something is wrong, start me again later · 2 bad environment · 3 another instance is wanted ·
4 another worker has the volume · 5 no orchestrator answered for ORPHAN_MS.
"""

import asyncio
import contextlib
import os
import signal
import sys
import uuid

import structlog

from paceline.domain.errors import ConfigError
from paceline.kits.clock import Clock, SystemClock, monotonic_ms
from paceline.kits.logging import configure_logging
from paceline.kits.rng import Rng, new_rng
from paceline.worker.core import EXIT_DONE, EXIT_REFUSED, EXIT_REPLACED, Exit, WorkerCore
from paceline.worker.drivers.base import Driver
from paceline.worker.drivers.config import BehaviourFile
from paceline.worker.drivers.ledger import FileLedger
from paceline.worker.drivers.simulated import SimulatedDriver
from paceline.worker.drivers.whatsapp import WhatsApp
from paceline.worker.environment import Environment, read_environment
from paceline.worker.journal import FileJournal
from paceline.worker.poster import PING_EVERY_MS
from paceline.worker.protocol_http import HttpProtocol
from paceline.worker.volume import Volume, VolumeForeign, VolumeTaken

log = structlog.stdlib.get_logger(__name__)

# Enough for a server's ack, and half of what docker grants before it kills.
_STOP_GRACE_SECONDS = 5.0
_FAREWELL_SECONDS = 2.0
_ORPHAN_LOOK_SECONDS = 0.5

EXIT_TAKEN = 4
EXIT_ORPHANED = 5


class SteadyClock:
    """The host's time at the start, carried on by the monotonic clock: what is measured between two answers of
    the orchestrator must not change because somebody sets the host's clock."""

    def __init__(self) -> None:
        self._offset_ms = SystemClock().now_ms() - monotonic_ms()

    def now_ms(self) -> int:
        return monotonic_ms() + self._offset_ms

    async def sleep_ms(self, ms: int) -> None:
        await asyncio.sleep(max(0, ms) / 1000)


class AsyncioWake:
    """Sleep that ends at once for everybody who waits when somebody notifies."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    async def wait_ms(self, ms: int) -> None:
        # Not `wait_for`: before Python 3.12 it forgets a cancellation that comes together with the notification.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ms / 1000):
                await self._event.wait()

    def notify(self) -> None:
        self._event.set()
        self._event = asyncio.Event()


def main() -> None:
    try:
        env = read_environment(os.environ)
    except ConfigError as error:
        print(f"worker: {error}", file=sys.stderr)
        raise SystemExit(2) from error
    configure_logging("worker", env.log_level, secrets=(env.webhook_secret,))
    structlog.contextvars.bind_contextvars(session_id=env.session_id)
    raise SystemExit(asyncio.run(hold_session(env)))


async def hold_session(env: Environment) -> int:
    """Hold the session until a signal, or until another instance is wanted; the exit status."""
    try:
        about = {"instance": env.instance_id, "generation": str(env.generation)}
        volume = Volume(env.volume, about, phone=env.phone)
    except VolumeTaken as error:
        log.error("another worker has the volume", volume=str(env.volume), reason=str(error))
        return EXIT_TAKEN
    except VolumeForeign as error:
        log.error("the volume is not this number's", volume=str(env.volume), reason=str(error))
        return EXIT_REFUSED
    try:
        return await _hold(env)
    finally:
        volume.close()


async def _hold(env: Environment) -> int:
    clock, rng = SteadyClock(), new_rng()
    protocol = HttpProtocol(env.webhook_url, env.session_id, env.webhook_secret)
    journal = FileJournal.open(env.volume, new_id=lambda: uuid.uuid4().hex, now_ms=clock.now_ms)
    core = WorkerCore(
        session_id=env.session_id,
        instance_id=env.instance_id,
        life_id=uuid.uuid4().hex,
        protocol=protocol,
        driver=simulated_driver(env, clock, rng),
        journal=journal,
        clock=clock,
        rng=rng,
        wake=AsyncioWake(),
        ping_every_ms=PING_EVERY_MS if env.keep_alive else 0,
    )
    try:
        return await _work_until_signalled(core, protocol, env.orphan_ms)
    finally:
        journal.close()
        await protocol.close()


def simulated_driver(env: Environment, clock: Clock, rng: Rng) -> Driver:
    ledger = FileLedger(env.data / "ledger", env.session_id)
    behaviour = BehaviourFile(env.data / "simulated.toml", env.session_id)
    whatsapp = WhatsApp(env.session_id, behaviour.current(), banned=ledger.banned, account=ledger.account)
    return SimulatedDriver(whatsapp, ledger, clock=clock, rng=rng, wake=AsyncioWake(), behaviour=behaviour.current)


async def _work_until_signalled(core: WorkerCore, protocol: HttpProtocol, orphan_ms: int) -> int:
    asked_to_stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, asked_to_stop.set)
    run = asyncio.create_task(core.run(), name="run")
    pump = asyncio.create_task(core.pump_events(), name="pump")
    post = asyncio.create_task(core.post_events(), name="post")
    stop = asyncio.create_task(asked_to_stop.wait(), name="stop")
    alone = asyncio.create_task(_until_orphaned(protocol, orphan_ms), name="alone")
    await asyncio.wait({run, pump, post, stop, alone}, return_when=asyncio.FIRST_COMPLETED)
    if stop.done() and not run.done():
        core.request_stop()
        # Who only waits for a task has nothing to finish; who holds one gets time to finish or give it back.
        await asyncio.wait({run}, timeout=0 if core.polling else _STOP_GRACE_SECONDS)
    is_orphan = alone.done() and not run.done()
    code = EXIT_ORPHANED if is_orphan else _status(run, pump, post)
    for task in (run, pump, post, stop, alone):
        task.cancel()
    await asyncio.gather(run, pump, post, stop, alone, return_exceptions=True)
    if is_orphan:
        log.warning("no orchestrator answers; ending", orphan_ms=orphan_ms)
        return code
    if code != EXIT_REPLACED:
        # A replaced worker says nothing: its word would be taken for its successor's.
        await _say_farewell(core)
    return code


def _status(run: asyncio.Task[Exit], *others: asyncio.Task[None]) -> int:
    for task in (run, *others):
        error = task.exception() if task.done() and not task.cancelled() else None
        if error is not None:
            log.error("the worker failed", task=task.get_name(), exc_info=error)
            return EXIT_REFUSED
    if not run.done():
        return EXIT_DONE
    ended = run.result()
    log.info("the worker ended", code=ended.code, reason=ended.reason)
    return ended.code


async def _until_orphaned(protocol: HttpProtocol, orphan_ms: int) -> None:
    """Returns when nobody has answered for that long; never with 0."""
    while not orphan_ms or protocol.unanswered_ms() < orphan_ms:  # noqa: ASYNC110 - silence rings no bell
        await asyncio.sleep(_ORPHAN_LOOK_SECONDS)


async def _say_farewell(core: WorkerCore) -> None:
    try:
        await asyncio.wait_for(core.farewell(), _FAREWELL_SECONDS)
    except TimeoutError:
        log.info("the orchestrator did not hear the farewell")


if __name__ == "__main__":
    main()
