"""The end of a worker's log: what its runner has, without secrets."""

import pytest

from .platform import SESSION, Platform, refused

LOGS = f"/api/sessions/{SESSION}/logs"


async def test_the_last_lines_are_shown_the_oldest_first(platform: Platform) -> None:
    await platform.register()
    platform.printed = ["one", "two", "three"]
    assert (await platform.orchestrator.get(f"{LOGS}?lines=2")).json() == {
        "sessionId": SESSION,
        "lines": ["two", "three"],
    }


async def test_what_a_library_printed_is_redacted(platform: Platform) -> None:
    await platform.register()
    platform.printed = ["connecting through http://user:canary@proxy.example:8080"]
    assert "canary" not in (await platform.orchestrator.get(LOGS)).text


@pytest.mark.parametrize("lines", ["0", "1001", "many"])
async def test_a_number_of_lines_that_is_none_is_refused(platform: Platform, lines: str) -> None:
    await platform.register()
    refused(await platform.orchestrator.get(f"{LOGS}?lines={lines}"), 400, "INVALID_REQUEST", "lines")


async def test_an_unknown_session_and_an_engine_that_is_away(platform: Platform) -> None:
    refused(await platform.orchestrator.get(LOGS), 404, "UNKNOWN_SESSION")
    await platform.register()
    platform.printed = None
    refused(await platform.orchestrator.get(LOGS), 503, "UNAVAILABLE")
