"""How far a job is: the figure, the bar, when it will be done or why it waits."""

from nicegui import ui
from nicegui.element import Element

from paceline.client import JobStatus
from paceline.dashboard.parts import work
from paceline.dashboard.parts.text import text
from paceline.dashboard.parts.when import When


class Bar(Element, component="standing.js"):
    pass


class Standing:
    def __init__(self) -> None:
        with ui.element("div").classes("standing"):
            with ui.element("div").classes("standing-top"):
                self._chip = text("span", "", "chip")
                with ui.element("p").classes("standing-figure").props('aria-live="polite"'):
                    self._sent = text("span", "")
                    self._of = text("small", "")
                with ui.element("p").classes("standing-end"):
                    self._end_word = text("span", "", "quiet")
                    with ui.element("strong"):
                        self._end = When(None, "clock", none="")
            self._bar = Bar()
            self._why = text("p", "", "why-line")

    def show(self, job: JobStatus) -> None:
        state = work.job_state(job.state)
        self._chip.text = state["text"]
        self._chip.classes(replace=f"chip chip--{state['tone']}")
        self._sent.text = f"{job.progress.sent:,}"
        self._of.text = f" of {job.progress.total:,} sent"
        self._bar.props.update(
            parts=work.progress_parts(job.progress), total=job.progress.total, waiting=work.waiting(job.progress)
        )
        self._bar.update()
        word, end = _end(job)
        self._end_word.text = f"{word} "
        self._end.set(end)
        waits = job.waiting.text if job.waiting else ""
        self._why.text = waits
        self._why.classes(replace=f"why-line {'why-line--warn' if job.state == 'PAUSED' else ''}")
        self._why.set_visibility(bool(waits))


def _end(job: JobStatus) -> tuple[str, int | None]:
    """Said before a time, and the time."""
    if job.closed_at is not None:
        return "Ended", job.closed_at
    if job.estimated_completion is not None:
        return "Done at about", job.estimated_completion
    return ("", None) if job.state == "PAUSED" else ("No end in sight", None)
