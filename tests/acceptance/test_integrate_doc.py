"""docs/integrate.md works as it stands: its blocks are cut out and run, in each of its four languages, against one
platform; and a whole flow of a program that uses `paceline.client` while the gateway is killed under it."""

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from needed import skip_if
from paceline.client import Contact, Event, Paceline
from paceline.domain.codes import CODES

from .api import Client, people
from .platform import API_KEY, PACELINE, TEXT_CANARY, Platform, free_ports, wait_for

PLATFORM = {"sessions": 3, "policy": "demo", "env": {"WEBHOOK_ALLOW_PRIVATE": "true"}}

PAGE = Path(__file__).parents[2] / "docs" / "integrate.md"
PORT = "8099"
"""Of the page's receivers; each run has one of its own."""
SUPPRESSED = {"447700900398", "447700900399"}
RUN_SECONDS = 240

TRACKS = {
    "bash": ["bash", "-euo", "pipefail"],
    "python": [sys.executable],
    "python plain": [sys.executable],
    "js": ["node"],
}
ENDINGS = {"bash": "sh", "python": "py", "python plain": "py", "js": "mjs"}
NOT_RUN = {"console"}
"""What is shown and not run: starting the platform, which the fixture does with the same words."""

SAID = (
    "message: sent",
    "accepted:",
    "live: job.done",
    "again: the same",
    "refused: INVALID_NUMBER",
    "file: DONE",
)
SENT = {
    "447700900301": ["Your order 7 is on its way."],
    "447700900302": ["Hello Ada, your table is ready."],
    "447700900303": ["Hello Grace, your table is ready."],
    "447700900304": ["Hello Alan"],
    "447700900305": ["Hello Edsger"],
    "447700900306": ["Your parcel has arrived."],
    "447700900307": ["Today's menu"],
}
"""What one run of the page sends; the shell has no receiver, and so no parcel."""


@dataclass(frozen=True)
class Block:
    section: str
    kind: str
    code: str


