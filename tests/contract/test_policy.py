"""GET /policy: the trust table that is in force, with the settings where the file leaves something open."""

from collections.abc import AsyncIterator

import pytest

from lua.servers import LiveServer
from paceline.policy.facts import Rules
from paceline.policy.trust import Level, Policy

from .platform import READ_KEY, SEND_KEY, Platform, refused


async def policy(platform: Platform) -> dict:
    answer = await platform.dispatcher.get("/policy", headers={"X-API-KEY": READ_KEY})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_the_default_table(platform: Platform) -> None:
    found = await policy(platform)
    assert found["name"] == "default"
    assert [(level["name"], level["maxAgeDays"], level["rpm"]) for level in found["levels"]] == [
        ("cold", 3, 3),
        ("warming", 7, 5),
        ("warm", 14, 10),
        ("hot", None, 20),
    ]
    hot = found["levels"][-1]
    assert (hot["minDelayMs"], hot["maxDelayMs"], hot["dailyCap"], hot["hours"]) == (2_000, 4_000, 500, [7, 23])
    assert 6 < hot["effectiveRpm"] < 8, "the rest after a burst counts"
    assert (found["burstLimit"], found["burstCooldownMs"], found["globalRpm"]) == (5, 30_000, None)


@pytest.fixture
async def bare(contract_redis: LiveServer) -> AsyncIterator[Platform]:
    contract_redis.client.flushall()
    stage = Platform(contract_redis.url)
    stage.rules = Rules(Policy("bare", (Level("all", 10),)), global_rpm=100)
    await stage.open()
    yield stage
    await stage.close()


async def test_what_the_file_leaves_open(bare: Platform) -> None:
    """The window comes from the settings; no cap and no hours are null, not a number that looks like a limit."""
    found = await policy(bare)
    (level,) = found["levels"]
    assert (level["minDelayMs"], level["maxDelayMs"]) == (2_000, 5_000)
    assert (level["dailyCap"], level["hours"], found["recipientHours"], found["globalRpm"]) == (None, None, None, 100)


async def test_a_key_that_only_sends_does_not_see_it(platform: Platform) -> None:
    refused(await platform.dispatcher.get("/policy", headers={"X-API-KEY": SEND_KEY}), 403, "FORBIDDEN")
