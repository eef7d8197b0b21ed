"""Other queue engines completing tasks of 200 bytes, one worker, nothing to do in each. Run by `bench/peers.py` with
the interpreter of an environment of its own (`requirements.txt`), as `engines.py <engine> <redis socket> <tasks>`.

All tasks are added first. `taking` is printed when the worker begins to take them, `done` when the last one has been
executed; then the worker idles until it is ended. Settings are each engine's own but for those named here; loops are
uvloop's.
"""

import asyncio
import itertools
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine

TEXT = "x" * 200
TOGETHER = 500
"""Tasks added at once, where an engine can."""


def say(word: str) -> None:
    # Not by print: Celery takes sys.stdout for its log.
    os.write(1, f"{word}\n".encode())


class Counter:
    """Counts executions, from any thread."""

    def __init__(self, tasks: int) -> None:
        self._numbers = itertools.count(1)
        self._tasks = tasks

    def __call__(self) -> None:
        if next(self._numbers) == self._tasks:
            say("done")


def celery(socket: str, tasks: int) -> None:
    from celery import Celery
    from celery.signals import worker_ready

    app = Celery("bench", broker=f"redis+socket://{socket}")
    count = Counter(tasks)

    @app.task(name="send", ignore_result=True)
    def send(text: str) -> None:
        count()

    with app.connection_for_write() as connection, app.amqp.Producer(connection) as producer:
        for _ in range(tasks):
            send.apply_async((TEXT,), producer=producer)
    worker_ready.connect(lambda **_: say("taking"), weak=False)
    # What it does for other workers is not ours to count.
    alone = ["--without-mingle", "--without-gossip", "--without-heartbeat"]
    app.worker_main(["--quiet", "worker", "--pool=solo", "--loglevel=error", *alone])


def dramatiq(socket: str, tasks: int) -> None:
    os.environ["dramatiq_queue_prefetch"] = "200"  # noqa: SIM112 - that is its name
    import dramatiq
    from dramatiq.brokers.redis import RedisBroker

    broker = RedisBroker(url=f"unix://{socket}")
    count = Counter(tasks)

    @dramatiq.actor(broker=broker)
    def send(text: str) -> None:
        count()

    for _ in range(tasks):
        send.send(TEXT)
    say("taking")
    dramatiq.Worker(broker, worker_threads=4).start()
    # Its threads work on.
    sys.stdin.read()


async def taskiq(socket: str, tasks: int) -> None:
    from taskiq.api import run_receiver_task
    from taskiq_redis import RedisStreamBroker

    broker = RedisStreamBroker(f"unix://{socket}")
    count = Counter(tasks)

    @broker.task
    async def send(text: str) -> None:
        count()

    await broker.startup()
    await _add(tasks, lambda: send.kiq(TEXT))
    say("taking")
    await run_receiver_task(broker, max_async_tasks=100)


async def saq(socket: str, tasks: int) -> None:
    from saq import Worker
    from saq.queue.redis import RedisQueue

    queue = RedisQueue.from_url(f"unix://{socket}")
    count = Counter(tasks)

    async def send(ctx: object, *, text: str) -> None:
        count()

    await _add(tasks, lambda: queue.enqueue("send", text=TEXT))
    say("taking")
    await Worker(queue, [("send", send)], concurrency=30).start()


async def arq(socket: str, tasks: int) -> None:
    from arq import Worker, create_pool, func
    from arq.connections import RedisSettings

    pool = await create_pool(RedisSettings(unix_socket_path=socket))
    count = Counter(tasks)

    async def send(ctx: object, text: str) -> None:
        count()

    await _add(tasks, lambda: pool.enqueue_job("send", TEXT))
    worker = Worker([func(send, name="send")], redis_pool=pool, max_jobs=50, poll_delay=0.01, handle_signals=False)
    say("taking")
    await worker.async_run()


async def _add(tasks: int, one: Callable[[], Awaitable[object]]) -> None:
    for start in range(0, tasks, TOGETHER):
        await asyncio.gather(*[one() for _ in range(start, min(start + TOGETHER, tasks))])


BLOCKING: dict[str, Callable[[str, int], None]] = {"celery": celery, "dramatiq": dramatiq}
ASYNC: dict[str, Callable[[str, int], Coroutine[object, object, None]]] = {"taskiq": taskiq, "saq": saq, "arq": arq}


def main() -> None:
    engine, socket, tasks = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if engine in BLOCKING:
        BLOCKING[engine](socket, tasks)
    else:
        import uvloop

        uvloop.run(ASYNC[engine](socket, tasks))


if __name__ == "__main__":
    main()
