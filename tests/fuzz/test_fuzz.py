"""A short run of the fuzzer, always the same: no made-up request gets a 5xx, an answer that its document does not have,
or anything without a key. `make fuzz` is the long one."""

from collections.abc import Iterator
from typing import Any

import pytest

from paceline.domain.errors import NotFound

from .fuzzing import Report, fuzz
from .stage import Stage, stage

SEED = 20_260_310
EXAMPLES = 4
"""For each operation and phase that draws them; the coverage phase makes its own, some two thousand."""


@pytest.fixture(scope="module")
def running() -> Iterator[Stage]:
    with stage() as made:
        yield made


def found(report: Report) -> list[str]:
    return [*report.errors, *(f"{what}\n{sample}" for what, sample in report.failures.items())]


@pytest.mark.parametrize(("service", "least"), [("gateway", 1_500), ("dispatcher", 500), ("orchestrator", 1_200)])
def test_no_made_up_request_gets_a_wrong_answer(running: Stage, service: str, least: int) -> None:
    report = fuzz(running, service, examples=EXAMPLES, seed=SEED)
    assert found(report) == []
    assert running.server_errors == []
    assert report.cases >= least, "a run that asks little proves little"


@pytest.mark.parametrize(
    ("error", "title"),
    [
        pytest.param(RuntimeError("planted"), "Server error", id="a 500"),
        pytest.param(NotFound("UNKNOWN_JOB", "planted"), "Undocumented status code", id="a code it has not"),
    ],
)
def test_a_planted_bug_is_found(running: Stage, monkeypatch: pytest.MonkeyPatch, error: Exception, title: str) -> None:
    async def planted() -> None:
        raise error

    monkeypatch.setattr(running.platform.store.operators, "incidents", planted)
    report = fuzz(running, "dispatcher", examples=EXAMPLES, seed=SEED, phases=["coverage"], only="/incidents")
    running.server_errors.clear()
    assert any(title in line for line in found(report)), found(report)


@pytest.mark.parametrize(
    ("part", "name", "path"),
    [
        ("fleet", "wish", "/api/sessions/{session_id}/pause"),
        ("fleet", "give_command", "/api/sessions/{session_id}/simulated/scan"),
        ("fleet", "mark_proxy", "/api/proxies/{proxy_id}/bad"),
        ("inventory", "add_proxies", "/upload/proxies"),
        ("inventory", "add_profiles", "/upload/profiles"),
        ("inventory", "drop_profile", "/api/profiles/{profile_id}"),
    ],
)
def test_cases_get_as_far_as_the_store(
    running: Stage, monkeypatch: pytest.MonkeyPatch, part: str, name: str, path: str
) -> None:
    """A bug that is met only by whoever names a session, a proxy, a profile, or uploads lines that are good."""
    store = getattr(running.platform.store, part)
    as_it_is = getattr(store, name)

    async def planted(*given: Any, **named: Any) -> Any:
        answer = await as_it_is(*given, **named)
        if answer.code not in ("UNKNOWN_SESSION", "UNKNOWN_PROXY", "UNKNOWN_PROFILE") and named["by"] == "bootstrap":
            raise RuntimeError("planted")
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(running, "life_goes_on", False)
        patch.setattr(store, name, planted)
        report = fuzz(running, "orchestrator", examples=12, seed=SEED, phases=["coverage", "fuzzing"], only=path)
    running.server_errors.clear()
    assert any("Server error" in line for line in found(report)), sorted(report.answers)


def test_a_route_that_lets_everybody_in_is_found(running: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    async def anybody(_connection: object, _handler: object) -> None:
        """A guard that forgot its work."""

    (handler,) = [
        handler
        for route in running.platform.services["dispatcher"].litestar.routes
        if route.path == "/queue/status"
        for handler in route.route_handlers  # type: ignore[union-attr]
        if "GET" in handler.http_methods  # type: ignore[union-attr]
    ]
    monkeypatch.setattr(handler, "_resolved_guards", [anybody], raising=False)
    monkeypatch.setattr(handler, "guards", (anybody,), raising=False)
    report = fuzz(running, "dispatcher", examples=EXAMPLES, seed=SEED, phases=["coverage"], only="/queue/status")
    assert any("without authentication" in line for line in found(report)), found(report)
