"""How a command ends that did not end well: a sentence on stderr, and an exit code."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import typer

from paceline.cli.exits import Exit
from paceline.cli.showing import say

if TYPE_CHECKING:
    from paceline.client import PacelineError


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
        fail(f"{error}{_again(error)}", Exit.UNREACHABLE)
    except Unreachable as error:
        again = _again(error) if error.maybe_done else ""
        hint = "Is it running? `paceline up` starts everything; `paceline doctor` looks for the cause."
        fail(f"{error}{again}\n{hint}", Exit.UNREACHABLE)
    except TimedOut as error:
        fail(error, Exit.TIMED_OUT)
    except Unauthorized as error:
        where = "that of --key or API_KEY" if key_is_given else f"the one in {DataDirectory(data_here()).api_key}"
        fail(f"{error}\nThe key was {where}.", Exit.REFUSED)
    except Forbidden as error:
        fail(f"{error}\n`paceline keys self` shows what this key may do.", Exit.REFUSED)
    except Refused as error:
        if error.status < 500:
            fail(error, Exit.REFUSED)
        fail(f"{error}{_again(error)}", Exit.FAILED)
    except PacelineError as error:
        fail(f"{error}{_again(error)}", Exit.FAILED)
    except KeyboardInterrupt:
        raise typer.Exit(Exit.INTERRUPTED) from None


def _again(error: "PacelineError") -> str:
    """Of what sends, and may have been heard although nobody said so: how to repeat it without doing it twice."""
    if error.idempotency_key is None:
        return ""
    key = shlex.quote(error.idempotency_key)
    return f"\nIt may have been accepted all the same. To repeat it safely, add: --idempotency-key {key}"


def fail(message: object, exit_code: int) -> NoReturn:
    say(f"paceline: {message}")
    raise typer.Exit(int(exit_code))
