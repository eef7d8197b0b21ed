"""The dispatcher process."""

from paceline import compose
from paceline.compose import Parts
from paceline.dispatcher import loops
from paceline.dispatcher.app import create_app
from paceline.kits.service import Service
from paceline.kits.tasks import Supervisor
from paceline.settings import DispatcherSettings

DEFAULT_PORT = 4001


def main() -> None:
    compose.run("dispatcher", DEFAULT_PORT, _prepare, DispatcherSettings)


async def _prepare(parts: Parts, tasks: Supervisor) -> Service:
    engine = loops.Engine.of(parts)
    loops.start(engine, parts, tasks)
    return create_app(
        engine,
        parts.store,
        parts.keys,
        rules=parts.rules,
        clock=parts.clock,
        rng=parts.rng,
        metrics=parts.metrics,
    )


if __name__ == "__main__":
    main()
