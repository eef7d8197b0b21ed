"""What `doctor` makes of what it saw: each fault is named once, with how to mend it."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from paceline.cli import findings
from paceline.cli.findings import (
    GIB,
    DataFacts,
    DockerFacts,
    Finding,
    NumbersFacts,
    PortFacts,
    RedisFacts,
    RunningFacts,
    SecretFacts,
)

DATA = DataFacts("/data", exists=True)
SECRET = SecretFacts("API_KEY", "file", "/data/api-key")
SAFE = {"appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction"}
REDIS = RedisFacts("127.0.0.1:6379", "7.0.15", SAFE, {"role": "master", "used_memory": "1000", "maxmemory": "0"})


def told(found: Iterable[Finding]) -> dict[str, str]:
    """What is not in order, by its name: state and words."""
    wrong = [one for one in found if one.state != "ok"]
    assert all(one.mend for one in wrong if one.state in ("warning", "fault")), "it does not say how to mend it"
    return {one.about: f"{one.state}: {one.found}" for one in wrong}


@pytest.mark.parametrize(
    ("facts", "name", "words"),
    [
        pytest.param(replace(DATA, exists=False), "data directory", "note: /data is not there yet", id="none yet"),
        pytest.param(replace(DATA, writable=False), "data directory", "fault: /data cannot be written", id="read only"),
        pytest.param(replace(DATA, mode=0o755), "data directory", "warning: other users", id="open to all"),
        pytest.param(replace(DATA, free_bytes=GIB // 2), "data directory", "fault: only 0.5 GiB", id="full"),
    ],
)
def test_the_data_directory(facts: DataFacts, name: str, words: str) -> None:
    assert told(findings.data_directory(facts))[name].startswith(words)


def test_a_data_directory_may_be_shared_with_a_group() -> None:
    assert told(findings.data_directory(replace(DATA, mode=0o2750))) == {}


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        pytest.param(replace(SECRET, source="nowhere"), "note: not set", id="none yet"),
        pytest.param(replace(SECRET, guessable=True), "warning: in /data/api-key, and easy to guess", id="guessable"),
        pytest.param(replace(SECRET, mode=0o644), "fault: other users", id="open to all"),
    ],
)
def test_secrets(facts: SecretFacts, words: str) -> None:
    assert told([findings.secret(facts)])["API_KEY"].startswith(words)


def config(**changed: str) -> RedisFacts:
    return replace(REDIS, config={**SAFE, **{name.replace("_", "-"): value for name, value in changed.items()}})


def info(**changed: str) -> RedisFacts:
    return replace(REDIS, info={**REDIS.info, **changed})


@pytest.mark.parametrize(
    ("facts", "name", "words"),
    [
        pytest.param(replace(REDIS, version="6.0.16"), "Redis", "fault: 6.0.16 is too old", id="old"),
        pytest.param(config(appendonly="no"), "Redis durability", "fault: appendonly is off", id="in memory only"),
        pytest.param(config(appendfsync="no"), "Redis durability", "fault: appendfsync no", id="never synced"),
        pytest.param(config(appendfsync="everysec"), "Redis durability", "warning: appendfsync every", id="a second"),
        pytest.param(config(maxmemory_policy="allkeys-lru"), "Redis eviction", "fault: maxmemory-policy", id="evicts"),
        pytest.param(replace(REDIS, config=None), "Redis durability", "warning: this Redis does not", id="managed"),
        pytest.param(info(role="slave"), "Redis role", "fault: this is a replica", id="a replica"),
        pytest.param(info(aof_last_write_status="err"), "Redis disk", "fault: its last write", id="a full disk"),
        pytest.param(info(used_memory="81", maxmemory="100"), "Redis memory", "fault: 81% of maxmemory", id="full"),
        pytest.param(replace(REDIS, is_remote=True), "Redis network", "warning: another machine", id="in the open"),
    ],
)
def test_redis(facts: RedisFacts, name: str, words: str) -> None:
    (only,) = told(findings.redis(facts)).items()
    assert only[0] == name
    assert only[1].startswith(words)


@pytest.mark.parametrize(
    ("offset_ms", "synchronised", "state"),
    [
        *(
            (0, True, "ok"),
            (None, None, "ok"),
            (-1_999, None, "ok"),
            (2_000, True, "warning"),
            (-30_000, True, "fault"),
        ),
        *((None, False, "warning"), (0, False, "warning")),
    ],
)
def test_the_clock(offset_ms: int | None, synchronised: bool | None, state: str) -> None:
    assert findings.clock(offset_ms, synchronised).state == state


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(DockerFacts("process", "unix:///x"), {}, id="not needed"),
        pytest.param(
            DockerFacts("docker", "unix:///x"), {"Docker": "fault: no engine answers at unix:///x"}, id="away"
        ),
        pytest.param(
            DockerFacts("docker", "unix:///x", "27.0", ("worker:1",)),
            {"Docker image": "fault: worker:1 is not there"},
            id="no image",
        ),
        pytest.param(DockerFacts("docker", "unix:///x", "27.0"), {}, id="all there"),
    ],
)
def test_docker(facts: DockerFacts, expected: dict[str, str]) -> None:
    assert told(findings.docker(facts)) == expected


def test_ports() -> None:
    facts = PortFacts("gateway", "GATEWAY_PORT", 4000, "taken")
    assert told([findings.port(facts)]) == {"port 4000": "fault: for the gateway, is taken by another program"}
    assert "GATEWAY_PORT" in findings.port(facts).mend
    assert told(findings.port(replace(facts, use=use)) for use in ("free", "ours")) == {}


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(RunningFacts(("read",)), {}, id="all well"),
        pytest.param(RunningFacts(refused="no"), {"API key": "fault: not accepted: no"}, id="a wrong key"),
        pytest.param(
            RunningFacts(("read",), paused="BREAKER"),
            {"fleet": "warning: paused by BREAKER: nothing is sent"},
            id="paused",
        ),
        pytest.param(
            RunningFacts(("read",), stopped=True),
            {"fleet": "warning: the dispatchers are stopped: nothing is routed"},
            id="stopped",
        ),
        pytest.param(
            RunningFacts(("admin",), statuses={"SCAN_QR": 3, "WORKING": 9}),
            {"sessions": "warning: 3 wait to be linked"},
            id="unlinked",
        ),
        pytest.param(
            RunningFacts(("admin",), statuses={"FAILED": 1, "LOGGED_OUT": 1}),
            {"sessions": "warning: 2 are down"},
            id="down",
        ),
    ],
)
def test_what_runs(facts: RunningFacts, expected: dict[str, str]) -> None:
    assert told(findings.running(facts)) == expected


@pytest.mark.parametrize(
    ("facts", "wrong"),
    [
        pytest.param(NumbersFacts(simulated=3), {}, id="simulated"),
        pytest.param(NumbersFacts(real=3), {}, id="real"),
        pytest.param(NumbersFacts(), {}, id="none"),
        pytest.param(NumbersFacts(simulated=2, simulated_only=True), {}, id="the demo"),
        pytest.param(
            NumbersFacts(real=4, simulated=3),
            {"numbers": "fault: 3 simulated beside 4 real: they take a share of every job and call it sent "
             "(SIMULATED_BESIDE_REAL)"},
            id="both",
        ),
        pytest.param(
            NumbersFacts(real=4, simulated_only=True),
            {"policy": "fault: the demo policy has no limits, and 4 of the sessions are real (DEMO_POLICY)"},
            id="the demo's policy for real ones",
        ),
    ],
)  # fmt: skip
def test_numbers_that_do_not_belong_together(facts: NumbersFacts, wrong: dict[str, str]) -> None:
    assert told(findings.numbers(facts)) == wrong
