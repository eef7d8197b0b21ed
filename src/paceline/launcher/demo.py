"""`paceline demo`: the whole platform, three simulated numbers, a job of 200 contacts, and what to do next.

A client like any other: it posts the job to the public API and reads its progress there.
"""

import asyncio
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from paceline.launcher.client import ApiError
from paceline.launcher.errors import LauncherError
from paceline.launcher.up import Platform

SESSIONS = 3
CONTACTS = 200
FIRST_CONTACT = 447700900100
NAMES = ("Ada", "Grace", "Alan", "Edsger", "Barbara", "Donald", "Margaret", "Tony", "Radia", "Leslie")

ENDED = frozenset({"DONE", "DONE_WITH_ERRORS", "CANCELED", "FAILED"})
LOOK_SECONDS = 0.25
# Lines of a log, where no bar can be drawn: often enough to see that it moves.
LINE_SECONDS = 2.0
# The demo's pace needs some ten seconds; whoever waits for minutes should be told that something is wrong.
LIMIT_SECONDS = 300.0

# How many looks in a row may fail while a service restarts, before we say so.
PATIENCE = 40


def demo_job() -> dict[str, Any]:
    contacts = [
        {"to": str(FIRST_CONTACT + index), "vars": {"name": NAMES[index % len(NAMES)]}} for index in range(CONTACTS)
    ]
    return {"mode": "message", "text": "Hello {{name}}, your table is ready.", "contacts": contacts}


class Demo:
    """Runs once the platform is ready; `exit_when_done` decides between an exit code and staying up."""

    def __init__(self, console: Console, *, exit_when_done: bool) -> None:
        self._console = console
        self._exit_when_done = exit_when_done

    async def __call__(self, platform: Platform) -> int | None:
        accepted = await platform.client.post_job(demo_job())
        job_id = accepted["jobId"]
        self._say(f"job {job_id}: {accepted.get('accepted', CONTACTS)} contacts accepted, {SESSIONS} numbers sending")
        try:
            async with asyncio.timeout(LIMIT_SECONDS):
                job = await self._watch(platform, job_id)
        except TimeoutError:
            raise LauncherError(f"job {job_id} did not end in {LIMIT_SECONDS:.0f} s; see {platform.data.log}") from None
        self._summarise(platform, job)
        if self._exit_when_done:
            return 0 if job["state"] == "DONE" else 1
        self._say("\nIt stays up until you press Ctrl-C.")
        return None

    async def _watch(self, platform: Platform, job_id: str) -> dict[str, Any]:
        if self._console.is_terminal:
            return await self._watch_with_bar(platform, job_id)
        return await self._watch_with_lines(platform, job_id)

    async def _watch_with_bar(self, platform: Platform, job_id: str) -> dict[str, Any]:
        columns = (
            TextColumn("sending"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[receipts]}"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self._console) as bar:
            task = bar.add_task("sending", total=CONTACTS, receipts="")
            while True:
                job = await _look(platform, job_id)
                progress = job["progress"]
                bar.update(task, total=progress["total"], completed=progress["sent"], receipts=_receipts(progress))
                if job["state"] in ENDED:
                    return job
                await asyncio.sleep(LOOK_SECONDS)

    async def _watch_with_lines(self, platform: Platform, job_id: str) -> dict[str, Any]:
        looks = 0
        while True:
            job = await _look(platform, job_id)
            progress = job["progress"]
            ended = job["state"] in ENDED
            if ended or looks % round(LINE_SECONDS / LOOK_SECONDS) == 0:
                self._say(f"sent {progress['sent']}/{progress['total']}, {_receipts(progress)}")
            if ended:
                return job
            looks += 1
            await asyncio.sleep(LOOK_SECONDS)

    def _summarise(self, platform: Platform, job: dict[str, Any]) -> None:
        gateway = platform.services["gateway"].url
        key = f"$(cat {platform.key_file})" if platform.key_file else "$API_KEY"
        self._say(f"\n{job['state']}: {job['progress']['sent']} of {job['progress']['total']} messages sent\n")
        self._say("What the simulated WhatsApp received, one line each:")
        for number in range(1, SESSIONS + 1):
            self._say(f"  {platform.data.ledger / f'sim-{number}.jsonl'}")
        self._say("\nAddresses (each has /docs):")
        for name, service in platform.services.items():
            self._say(f"  {name:<13} {service.url}")
        self._say("\nSend the next message yourself:")
        self._say(
            f'  curl -X POST {gateway}/api/v1/send -H "X-API-KEY: {key}" '
            "-H 'Content-Type: application/json' \\\n"
            f'    -d \'{{"to": "{FIRST_CONTACT + CONTACTS}", "message": "Hello from my first message"}}\''
        )

    def _say(self, line: str) -> None:
        # Neither wrapped nor coloured: paths and the curl line are there to be copied.
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


async def _look(platform: Platform, job_id: str) -> dict[str, Any]:
    """The job as it is; a gateway that is being restarted is given a moment."""
    for _ in range(PATIENCE - 1):
        try:
            return await platform.client.job(job_id)
        except ApiError:
            await asyncio.sleep(LOOK_SECONDS)
    return await platform.client.job(job_id)


def _receipts(progress: dict[str, Any]) -> str:
    return ", ".join(f"{name} {progress.get(name, 0)}" for name in ("delivered", "read", "failed"))
