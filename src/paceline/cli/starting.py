"""The first run, and each service on its own."""

import asyncio
import importlib
import sys
from collections.abc import Coroutine
from typing import Annotated, Any

import typer

from paceline.cli.ending import fail
from paceline.cli.exits import Exit
from paceline.domain.errors import ConfigError

ENVIRONMENT = """
Environment:

- PACELINE_DATA (./data): all state lies below it; the demo's is in ./data/demo always
- API_KEY (generated once, into $PACELINE_DATA/api-key)
- GATEWAY_PORT (4000), DISPATCHER_PORT (4001), ORCHESTRATOR_PORT (3000), DASHBOARD_PORT (8080)
- REDIS_URL (unset: an embedded Redis is started; the demo has that one only)
- FAKE_WHATSAPP_PORT (8090): the first of three for --fake-whatsapp
"""

Policy = Annotated[
    str | None,
    typer.Option(metavar="NAME|FILE", help="Pace and limits: default, distribution, demo, or a TOML file."),
]


def up(
    sessions: Annotated[int, typer.Option(metavar="N", help="Create and connect N numbers.")] = 0,
    policy: Policy = None,
    driver: Annotated[
        str, typer.Option(metavar="NAME", help="How those numbers send: simulated or baileys.")
    ] = "simulated",
    fake_whatsapp: Annotated[
        bool, typer.Option("--fake-whatsapp", help="With baileys: a fake WhatsApp on this machine, linked by itself.")
    ] = False,
    dispatchers: Annotated[int, typer.Option(metavar="N", help="How many dispatchers share the work.")] = 1,
) -> None:
    """Run the whole platform on this machine.

    Redis, gateway, dispatcher, orchestrator and a worker for each number, as separate processes. Prints one line that
    begins with **ready** when all of them answer, restarts what dies, and stops cleanly on Ctrl-C. Started
    again on the same data it goes on where it was.

    Example: `paceline up --sessions 3 --policy demo`
    """
    from paceline.launcher.preflight import UpOptions
    from paceline.launcher.up import run_up

    sys.exit(_run_launcher(run_up(UpOptions(sessions, policy, driver, dispatchers, fake_whatsapp=fake_whatsapp))))


def demo(
    exit_when_done: Annotated[
        bool, typer.Option("--exit", help="Stop when the job is done, instead of staying up.")
    ] = False,
) -> None:
    """See it work: three simulated numbers, 200 messages, a progress bar.

    Afterwards everything stays up for you to try the API, until Ctrl-C.

    Example: `paceline demo --exit`
    """
    from rich.console import Console

    from paceline.launcher.data import DEMO_DATA
    from paceline.launcher.demo import SESSIONS, Demo
    from paceline.launcher.preflight import UpOptions
    from paceline.launcher.up import run_up

    options = UpOptions(sessions=SESSIONS, policy="demo", data=DEMO_DATA, is_demo=True)
    sys.exit(_run_launcher(run_up(options, Demo(Console(), exit_when_done=exit_when_done))))


def gateway() -> None:
    """The public API: takes jobs and messages, tells how they are doing (port 4000).

    Example: `paceline gateway`
    """
    _run_service("gateway")


def dispatcher() -> None:
    """Spreads jobs over the numbers and keeps each number's pace (port 4001). Run as many as you like.

    Example: `paceline dispatcher`
    """
    _run_service("dispatcher")


def orchestrator() -> None:
    """Knows the sessions, hands tasks to their workers and settles the results (port 3000).

    Example: `paceline orchestrator`
    """
    _run_service("orchestrator")


def worker() -> None:
    """Holds one session and sends its messages. Needs SESSION_ID, PHONE, WEBHOOK_URL, WEBHOOK_SECRET.

    Example: `paceline worker`
    """
    _run_service("worker")


def dashboard() -> None:
    """The fleet in a browser, for operators: log in with an API key (port 8080).

    Example: `paceline dashboard`
    """
    _run_service("dashboard")


def _run_service(package: str) -> None:
    entry = importlib.import_module(f"paceline.{package}.main").main
    try:
        sys.exit(entry())
    except ConfigError as error:
        fail(error, Exit.USAGE)


def _run_launcher(work: Coroutine[Any, Any, int]) -> int:
    from paceline.launcher.errors import LauncherError

    try:
        return asyncio.run(work)
    except LauncherError as error:
        fail(error, error.exit_code)
    except ConfigError as error:
        fail(error, Exit.USAGE)