def blocks(text: str) -> list[Block]:
    found, section = [], ""
    pattern = re.compile(r"^## (?P<section>[^\n]*)$|^```(?P<kind>[^\n]+)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
    for match in pattern.finditer(text):
        section = match["section"] or section
        if match["kind"]:
            found.append(Block(section, match["kind"], match["code"]))
    return found


BLOCKS = blocks(PAGE.read_text())


def test_every_step_is_shown_in_every_language() -> None:
    steps = [line[3:] for line in PAGE.read_text().splitlines() if re.match(r"## \d", line)]
    assert len(steps) >= 11
    assert {block.kind for block in BLOCKS} == TRACKS.keys() | NOT_RUN
    for step in steps[1:]:
        assert {block.kind for block in BLOCKS if block.section == step} == TRACKS.keys(), step


def test_every_error_a_caller_can_get_has_its_advice(platform: Platform) -> None:
    table = PAGE.read_text().partition("| code | what to do |")[2].partition("\n\n")[0]
    named = set(re.findall(r"`([A-Z_]{4,})`", table))
    assert named - CODES.keys() == set()
    declared = httpx.get(f"{platform.gateway}/openapi.json").text
    assert {code for code in CODES if f'"{code}"' in declared} - named == set()


def test_the_page_starts_the_platform_as_the_tests_do(platform: Platform) -> None:
    [shown] = [block.code for block in BLOCKS if block.kind == "console"]
    assert "WEBHOOK_ALLOW_PRIVATE=true paceline up --sessions 3 --policy demo" in shown
    # The blocks say `paceline`, which a newcomer's shell finds only there.
    assert "$ . .venv/bin/activate" in shown
    assert " ".join(platform.command()[1:]) == "up --sessions 3 --dispatchers 1 --policy demo"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As somebody who has just started the platform finds it."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "api-key").write_text(API_KEY + "\n")
    return tmp_path


def interpreter(track: str) -> list[str]:
    command = TRACKS[track]
    missing = [name for name in (command[0], *(["curl"] if track == "bash" else [])) if shutil.which(name) is None]
    skip_if(f"no {missing[0]} here: the {track} blocks of docs/integrate.md are not run" if missing else "")
    return command


@pytest.mark.parametrize("track", TRACKS)
def test_the_blocks_of_a_language_run_from_top_to_bottom(platform: Platform, folder: Path, track: str) -> None:
    command = interpreter(track)
    code = "\n".join(block.code for block in BLOCKS if block.kind == track)
    script = folder / f"page.{ENDINGS[track]}"
    script.write_text(code.replace(PORT, str(free_ports(1))))
    before = len(platform.ledger())
    environment = {
        **{name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")},
        "PACELINE_URL": platform.gateway,
        "PATH": f"{PACELINE.parent}{os.pathsep}{os.environ['PATH']}",
        "PACELINE_DATA": str(folder / "data"),
    }
    done = subprocess.run(
        [*command, script.name],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.stderr
    assert [words for words in SAID if words not in done.stdout] == []
    assert len(re.findall(r"^(?:csv )?job: .*DONE", done.stdout, re.MULTILINE)) == 2
    assert re.search(r"^suppressed: 2$", done.stdout, re.MULTILINE)
    expected = SENT if track != "bash" else {to: texts for to, texts in SENT.items() if to != "447700900306"}
    # The page has seen the end of all but its parcel's job, so nothing of it can still be on its way.
    lines = platform.ledger()[before:]
    assert {line["to"]: [line["text"]] for line in lines} == expected
    assert len(lines) == len(expected)
    assert not SUPPRESSED & {line["to"] for line in platform.ledger()}
    if track != "bash":
        assert "webhook: message.sent" in done.stdout


@pytest.fixture
def p(platform: Platform) -> Iterator[Paceline]:
    with Paceline(platform.gateway, API_KEY) as opened:
        yield opened


def test_a_program_with_the_client_notices_nothing_of_a_gateway_that_dies(
    platform: Platform, client: Client, p: Paceline
) -> None:
    """Killed right after it accepted a job and before it said so; killed again while its events are read. One job,
    every message once, every event once, and not one error for the program to handle."""
    wanted = people(60)
    contacts = [Contact(to, {"name": f"N{to}"}, client_ref=f"crm-{to}") for to in wanted]
    struck = platform.arm("accepted-not-answered")
    told: list[Event] = []
    done = threading.Event()
    start = next(p.events(after="0-0"), None)

    def listen() -> None:
        with Paceline(platform.gateway, API_KEY) as own:
            for event in own.events(["message.sent", "job.done"], after=start.id if start else "0-0"):
                told.append(event)
                if event.type == "job.done" and event.data["tags"] == ["killed"]:
                    done.set()
                    return

    threading.Thread(target=listen, daemon=True).start()
    plan = p.jobs.plan(contacts, text="Hello {{name}}")
    assert (plan.accepted, plan.will_expire.count) == (60, 0)
    job = p.jobs.create(contacts, text=f"Hello {{{{name}}}}, {TEXT_CANARY}", tags=["killed"])
    assert struck()
    assert (job.accepted, len(list(p.jobs.each(tag="killed")))) == (60, 1)
    wait_for("some to be sent", lambda: p.jobs.get(job.job_id).progress.sent >= 10)
    platform.kill("gateway")
    ended = p.jobs.wait(job.job_id, timeout_seconds=150, every_seconds=0.2)
    assert (ended.state, ended.progress.sent) == ("DONE", 60)
    assert [message.to for message in p.jobs.each_message(job.job_id, limit=7)] == wanted
    assert done.wait(60)
    sent = [event.data["clientRef"] for event in told if event.type == "message.sent" and event.job_id == job.job_id]
    assert sorted(sent) == sorted(f"crm-{to}" for to in wanted)
    lines = [line for line in platform.ledger() if line["taskId"].startswith(job.job_id)]
    assert sorted(line["to"] for line in lines) == sorted(wanted)
