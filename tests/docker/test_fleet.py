"""A fleet of containers that is hurt while it sends: each session comes back once, with its volume, and nothing of the
job is lost or doubled.

The platform is `paceline up` with RUNNER=docker, judged from outside as in tests/acceptance: by what the simulated
WhatsApp wrote into its ledger, by the engine's own list of containers, and by its events.
"""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator

import httpx
import pytest

from acceptance.api import Asked, Client, people
from acceptance.checkers import judge, secrets_in_logs
from acceptance.platform import API_KEY, Platform, free_ports, wait_for

from .engine import Engine

pytestmark = pytest.mark.timeout(900)

SESSIONS = ("sim-1", "sim-2")
CONTACTS = 60


class Fleet:
    """One platform on one engine, a job that runs, and what the engine saw meanwhile."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.platform = Platform(sessions=len(SESSIONS))
        self.platform._environment |= engine.worker_settings(self.platform.orchestrator)
        self.platform.start()
        self.client = Client(self.platform)

    def post_job(self) -> Asked:
        self.client.wait_connected(*SESSIONS)
        self._events_from = self.platform.now_ms()
        return self.client.post_job(people(CONTACTS))

    def judge(self, job: Asked) -> None:
        [view] = self.client.wait_end(job)
        assert (view["state"], view["progress"]["sent"]) == ("DONE", CONTACTS)
        assert Counter(line["taskId"] for line in self.client.lines_of(job)).most_common(1)[0][1] == 1
        judge(self.platform, self.client, job)
        self.client.wait_connected(*SESSIONS)
        assert self.containers() == dict.fromkeys(SESSIONS, "running")

    def containers(self) -> dict[str, str]:
        """Session to state, of everything the engine has; two of one session would fail right here."""
        listed = self.engine.docker("ps", "-a", "--format", '{{.Label "paceline.session"}} {{.State}}').stdout
        rows = [tuple(line.split()) for line in listed.splitlines()]
        assert len(dict(rows)) == len(rows), rows
        return dict(rows)

    def id_of(self, session: str) -> str:
        return self.engine.docker("inspect", "-f", "{{.Id}}", f"wa_session_{session}", check=False).stdout.strip()

    def created(self, session: str) -> int:
        """How many containers of a session were made since the job was posted."""
        since, until = (f"{ms / 1000:.3f}" for ms in (self._events_from, self.platform.now_ms()))
        events = self.engine.docker(
            "events", "--since", since, "--until", until, "--filter", "event=create", "--format", "{{json .Actor}}"
        ).stdout.splitlines()
        return sum(json.loads(one)["Attributes"].get("paceline.session") == session for one in events)

    def journal(self, session: str) -> str:
        path = self.platform.data / "sessions" / session / "journal.jsonl"
        return str(json.loads(path.read_text().partition("\n")[0])["journalId"])

    def journals(self) -> list[str]:
        return [self.journal(session) for session in SESSIONS]

    def epoch(self, session: str) -> int:
        return int(self.client.session(session)["epoch"])

    def wait_new(self, session: str, old: str) -> None:
        def is_new() -> bool:
            found = self.id_of(session)
            return found not in ("", old) and self.containers().get(session) == "running"

        wait_for(f"{session} to have a new container", is_new)

    def log(self, service: str) -> str:
        return (self.platform.data / "log" / f"{service}.log").read_text()


@pytest.fixture(scope="module")
def running_fleet(running_engine: Engine, request: pytest.FixtureRequest) -> Iterator[Fleet]:
    running_engine.clear()
    failed_before = request.session.testsfailed
    fleet = Fleet(running_engine)
    try:
        yield fleet
        fleet.platform.stop()
        assert running_engine.docker("ps", "-aq").stdout == ""
        assert secrets_in_logs(fleet.platform) == []
    finally:
        fleet.client.close()
        fleet.platform.destroy(keep=request.session.testsfailed != failed_before)


@pytest.fixture
def fleet(running_fleet: Fleet) -> Fleet:
    running_fleet.client.wait_connected(*SESSIONS)
    return running_fleet


def kill_container(fleet: Fleet) -> None:
    fleet.engine.docker("kill", "wa_session_sim-1")


def kill_process(fleet: Fleet) -> None:
    """As the kernel does when memory runs out: the engine itself starts the container again."""
    pid = fleet.engine.docker("inspect", "-f", "{{.State.Pid}}", "wa_session_sim-1").stdout
    os.kill(int(pid), signal.SIGKILL)


def remove_container(fleet: Fleet) -> None:
    fleet.engine.docker("rm", "-f", "wa_session_sim-1")


def stop_container(fleet: Fleet) -> None:
    fleet.engine.docker("stop", "wa_session_sim-1")


@pytest.mark.parametrize(
    ("hurt", "is_gone"),
    [(kill_container, True), (remove_container, True), (stop_container, True), (kill_process, False)],
)
def test_a_container_that_goes_comes_back_once_with_its_volume(
    fleet: Fleet, hurt: Callable[[Fleet], None], is_gone: bool
) -> None:
    """In the middle of a job: killed, removed by hand, stopped by hand, its process killed. The last is a race: the
    engine starts the same container again, unless we saw it lie there before, and made a new one."""
    journals = fleet.journals()
    job = fleet.post_job()
    fleet.client.wait_sent(job, 10)
    old = fleet.id_of("sim-1")
    hurt(fleet)
    if is_gone:
        fleet.wait_new("sim-1", old)
    fleet.judge(job)
    assert fleet.created("sim-1") in ([1] if is_gone else [0, 1])
    assert fleet.created("sim-2") == 0
    assert fleet.journals() == journals


def test_the_engine_is_killed_and_everything_else_goes_on(fleet: Fleet) -> None:
    """Docker down: the API works, the sessions keep their state and send on, the log says so; nothing is started twice
    when it is back."""
    journals = fleet.journals()
    job = fleet.post_job()
    fleet.client.wait_sent(job, 5)
    epochs = [fleet.epoch(session) for session in SESSIONS]
    fleet.engine.kill()
    wait_for("the log to tell", lambda: "all sessions stay as they are" in fleet.log("orchestrator"))
    before = len(fleet.client.lines_of(job))
    for service in (fleet.platform.gateway, fleet.platform.dispatcher, fleet.platform.orchestrator):
        assert httpx.get(f"{service}/health", trust_env=False).status_code == 200
    assert [fleet.client.session(session)["connection"] for session in SESSIONS] == ["CONNECTED", "CONNECTED"]
    wait_for("more messages meanwhile", lambda: len(fleet.client.lines_of(job)) >= min(CONTACTS, before + 5))
    restarted = fleet.client.ask("POST", f"{fleet.platform.orchestrator}/api/sessions/sim-2/restart")
    assert restarted is not None
    fleet.engine.start()
    wait_for("the log to tell", lambda: "the runner is back" in fleet.log("orchestrator"))
    fleet.judge(job)
    assert (fleet.created("sim-1"), fleet.created("sim-2")) == (0, 1)
    assert fleet.epoch("sim-1") == epochs[0]
    assert fleet.epoch("sim-2") > epochs[1]
    assert fleet.journals() == journals


def test_killed_between_create_and_start_the_next_orchestrator_goes_on_with_it(fleet: Fleet) -> None:
    journals = fleet.journals()
    job = fleet.post_job()
    fleet.client.wait_sent(job, 10)
    has_fired = fleet.platform.arm("container-created")
    remove_container(fleet)
    wait_for("the orchestrator to die with a container that is not started", has_fired)
    fleet.judge(job)
    assert (fleet.created("sim-1"), fleet.created("sim-2")) == (1, 0)
    assert fleet.journals() == journals


def test_an_orchestrator_that_is_killed_leaves_its_containers_alone_and_finds_them_again(fleet: Fleet) -> None:
    job = fleet.post_job()
    fleet.client.wait_sent(job, 10)
    ids = [fleet.id_of(session) for session in SESSIONS]
    epochs = [fleet.epoch(session) for session in SESSIONS]
    fleet.platform.kill("orchestrator")
    fleet.judge(job)
    assert [fleet.id_of(session) for session in SESSIONS] == ids
    assert [fleet.epoch(session) for session in SESSIONS] == epochs


def test_two_orchestrators_by_mistake_make_one_worker_each(fleet: Fleet) -> None:
    """The second serves HTTP and leaves the containers to the first; when that one is frozen it takes over, and what
    the first had in mind comes too late."""
    port = free_ports(1)
    said = fleet.platform.folder / "second.log"
    orchestrator = fleet.platform.pid("orchestrator")
    with open(f"/proc/{orchestrator}/environ", "rb") as file:
        env = dict(part.split("=", 1) for part in file.read().decode().split("\0") if "=" in part)
    command = ["-c", "from paceline.orchestrator.main import main; main()", "second"]
    with said.open("ab") as log:
        second = subprocess.Popen(
            [sys.executable, *command], env=env | {"PORT": str(port), "STOP_WORKERS": "false"}, stdout=log, stderr=log
        )
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for("the second to answer", lambda: _answers(url))
        job = fleet.post_job()
        for number, hurt in enumerate((kill_container, remove_container), start=1):
            fleet.client.wait_sent(job, 8 * number)
            old = fleet.id_of("sim-1")
            hurt(fleet)
            fleet.wait_new("sim-1", old)
        assert fleet.created("sim-1") == 2
        listed = httpx.get(f"{url}/api/sessions", headers={"X-API-KEY": API_KEY}, trust_env=False)
        assert listed.status_code == 200
        old = fleet.id_of("sim-2")
        os.kill(orchestrator, signal.SIGSTOP)
        try:
            fleet.engine.docker("kill", "wa_session_sim-2")
            fleet.wait_new("sim-2", old)
        finally:
            os.kill(orchestrator, signal.SIGCONT)
        fleet.judge(job)
        assert (fleet.created("sim-1"), fleet.created("sim-2")) == (2, 1)
    finally:
        second.terminate()
        second.wait(60)
    assert fleet.containers() == dict.fromkeys(SESSIONS, "running")


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False
