"""A fleet is real or simulated, never both; and the demo's policy, which has no limits, is for simulated numbers."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from lua.servers import LiveServer
from paceline import compose
from paceline.domain.errors import ConfigError
from paceline.orchestrator.main import warn_of_mixed_fleet
from paceline.settings import Settings
from paceline.store import keys

from .platform import OTHER_PHONE, PHONE, SESSION, Platform, refused

SIMULATED = {"phone": PHONE, "sessionId": SESSION, "driver": "simulated"}
REAL = {"phone": OTHER_PHONE, "sessionId": "r1", "driver": "baileys", "proxy": "direct"}


async def create(platform: Platform, body: dict[str, Any]) -> Any:
    return await platform.orchestrator.post("/api/sessions", json=body)


@pytest.mark.parametrize(("first", "second"), [(SIMULATED, REAL), (REAL, SIMULATED)], ids=["real", "simulated"])
async def test_a_number_of_the_other_kind_is_refused(
    platform: Platform, first: dict[str, Any], second: dict[str, Any]
) -> None:
    """Numbers left over from a trial took their share of a real job, and called it sent."""
    assert (await create(platform, first)).status_code == 201
    async with platform.nothing_stored():
        error = refused(await create(platform, second), 409, "SIMULATED_BESIDE_REAL", "driver")
    assert "remove" in error["message"]
    # What is there may be asked for again.
    assert (await create(platform, first)).status_code == 200


async def test_once_those_of_the_other_kind_are_removed_it_is_taken(platform: Platform) -> None:
    await create(platform, SIMULATED)
    assert (await platform.orchestrator.delete(f"/api/sessions/{SESSION}")).status_code == 202
    # It counts until its worker is gone: that one may still send.
    refused(await create(platform, REAL), 409, "SIMULATED_BESIDE_REAL", "driver")
    await platform.store.fleet.finish_removal(SESSION, now_ms=platform.clock.at_ms)
    assert (await create(platform, REAL)).status_code == 201


async def test_of_two_kinds_at_once_only_one_gets_in(platform: Platform) -> None:
    answers = await asyncio.gather(create(platform, SIMULATED), create(platform, REAL))
    assert sorted(answer.status_code for answer in answers) == [201, 409]


@pytest.fixture
async def mixed(platform: Platform, contract_redis: LiveServer) -> Platform:
    """As an older version left it: nobody has counted."""
    for number in range(12):
        await create(platform, {**REAL, "phone": f"9725298760{number:02}", "sessionId": f"old{number}"})
    for number in range(11):
        contract_redis.client.hset(keys.session(f"old{number}"), "driver", "simulated")
    contract_redis.client.delete("sessions:real")
    return platform


async def test_a_fleet_that_has_both_takes_real_numbers_only(mixed: Platform) -> None:
    """It was left to chance: ten of the sessions were looked at."""
    async with mixed.nothing_stored():
        refused(await create(mixed, SIMULATED), 409, "SIMULATED_BESIDE_REAL", "driver")
    assert (await create(mixed, REAL)).status_code == 201
    refused(await create(mixed, SIMULATED), 409, "SIMULATED_BESIDE_REAL", "driver")


async def test_once_the_last_real_one_is_gone_it_takes_simulated_ones_again(mixed: Platform) -> None:
    await create(mixed, REAL)
    for session in ("old11", "r1"):
        await mixed.orchestrator.delete(f"/api/sessions/{session}")
        await mixed.store.fleet.finish_removal(session, now_ms=mixed.clock.at_ms)
    refused(await create(mixed, REAL), 409, "SIMULATED_BESIDE_REAL", "driver")
    assert (await create(mixed, SIMULATED)).status_code == 201


async def test_the_orchestrator_warns_at_its_start_of_a_fleet_that_has_both(mixed: Platform) -> None:
    with capture_logs() as logs:
        await warn_of_mixed_fleet(mixed.store)
    [line] = logs
    assert (line["log_level"], line["simulated"], line["real"]) == ("warning", 11, 1)
    assert "remove" in line["event"]


async def test_of_a_fleet_of_one_kind_it_says_nothing(platform: Platform) -> None:
    await create(platform, REAL)
    with capture_logs() as logs:
        await warn_of_mixed_fleet(platform.store)
    assert logs == []


async def test_a_new_number_costs_the_same_however_many_there_are(
    platform: Platform, contract_redis: LiveServer
) -> None:
    """Looking at all of them each time would make fifty thousand numbers a matter of hours."""
    reads = []
    for number in range(30):
        contract_redis.client.config_resetstat()
        await create(platform, {**SIMULATED, "phone": f"9725298760{number:02}", "sessionId": f"s{number}"})
        reads.append(contract_redis.client.info("commandstats")["cmdstat_hget"]["calls"])
    assert reads[-1] == reads[2]


async def test_a_real_number_is_not_taken_under_the_demos_policy(contract_redis: LiveServer) -> None:
    contract_redis.client.flushall()
    platform = Platform(contract_redis.url, policy="demo")
    await platform.open()
    try:
        async with platform.nothing_stored():
            refused(await create(platform, REAL), 409, "DEMO_POLICY", "driver")
        assert (await create(platform, SIMULATED)).status_code == 201
    finally:
        await platform.close()


@pytest.mark.parametrize(
    ("body", "settings", "starts"),
    [
        pytest.param(REAL, {"policy": "demo"}, False, id="real"),
        pytest.param(REAL, {"policy": "default"}, True, id="real, another policy"),
        pytest.param(REAL, {"policy": "demo", "whatsapp_url": "ws://127.0.0.1:8090"}, True, id="a fake WhatsApp"),
        pytest.param(SIMULATED, {"policy": "demo"}, True, id="simulated"),
    ],
)
async def test_no_service_starts_with_the_demos_policy_beside_real_numbers(
    contract_redis: LiveServer, platform: Platform, body: dict[str, Any], settings: dict[str, Any], starts: bool
) -> None:
    """They were sent from at 600 a minute, without hours and caps."""
    await create(platform, body)
    parts = compose.build(Settings(redis_url=contract_redis.url, **settings))
    try:
        if starts:
            await compose.check_fleet(parts)
        else:
            with pytest.raises(ConfigError, match=r"PACELINE_POLICY: .*DEMO_POLICY"):
                await compose.check_fleet(parts)
    finally:
        await parts.link.close()
