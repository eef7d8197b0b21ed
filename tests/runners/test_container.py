"""The container of a worker as it is asked for: nothing in it depends on an engine. tests/docker asks a real one."""

import os
from pathlib import Path

import pytest

from needed import skip_if
from paceline.domain.errors import ConfigError
from paceline.orchestrator.provisioning import new_runner
from paceline.orchestrator.runners.container import Containers
from paceline.orchestrator.runners.external import ExternalRunner
from paceline.orchestrator.runners.process import ProcessRunner
from paceline.settings import Settings, SettingsError, load

from .suite import spec


def containers(data: Path, **fields: object) -> Containers:
    return Containers.of(load(Settings, data=data, **fields))


def test_it_is_that_of_the_specification_with_the_settings_in_force(tmp_path: Path) -> None:
    made = containers(tmp_path, worker_image="mine:2", worker_memory_mb=300, worker_pids=50, worker_user="77")
    asked = made.config(spec(driver="other"))
    host = asked["HostConfig"]
    assert made.name("s1") == "wa_session_s1"
    assert (asked["Image"], asked["User"], asked["StopTimeout"]) == ("mine:2", "77", 10)
    assert host["Binds"] == [f"{tmp_path}/sessions/s1:/app/sessions/s1:rw"]
    assert (host["Memory"], host["MemorySwap"], host["PidsLimit"]) == (300 * 2**20, 300 * 2**20, 50)
    assert (host["CapDrop"], host["SecurityOpt"]) == (["ALL"], ["no-new-privileges:true"])
    assert (host["ReadonlyRootfs"], host["Privileged"], list(host["Tmpfs"])) == (True, False, ["/tmp"])
    assert (host["RestartPolicy"], host["NetworkMode"]) == ({"Name": "unless-stopped"}, "paceline-workers")
    assert "PROXY_URL" not in " ".join(asked["Env"])


def test_where_the_engine_sees_the_data_elsewhere_its_paths_count(tmp_path: Path) -> None:
    made = containers(tmp_path, worker_data_path="/srv/paceline")
    (tmp_path / "simulated.toml").touch()
    assert made.binds(spec()) == [
        "/srv/paceline/sessions/s1:/app/sessions/s1:rw",
        "/srv/paceline/ledger:/app/ledger:rw",
        "/srv/paceline/simulated.toml:/app/simulated.toml:ro",
    ]


def test_a_baileys_worker_has_an_image_of_its_own_and_the_key_of_its_login(tmp_path: Path) -> None:
    asked = containers(tmp_path, baileys_worker_image="node:mine").config(spec(driver="baileys", auth_key="k" * 64))
    assert asked["Image"] == "node:mine"
    assert f"AUTH_KEY={'k' * 64}" in asked["Env"]
    assert "AUTH_KEY" not in " ".join(containers(tmp_path).config(spec())["Env"])


def test_a_volume_that_was_ours_becomes_the_workers(tmp_path: Path) -> None:
    """A session that moves from a process to a container keeps its journal, and can write to it."""
    skip_if("only root can give files away" if os.geteuid() != 0 else "")
    journal, other = tmp_path / "sessions" / "s1" / "journal.jsonl", tmp_path / "ledger" / "s2.jsonl"
    for path in (journal, other):
        path.parent.mkdir(parents=True)
        path.touch()
    containers(tmp_path).prepare(spec())
    assert [path.stat().st_uid for path in (journal, journal.parent, other.parent, other)] == [10001, 10001, 10001, 0]


@pytest.mark.parametrize("bad", ["0", "0:0", "root", "1:x"])
def test_a_worker_is_never_root(bad: str) -> None:
    with pytest.raises(SettingsError, match="WORKER_USER"):
        load(Settings, worker_user=bad)


async def test_the_setting_chooses_the_runner(tmp_path: Path) -> None:
    assert isinstance(new_runner(load(Settings, data=tmp_path)), ProcessRunner)
    assert isinstance(new_runner(load(Settings, runner="external")), ExternalRunner)
    with pytest.raises(ConfigError, match="DOCKER_HOST"):
        new_runner(load(Settings, runner="docker", docker_host="ssh://elsewhere"))
