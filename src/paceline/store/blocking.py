"""A link that blocks until Redis has answered. For the World, whose steps must end before the next one begins."""

from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from paceline.store.client import Command
from paceline.store.scripts import Script


class BlockingRedis:
    def __init__(self, socket_path: str, database: int = 0) -> None:
        self._redis = redis.Redis(
            unix_socket_path=socket_path, db=database, decode_responses=True, retry=Retry(NoBackoff(), 0)
        )
        self._loaded: set[str] = set()

    def run(self, script: Script, argument: str) -> Any:
        if script.sha not in self._loaded:
            self._redis.script_load(script.source)
            self._loaded.add(script.sha)
        return self._redis.evalsha(script.sha, 0, argument)

    def read(self, *commands: Command) -> list[Any]:
        pipeline: Any = self._redis.pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*command)
        found: list[Any] = pipeline.execute()
        return found

    def answers(self) -> bool:
        """Whether the server is there yet."""
        try:
            return bool(self._redis.ping())
        except redis.ConnectionError:
            return False

    def flush(self) -> None:
        self._redis.flushdb()

    def close(self) -> None:
        self._redis.close()
