"""The Docker runner on a real engine: what every runner does, the container it makes, and an engine that is away."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from paceline.orchestrator.runners.base import RunnerAway, StartRefused
from paceline.orchestrator.runners.container import Containers
from paceline.orchestrator.runners.docker import DockerRunner
from runners.suite import GRACE_MS, RunnerSuite, seen, spec, worker

from .engine import WORKER, Engine

pytestmark = pytest.mark.timeout(900)
"""The first of them builds the images."""

NETWORK = "paceline-test-workers"


def containers(data: Path, **fields: Any) -> Containers:
    given = {
        "fleet": "test", "image": WORKER, "baileys_image": "", "network": NETWORK, "user": "10001:10001",
        "memory_bytes": 256 * 2**20,
        "pids": 64, "data": data, "host_data": data,
    }  # fmt: skip
    return Containers(**{**given, **fields})


@pytest.fixture
async def runner(engine: Engine, tmp_path: Path) -> AsyncIterator[DockerRunner]:
    running = DockerRunner(engine.url, containers(tmp_path))
    yield running
    await running.close()


def inspect(engine: Engine, session: str = "s1") -> dict[str, Any]:
    [found] = json.loads(engine.docker("inspect", f"wa_session_{session}").stdout)
    return dict(found)


async def until_logged(runner: DockerRunner, text: str) -> None:
    async with asyncio.timeout(60):
        while text not in "\n".join(await runner.logs("s1", 100)):  # noqa: ASYNC110 - another process prints it
            await asyncio.sleep(0.1)


class TestDocker(RunnerSuite):
    @pytest.fixture
    async def runner(self, engine: Engine, tmp_path: Path) -> AsyncIterator[DockerRunner]:
        running = DockerRunner(engine.url, containers(tmp_path))
        yield running
        await running.close()


async def test_the_container_is_exactly_that_of_the_specification_and_can_do_no_more(
    runner: DockerRunner, engine: Engine, tmp_path: Path
) -> None:
    await runner.start(spec(proxy_url="http://u:p@10.0.0.1:1"))
    found = inspect(engine)
    host, config = found["HostConfig"], found["Config"]
    assert (found["Name"], config["Image"], config["User"]) == ("/wa_session_s1", WORKER, "10001:10001")
    assert host["RestartPolicy"]["Name"] == "unless-stopped"
    assert (host["ReadonlyRootfs"], host["Privileged"], host["CapDrop"]) == (True, False, ["ALL"])
    assert (host["CapAdd"], host["SecurityOpt"]) == (None, ["no-new-privileges:true"])
    assert (host["Memory"], host["MemorySwap"], host["PidsLimit"]) == (256 * 2**20, 256 * 2**20, 64)
    assert (host["NetworkMode"], list(found["NetworkSettings"]["Networks"])) == (NETWORK, [NETWORK])
    assert host["LogConfig"] == {"Type": "json-file", "Config": {"max-size": "10m", "max-file": "3"}}
    assert list(host["Tmpfs"]) == ["/tmp"]
    assert (host["PidMode"], host["IpcMode"], host["UTSMode"], host["Devices"]) == ("", "private", "", None)
    writable = {mount["Destination"]: mount["Source"] for mount in found["Mounts"] if mount["RW"]}
    assert writable == {
        "/app/sessions/s1": f"{tmp_path}/sessions/s1",
        "/app/ledger": f"{tmp_path}/ledger",
    }
    told = dict(entry.split("=", 1) for entry in config["Env"])
    names = ("SESSION_ID", "PHONE", "PROXY_URL", "WEBHOOK_URL", "WEBHOOK_SECRET", "ENABLE_KEEP_ALIVE", "INSTANCE_ID")
    assert [told[name] for name in names] == [
        "s1", "447700900001", "http://u:p@10.0.0.1:1", "http://127.0.0.1:9", "secret-of-this-session", "true", "i1"
    ]  # fmt: skip
    labels = {name: value for name, value in config["Labels"].items() if name.startswith("paceline.")}
    assert labels == {
        "paceline.fleet": "test", "paceline.session": "s1", "paceline.instance": "i1", "paceline.generation": "1"
    }  # fmt: skip


async def test_inside_it_the_worker_runs_as_nobody_and_can_write_to_its_volume_alone(
    runner: DockerRunner, engine: Engine, tmp_path: Path
) -> None:
    await runner.start(spec())
    await until_logged(runner, "hello not answered")
    assert (tmp_path / "sessions" / "s1" / "journal.jsonl").stat().st_uid == 10001
    assert engine.docker("exec", "wa_session_s1", "id", "-u").stdout.strip() == "10001"
    for place in ("/app/x", "/etc/x", "/opt/paceline/x"):
        assert engine.docker("exec", "wa_session_s1", "touch", place, check=False).returncode != 0
    assert engine.docker("exec", "wa_session_s1", "touch", "/tmp/x", check=False).returncode == 0
    status = engine.docker("exec", "wa_session_s1", "cat", "/proc/1/status").stdout
    assert "NoNewPrivs:\t1" in status
    assert "CapEff:\t0000000000000000" in status
    assert "secret-of-this-session" not in "\n".join(await runner.logs("s1", 1000))


async def test_a_container_that_the_engine_keeps_restarting_has_ended(runner: DockerRunner, engine: Engine) -> None:
    """Its pauses are not ours, and a worker in a circle must be given up some day."""
    await runner.start(spec(webhook_url="nonsense"))
    ends: set[int | None] = set()
    async with asyncio.timeout(60):
        while found := await runner.observe():
            if found[0].state == "exited":
                ends.add(found[0].exit_code)
                # It may run again at this very moment, and then stays until the next look.
                await runner.remove(found[0].handle)
    assert ends == {2}


async def test_a_container_that_was_only_created_is_started_and_not_made_again(
    runner: DockerRunner, engine: Engine, tmp_path: Path
) -> None:
    """Cut off between the two halves of a start."""
    await runner._create(spec())
    assert await seen(runner) == [("s1", "i1", 1, "created")]
    first = (await worker(runner)).handle
    await runner.start(spec())
    assert (await seen(runner), (await worker(runner)).handle) == ([("s1", "i1", 1, "running")], first)


async def test_one_that_was_removed_by_hand_is_not_seen_any_more(runner: DockerRunner, engine: Engine) -> None:
    await runner.start(spec())
    found = await worker(runner)
    engine.docker("rm", "-f", "wa_session_s1")
    assert await runner.observe() == []
    await runner.stop(found.handle, GRACE_MS)
    await runner.remove(found.handle)
    assert await runner.usage([found.handle]) == {}


async def test_starts_at_once_of_the_same_worker_make_one_container(runner: DockerRunner) -> None:
    """Who was too late is told to look again, and finds it done."""
    ended = await asyncio.gather(*(runner.start(spec()) for _ in range(4)), return_exceptions=True)
    assert [error for error in ended if error is not None and not isinstance(error, RunnerAway)] == []
    assert await seen(runner) == [("s1", "i1", 1, "running")]
    await runner.start(spec())


async def test_what_belongs_to_others_is_not_touched(runner: DockerRunner, engine: Engine) -> None:
    engine.docker("run", "-d", "--name", "wa_session_s1", "--entrypoint", "sleep", WORKER, "600")
    assert await runner.observe() == []
    with pytest.raises(StartRefused, match="not ours"):
        await runner.start(spec())
    assert inspect(engine)["State"]["Running"]


async def test_an_image_that_is_not_there_is_named(engine: Engine, tmp_path: Path) -> None:
    runner = DockerRunner(engine.url, containers(tmp_path, image="no-such-image:7"))
    with pytest.raises(StartRefused, match="no-such-image:7"):
        await runner.start(spec())
    assert await runner.observe() == []
    await runner.close()


async def test_an_engine_that_is_away_says_nothing_about_any_worker(tmp_path: Path) -> None:
    runner = DockerRunner(f"unix://{tmp_path}/none.sock", containers(tmp_path))
    for call in (runner.observe, lambda: runner.start(spec()), lambda: runner.stop("x", 1), lambda: runner.remove("x")):
        with pytest.raises(RunnerAway):
            await call()
    await runner.close()
