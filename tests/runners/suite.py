"""What every runner has to do, whatever it runs workers on. A subclass gives the runner."""

import asyncio
from typing import Any

from paceline.orchestrator.runners.base import Runner, Seen, WorkerSpec

GRACE_MS = 5_000


def spec(session: str = "s1", instance: str = "i1", **fields: Any) -> WorkerSpec:
    given = {
        "phone": "447700900001",
        "driver": "simulated",
        "generation": 1,
        "webhook_url": "http://127.0.0.1:9",
        "webhook_secret": "secret-of-this-session",
    }
    return WorkerSpec(session_id=session, instance=instance, **{**given, **fields})


async def seen(runner: Runner) -> list[tuple[str, str, int, str]]:
    return sorted((one.session_id, one.instance, one.generation, one.state) for one in await runner.observe())


async def worker(runner: Runner, session: str = "s1") -> Seen:
    [found] = [one for one in await runner.observe() if one.session_id == session]
    return found


class RunnerSuite:
    async def test_a_started_worker_is_seen_with_its_name(self, runner: Runner) -> None:
        await runner.start(spec())
        await runner.start(spec("s2", "i2", generation=7))
        assert await seen(runner) == [("s1", "i1", 1, "running"), ("s2", "i2", 7, "running")]

    async def test_the_same_start_again_starts_nothing(self, runner: Runner) -> None:
        await runner.start(spec())
        before = await runner.observe()
        await runner.start(spec())
        assert await runner.observe() == before

    async def test_another_instance_takes_its_place_and_there_is_never_a_second(self, runner: Runner) -> None:
        await runner.start(spec())
        await runner.start(spec(instance="i2", generation=2))
        assert [one for one in await seen(runner) if one[3] == "running"] == [("s1", "i2", 2, "running")]

    async def test_stopped_it_is_seen_as_ended_until_it_is_removed(self, runner: Runner) -> None:
        await runner.start(spec())
        handle = (await worker(runner)).handle
        await runner.remove(handle)
        assert (await worker(runner)).state == "running"
        await runner.stop(handle, GRACE_MS)
        assert (await worker(runner)).state == "exited"
        await runner.stop(handle, GRACE_MS)
        await runner.remove(handle)
        assert await runner.observe() == []
        await runner.remove(handle)
        await runner.stop(handle, GRACE_MS)

    async def test_a_new_one_begins_over_the_remains_of_the_last(self, runner: Runner) -> None:
        await runner.start(spec())
        await runner.stop((await worker(runner)).handle, GRACE_MS)
        await runner.start(spec(instance="i2"))
        assert ("s1", "i2", 1, "running") in await seen(runner)

    async def test_it_tells_what_they_use_and_what_they_say(self, runner: Runner) -> None:
        await runner.start(spec())
        handle = (await worker(runner)).handle
        async with asyncio.timeout(30):
            # In its very first moment a process uses nothing.
            while not (used := await runner.usage([handle])) or not used["s1"].memory_bytes:  # noqa: ASYNC110
                await asyncio.sleep(0)
        assert used.keys() == {"s1"}
        assert len(await runner.logs("s1", 2)) <= 2
        assert await runner.logs("s9", 2) in ([], ["said", "said"])
