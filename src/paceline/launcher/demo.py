"""`paceline demo`: the whole platform, three simulated numbers, a job of 200 contacts, and what to do next.

A client like any other: it posts the job with `paceline.client` and reads its progress there.
"""

from collections.abc import AsyncIterator

from rich import progress as bars
from rich.console import Console

from paceline.client import AsyncPaceline, Contact, JobStatus, PacelineError, Progress, TimedOut
from paceline.launcher.errors import LauncherError
from paceline.launcher.up import Platform

SESSIONS = 3
CONTACTS = 200
FIRST_CONTACT = 447700900100
NAMES = ("Ada", "Grace", "Alan", "Edsger", "Barbara", "Donald", "Margaret", "Tony", "Radia", "Leslie")

# Afterwards: twenty a minute, for three hours.
TRICKLE = 3_600
TRICKLE_MINUTES = 180

LOOK_SECONDS = 0.25
# Lines of a log, where no bar can be drawn: often enough to see that it moves.
LINE_SECONDS = 2.0
# The demo's pace needs some ten seconds; whoever waits for minutes should be told that something is wrong.
LIMIT_SECONDS = 300.0


def demo_contacts(count: int = CONTACTS, *, first: int = FIRST_CONTACT) -> list[Contact]:
    return [Contact(str(first + index), {"name": NAMES[index % len(NAMES)]}) for index in range(count)]


class Demo:
    """Runs once the platform is ready; `exit_when_done` decides between an exit code and staying up."""

    def __init__(self, console: Console, *, exit_when_done: bool) -> None:
        self._console = console
        self._exit_when_done = exit_when_done

    async def __call__(self, platform: Platform) -> int | None:
        try:
            # A gateway that is being restarted meanwhile is asked again by the client itself.
            async with AsyncPaceline(platform.services["gateway"].url, platform.api_key) as gateway:
                job = await self._send(gateway)
                if not self._exit_when_done:
                    await self._go_on(gateway)
        except TimedOut as error:
            raise LauncherError(f"the job did not end in {LIMIT_SECONDS:.0f} s; see {platform.data.log}") from error
        except PacelineError as error:
            raise LauncherError(str(error)) from error
        self._summarise(platform, job)
        if self._exit_when_done:
            return 0 if job.state == "DONE" else 1
        self._invite(platform)
        return None

    async def _send(self, gateway: AsyncPaceline) -> JobStatus:
        accepted = await gateway.jobs.create(demo_contacts(), text="Hello {{name}}, your table is ready.")
        self._say(f"job {accepted.job_id}: {accepted.accepted} contacts accepted, {SESSIONS} numbers sending")
        looks = gateway.jobs.watch(accepted.job_id, timeout_seconds=LIMIT_SECONDS, every_seconds=LOOK_SECONDS)
        if self._console.is_terminal:
            return await self._show_bar(looks)
        return await self._show_lines(looks)

    async def _go_on(self, gateway: AsyncPaceline) -> None:
        """Something to look at: a few messages a minute for as long as anybody plays with it."""
        await gateway.jobs.create(
            demo_contacts(TRICKLE, first=FIRST_CONTACT + CONTACTS),
            text="Hello {{name}}, see you tomorrow.",
            spread_minutes=TRICKLE_MINUTES,
            strategy="round_robin",
            tags=["demo"],
        )

    async def _show_bar(self, looks: AsyncIterator[JobStatus]) -> JobStatus:
        columns = (
            bars.TextColumn("sending"),
            bars.BarColumn(),
            bars.MofNCompleteColumn(),
            bars.TextColumn("{task.fields[receipts]}"),
            bars.TimeElapsedColumn(),
        )
        with bars.Progress(*columns, console=self._console) as bar:
            task = bar.add_task("sending", total=CONTACTS, receipts="")
            async for job in looks:
                done = job.progress
                bar.update(task, total=done.total, completed=done.sent, receipts=_receipts(done))
        return job

    async def _show_lines(self, looks: AsyncIterator[JobStatus]) -> JobStatus:
        number = 0
        async for job in looks:
            if job.ended or number % round(LINE_SECONDS / LOOK_SECONDS) == 0:
                self._say(f"sent {job.progress.sent}/{job.progress.total}, {_receipts(job.progress)}")
            number += 1
        return job

    def _summarise(self, platform: Platform, job: JobStatus) -> None:
        gateway = platform.services["gateway"].url
        key = f"$(cat {platform.key_file})" if platform.key_file else "$API_KEY"
        self._say(f"\n{job.state}: {job.progress.sent} of {job.progress.total} messages sent\n")
        self._say("What the simulated WhatsApp received, one line each:")
        for number in range(1, SESSIONS + 1):
            self._say(f"  {platform.data.ledger / f'sim-{number}.jsonl'}")
        self._say("\nAddresses (each has /docs):")
        for name, service in platform.services.items():
            if name != "dashboard":
                self._say(f"  {name:<13} {service.url}")
        self._say("\nSend the next message yourself:")
        self._say(
            f'  curl -X POST {gateway}/api/v1/send -H "X-API-KEY: {key}" '
            "-H 'Content-Type: application/json' \\\n"
            f'    -d \'{{"to": "{FIRST_CONTACT + CONTACTS}", "message": "Hello from my first message"}}\''
        )

    def _invite(self, platform: Platform) -> None:
        """The last that is said, so that it is what one reads."""
        if dashboard := platform.services.get("dashboard"):
            self._say(f"\nLook at it, a few messages a minute go on: {dashboard.url}")
            self._say(f"  log in with the key in {platform.key_file}" if platform.key_file else "  log in with API_KEY")
        self._say("\nIt stays up until you press Ctrl-C.")

    def _say(self, line: str) -> None:
        # Neither wrapped nor coloured: paths and the curl line are there to be copied.
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def _receipts(done: Progress) -> str:
    return f"delivered {done.delivered}, read {done.read}, failed {done.failed}"
