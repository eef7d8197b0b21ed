"""How a command ends that did not end well: a sentence on stderr, and an exit code."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from paceline.cli.exits import Exit
from paceline.cli.showing import say


@contextmanager
def translated(*, key_is_given: bool = False) -> Iterator[None]:
    """An error becomes a sentence and an exit code. Whether a key was given decides where a refused one came from."""
    from paceline.client import (
        Forbidden,
        Misused,
        PacelineError,
        Refused,
        TimedOut,
        Unauthorized,
        Unavailable,
        Unreachable,
    )
    from paceline.launcher.data import DataDirectory, data_here
    from paceline.launcher.errors import LauncherError

    try:
        yield
    except LauncherError as error:
        fail(error, error.exit_code)
    except Misused as error:
        fail(error, Exit.USAGE)
    except Unavailable as error:
        fail(error, Exit.UNREACHABLE)
    except Unreachable as error:
        fail(f"{error}\nIs it running? `paceline up` starts everything; `paceline doctor` looks for the cause.", 3)
    except TimedOut as error:
        fail(error, Exit.TIMED_OUT)
    except Unauthorized as error:
        where = "that of --key or API_KEY" if key_is_given else f"the one in {DataDirectory(data_here()).api_key}"
        fail(f"{error}\nThe key was {where}.", Exit.REFUSED)
    except Forbidden as error:
        fail(f"{error}\n`paceline keys self` shows what this key may do.", Exit.REFUSED)
    except Refused as error:
        fail(error, Exit.REFUSED if error.status < 500 else Exit.FAILED)
    except PacelineError as error:
        fail(error, Exit.FAILED)
    except KeyboardInterrupt:
        raise typer.Exit(Exit.INTERRUPTED) from None


def fail(message: object, exit_code: int) -> NoReturn:
    say(f"paceline: {message}")
    raise typer.Exit(int(exit_code))
