"""Workers as containers, through the Docker engine's API.

A session's container has one name, and the engine gives a name once: that is what keeps a second worker away, whoever
asks for it. Labels tell whose it is. The engine restarts a container that dies; one that it keeps restarting counts as
ended here, so that our own pauses and limits hold.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import aiodocker
import aiohttp
import structlog
from aiodocker.containers import DockerContainer
from aiodocker.exceptions import DockerError

from paceline.kits.failpoint import failpoint
from paceline.orchestrator.runners.base import RunnerAway, Seen, StartRefused, Usage, WorkerSpec, generation_of
from paceline.orchestrator.runners.container import (
    FLEET,
    GENERATION,
    INSTANCE,
    NAME,
    SESSION,
    Containers,
    seconds,
)
from paceline.policy.reconcile import State

log = structlog.stdlib.get_logger(__name__)

CALL_SECONDS = 30
STATS_AT_ONCE = 8
_MESSAGE_LIMIT = 300

_STATES: dict[str, State] = {"created": "created", "running": "running", "paused": "running"}
"""All others have ended, or are about to be begun again by the engine."""
_STATUS = re.compile(r"\((-?\d+)\)")
"""`Exited (137) 5 minutes ago`: the list of containers tells the code in no other way."""

NOT_THERE, CONFLICT, NO_ENGINE, BUSY_ENGINE = 404, 409, 900, 503


class DockerRunner:
    def __init__(self, url: str, containers: Containers) -> None:
        self._containers = containers
        # Every call has an end: an engine that accepts and never answers is as good as away.
        self._docker = aiodocker.Docker(url=url, timeout=aiohttp.ClientTimeout(total=CALL_SECONDS))

    def runs(self, driver: str) -> bool:
        return driver != "external"

    async def observe(self) -> list[Seen]:
        ours = json.dumps({"label": [f"{FLEET}={self._containers.fleet}"]})
        async with _translated():
            found = await self._docker.containers.list(all="1", filters=ours)
        return [_seen(container) for container in found]

    async def start(self, spec: WorkerSpec) -> None:
        async with _translated(refused=True):
            if await self._is_running(spec):
                return
            try:
                await self._create(spec)
            except DockerError as error:
                if error.status != CONFLICT:
                    raise
                # Somebody was quicker, with this start or another; the next look shows what became of it.
                raise RunnerAway("the engine is making a container of that name already") from error
            failpoint("container-created")
            await self._named(spec.session_id).start()

    async def stop(self, handle: str, grace_ms: int) -> None:
        container = self._docker.containers.container(handle)
        patience = aiohttp.ClientTimeout(total=seconds(grace_ms) + CALL_SECONDS)
        async with _translated(missing_ok=True):
            await container.stop(t=seconds(grace_ms), timeout=patience)

    async def remove(self, handle: str) -> None:
        async with _translated(missing_ok=True):
            container = await self._docker.containers.get(handle)
            state = container["State"]
            if state["Running"] and not state["Restarting"]:
                return
            await container.delete(force=True)

    async def usage(self, handles: Iterable[str]) -> dict[str, Usage]:
        turns = asyncio.Semaphore(STATS_AT_ONCE)

        async def one(handle: str) -> tuple[str, Usage] | None:
            async with turns, _translated(missing_ok=True):
                # As it is now: the library's own call has the engine wait a second for something to compare it with.
                path, asked = f"containers/{handle}/stats", {"stream": "false", "one-shot": "true"}
                return _usage(await self._docker._query_json(path, params=asked))
            return None

        found = await asyncio.gather(*(one(handle) for handle in handles))
        return dict(pair for pair in found if pair is not None)

    async def logs(self, session_id: str, lines: int) -> list[str]:
        printed: list[str] = []
        async with _translated(missing_ok=True):
            patience = aiohttp.ClientTimeout(total=CALL_SECONDS)
            container = self._named(session_id)
            printed = await container.log(stdout=True, stderr=True, tail=lines, timeout=patience)
        return "".join(printed).splitlines()[-lines:]

    async def close(self) -> None:
        """The containers go on."""
        await self._docker.close()

    def _named(self, session_id: str) -> DockerContainer:
        return self._docker.containers.container(self._containers.name(session_id))

    async def _is_running(self, spec: WorkerSpec) -> bool:
        """Whether this very worker is there already; whatever else has its name makes room."""
        try:
            found = await self._named(spec.session_id).show()
        except DockerError as error:
            if error.status == NOT_THERE:
                return False
            raise
        labels, state = found["Config"]["Labels"] or {}, found["State"]
        if labels.get(FLEET) != self._containers.fleet:
            raise StartRefused(f"{self._containers.name(spec.session_id)} is the name of a container that is not ours")
        if labels.get(INSTANCE) == spec.instance and (state["Running"] or state["Restarting"]):
            return True
        if labels.get(INSTANCE) == spec.instance and state["Status"] == "created":
            # Cut off between the two halves of a start.
            await self._named(spec.session_id).start()
            return True
        log.info("a container makes room for another", session_id=spec.session_id, state=state["Status"])
        if state["Running"]:
            await self.stop(found["Id"], self._containers.grace_ms)
        async with _translated(missing_ok=True):
            await self._docker.containers.container(found["Id"]).delete(force=True)
        return False

    async def _create(self, spec: WorkerSpec) -> None:
        try:
            self._containers.prepare(spec)
        except OSError as error:
            raise StartRefused(f"its volume cannot be made: {error}") from error
        await self._make_network()
        await self._docker.containers.create(self._containers.config(spec), name=self._containers.name(spec.session_id))

    async def _make_network(self) -> None:
        name = self._containers.network
        try:
            await self._docker.networks.get(name)
        except DockerError as error:
            if error.status != NOT_THERE:
                raise
            try:
                asked = {"Name": name, "Driver": "bridge", "CheckDuplicate": True, "Labels": self._network_labels()}
                await self._docker.networks.create(asked)
            except DockerError as conflict:
                # Another start was quicker.
                if conflict.status != CONFLICT:
                    raise

    def _network_labels(self) -> dict[str, str]:
        return {FLEET: self._containers.fleet}


@asynccontextmanager
async def _translated(*, missing_ok: bool = False, refused: bool = False) -> AsyncIterator[None]:
    """The engine's errors as ours. `refused`: what it says no to is a start that cannot be."""
    try:
        yield
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise RunnerAway(f"the Docker engine does not answer: {type(error).__name__}") from error
    except RuntimeError as error:
        # How aiohttp says that we have closed the line ourselves, on the way out.
        raise RunnerAway(str(error)) from error
    except DockerError as error:
        if error.status in (NO_ENGINE, BUSY_ENGINE):
            raise RunnerAway(f"the Docker engine does not answer: {error.message[:_MESSAGE_LIMIT]}") from error
        if missing_ok and error.status in (NOT_THERE, CONFLICT):
            return
        if refused:
            raise StartRefused(f"Docker refuses ({error.status}): {error.message[:_MESSAGE_LIMIT]}") from error
        raise RunnerAway(f"the Docker engine fails ({error.status}): {error.message[:_MESSAGE_LIMIT]}") from error


def _seen(found: DockerContainer) -> Seen:
    labels = found["Labels"]
    code = _STATUS.search(found["Status"])
    state = _STATES.get(found["State"], "exited")
    return Seen(
        labels.get(SESSION, ""),
        labels.get(INSTANCE, ""),
        generation_of(labels.get(GENERATION, "")),
        state,
        found["Id"],
        exit_code=int(code[1]) if code and state == "exited" else None,
        started_at_ms=int(found["Created"]) * 1_000,
    )


def _usage(stats: dict[str, Any]) -> tuple[str, Usage] | None:
    """As `docker stats` counts: pages of files that could be dropped are not in use."""
    memory = stats.get("memory_stats") or {}
    if "usage" not in memory:
        return None
    detail = memory.get("stats") or {}
    droppable = detail.get("inactive_file", detail.get("total_inactive_file", 0))
    cpu_ns = stats["cpu_stats"]["cpu_usage"]["total_usage"]
    name = stats["name"].removeprefix("/").removeprefix(NAME)
    return name, Usage(max(0, memory["usage"] - droppable), cpu_ns / 1e9)
