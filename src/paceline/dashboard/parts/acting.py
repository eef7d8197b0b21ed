"""Asking before, telling after: an operator's action and what came of it."""

from collections.abc import Awaitable
from typing import TypeVar

from nicegui import ui

from paceline.client import PacelineError, Unauthorized, Unreachable
from paceline.dashboard.parts.inputs import button
from paceline.dashboard.parts.page import Visit
from paceline.dashboard.parts.panel import said
from paceline.dashboard.parts.text import text

T = TypeVar("T")


def notify(message: str, *, tone: str = "good") -> None:
    """`tone` is good, bad or plain. Errors stay until they are read."""
    stays = tone == "bad"
    ui.notify(
        message,
        position="bottom-right",
        classes=f"note note--{tone}",
        timeout=0 if stays else 4000,
        close_button="Close" if stays else False,
    )


async def confirm(title: str, words: str, do: str, *, danger: bool = False) -> bool:
    """Whether the operator says yes. Escape and a click beside it say no."""
    with ui.dialog() as dialog, ui.element("div").classes("dialog").props(f'role="document" aria-label="{do}"'):
        text("h2", title)
        text("p", words, "dialog-text")
        with ui.element("div").classes("dialog-buttons"):
            button("Cancel", lambda: dialog.submit(False))
            button(do, lambda: dialog.submit(True), kind="danger" if danger else "main")
    dialog.props(f'aria-label="{do}"')
    answer = bool(await dialog)
    dialog.delete()
    return answer


def undone(error: PacelineError) -> str:
    """Why an action came to nothing, as far as anybody knows: no action is repeated by itself."""
    if not isinstance(error, Unreachable):
        return said(error)
    if error.maybe_done:
        return f"{error}. It may have been done all the same: look before you press again."
    return f"{error}. It was not done."


async def act(visit: Visit, asking: Awaitable[T], done: str = "") -> T | None:
    """The answer; None if it was refused, which the operator is told. Then the page looks again."""
    try:
        answer = await asking
    except Unauthorized:
        await visit.end("key")
        await visit.live.now()
        return None
    except RuntimeError:
        # The visit ended in another tab, which closes its connections.
        if not visit.visitor.ended:
            raise
        await visit.live.now()
        return None
    except PacelineError as error:
        notify(undone(error), tone="bad")
        return None
    if done:
        notify(done)
    await visit.live.now()
    return answer
