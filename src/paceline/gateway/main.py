"""The gateway process."""

import asyncio

from paceline import compose
from paceline.compose import Parts
from paceline.gateway.app import create_app
from paceline.gateway.intake import Intake
from paceline.kits.tasks import Supervisor
from paceline.kits.web import Service

DEFAULT_PORT = 4000


def main() -> None:
    compose.run("gateway", DEFAULT_PORT, _prepare)


async def _prepare(parts: Parts, _tasks: Supervisor) -> Service:
    strategy = parts.settings.routing_strategy
    intake = Intake(parts.store, parts.rules, parts.rng, strategy=strategy, breathe=lambda: asyncio.sleep(0))
    return create_app(parts.store, intake, parts.keys, parts.clock)


if __name__ == "__main__":
    main()
