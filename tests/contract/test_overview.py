"""The fleet at a glance, all sessions as one list, and all that waits: what the dashboard's first page shows."""

from itertools import pairwise
from typing import Any

import pytest

from paceline.dispatcher.roster import LASTS_MS

from .platform import FRIEND, NOON, PHONE, READ_KEY, SESSION, Platform, refused

COLD, HOT = "447700900001", "447700900002"


@pytest.fixture
async def three(platform: Platform) -> Platform:
    """One session for each of three numbers: connected and hot, connected and cold, not connected."""
    await platform.connect(SESSION, PHONE)
    await platform.connect("a-cold", COLD)
    await platform.orchestrator.patch("/api/sessions/a-cold", json={"createdAt": NOON})
    await platform.register("z-away", HOT, age_days=60)
    return platform


async def listed(platform: Platform, **asked: Any) -> dict[str, Any]:
    answer = await platform.dispatcher.get("/sessions", params=asked)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def ids(platform: Platform, **asked: Any) -> list[str]:
    return [row["sessionId"] for row in (await listed(platform, **asked))["items"]]


async def overview(platform: Platform, **asked: Any) -> dict[str, Any]:
    answer = await platform.dispatcher.get("/overview", params=asked)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def backlog(platform: Platform) -> dict[str, Any]:
    platform.clock.forward(LASTS_MS)
    answer = await platform.gateway.get("/v1/backlog", headers={"X-API-KEY": READ_KEY})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


class TestTheList:
    async def test_a_row_says_how_the_number_stands(self, three: Platform) -> None:
        (row,) = (await listed(three, search=PHONE))["items"]
        assert (row["sessionId"], row["phone"], row["status"], row["trustLevel"]) == (SESSION, PHONE, "WORKING", "hot")
        assert (row["rpm"], row["rpmDefault"], row["rpmOverride"], row["dailyCap"]) == (20, 20, None, 500)
        assert (row["queueLen"], row["sentToday"], row["waiting"], row["nextSlotAt"]) == (0, 0, None, None)

    @pytest.mark.parametrize(
        ("sort", "order", "expected"),
        [
            ("session", "asc", ["a-cold", SESSION, "z-away"]),
            ("session", "desc", ["z-away", SESSION, "a-cold"]),
            ("trust", "asc", ["a-cold", SESSION, "z-away"]),
            ("rpm", "desc", [SESSION, "z-away", "a-cold"]),
            ("effectiveRpm", "asc", ["a-cold", SESSION, "z-away"]),
            ("status", "asc", ["z-away", "a-cold", SESSION]),
        ],
    )
    async def test_it_is_sorted(self, three: Platform, sort: str, order: str, expected: list[str]) -> None:
        assert await ids(three, sort=sort, order=order) == expected

    async def test_what_is_fullest_comes_first(self, three: Platform) -> None:
        await three.post_job(contacts=["447700900301", "447700900302", "447700900303"], phone=COLD)
        await three.dispatch()
        three.clock.forward(LASTS_MS)
        assert (await ids(three, sort="queue", order="desc"))[0] == "a-cold"
        assert (await ids(three, sort="budget", order="desc"))[0] == "a-cold"
        assert (await ids(three, sort="nextSlot"))[0] == "a-cold"

    @pytest.mark.parametrize(
        ("asked", "expected"),
        [
            ({"search": "COLD"}, ["a-cold"]),
            ({"search": "4477 away"}, ["z-away"]),
            ({"search": "nobody"}, []),
            ({"trust": "cold"}, ["a-cold"]),
            ({"status": "WORKING"}, ["a-cold", SESSION]),
            ({"status": "WORKING", "trust": "hot"}, [SESSION]),
        ],
    )
    async def test_it_is_searched(self, three: Platform, asked: dict[str, str], expected: list[str]) -> None:
        found = await listed(three, **asked)
        assert [row["sessionId"] for row in found["items"]] == expected
        assert found["total"] == len(expected)

    async def test_it_is_turned_page_by_page(self, three: Platform) -> None:
        first = await listed(three, limit=2)
        second = await listed(three, limit=2, cursor=first["nextCursor"])
        assert [row["sessionId"] for row in first["items"] + second["items"]] == ["a-cold", SESSION, "z-away"]
        assert (first["total"], second["nextCursor"]) == (3, None)

    async def test_what_is_said_of_a_session_is_never_old(self, three: Platform) -> None:
        """The order may be some seconds old; an operator who has just changed something must see it."""
        await listed(three)
        await three.dispatcher.post(f"/sessions/{SESSION}/rpm", json={"rpm": 5})
        (row,) = (await listed(three, search=SESSION))["items"]
        assert (row["rpm"], row["rpmOverride"], row["rpmSource"]) == (5, 5, "manual")

    @pytest.mark.parametrize(
        ("field", "value"), [("sort", "colour"), ("order", "up"), ("limit", 201), ("limit", 0), ("cursor", -1)]
    )
    async def test_what_cannot_be_asked_is_named(self, platform: Platform, field: str, value: Any) -> None:
        answer = await platform.dispatcher.get("/sessions", params={field: value})
        refused(answer, 400, "INVALID_REQUEST", field)


class TestAtAGlance:
    async def test_nobody_is_there_yet(self, platform: Platform) -> None:
        found = await overview(platform)
        assert (found["sessions"], found["connected"], found["sending"], found["statuses"]) == (0, 0, 0, {})
        assert found["totals"] == {"sent": 0, "delivered": 0, "read": 0, "failed": 0}
        assert len(found["minutes"]) == 60
        assert found["minutes"][-1]["at"] == NOON // 60_000 * 60_000

    async def test_numbers_are_counted(self, three: Platform) -> None:
        found = await overview(three)
        assert (found["sessions"], found["connected"], found["sending"]) == (3, 2, 0)
        assert sum(found["statuses"].values()) == 3
        assert found["statuses"]["WORKING"] == 2

    async def test_what_went_out_is_in_the_totals_and_in_its_minute(self, platform: Platform) -> None:
        claim = await platform.claimed()
        await platform.outbox("ack", {"raw": claim["raw"]})
        platform.clock.forward(LASTS_MS)
        found = await overview(platform, since=NOON - 60_000)
        assert found["totals"]["sent"] == 1
        assert found["minutes"][-1]["sent"] == 1
        assert found["sending"] == 1
        platform.clock.forward(120_000)
        assert (await overview(platform, since=NOON + 60_000))["totals"]["sent"] == 0


class TestTheTimeLine:
    async def test_sends_are_behind_and_slots_ahead(self, platform: Platform) -> None:
        claim = await platform.claimed()
        await platform.outbox("ack", {"raw": claim["raw"]})
        await platform.post_job(contacts=[str(447700900300 + index) for index in range(8)])
        await platform.dispatch()
        answer = await platform.dispatcher.get(f"/sessions/{SESSION}/pacing")
        found = answer.json()
        assert answer.status_code == 200, answer.text
        assert found["sends"] == [NOON]
        assert found["slots"][0] == found["nextSlotAt"] > NOON
        gaps = [later - earlier for earlier, later in pairwise(found["slots"])]
        assert all(gap >= found["minDelayMs"] for gap in gaps)
        # Five in a row, the one on the wire counted, then a rest.
        assert max(gaps) >= found["burstCooldownMs"]

    async def test_hours_bound_it(self, platform: Platform) -> None:
        await platform.connect()
        found = (await platform.dispatcher.get(f"/sessions/{SESSION}/pacing")).json()
        assert found["open"][0]["begin"] == NOON
        assert found["open"][0]["end"] > NOON
        assert found["slots"] == []

    async def test_of_nobody(self, platform: Platform) -> None:
        refused(await platform.dispatcher.get("/sessions/nobody/pacing"), 404, "UNKNOWN_SESSION")


class TestAllThatWaits:
    async def test_nothing_waits(self, three: Platform) -> None:
        assert await backlog(three) == {
            "waiting": 0, "sending": 0, "scheduledUntil": None, "estimatedCompletion": None,
        }  # fmt: skip

    async def test_it_is_the_same_before_and_after_routing(self, three: Platform) -> None:
        await three.post_job(contacts=[str(447700900300 + index) for index in range(30)])
        before = await backlog(three)
        await three.dispatch()
        after = await backlog(three)
        assert before["waiting"] == 30
        assert after["waiting"] + after["sending"] == 30
        assert before["estimatedCompletion"] > NOON

    async def test_a_send_for_later_is_waited_for(self, three: Platform) -> None:
        at = NOON + 7_200_000
        await three.gateway.post("/api/v1/send", json={"to": FRIEND, "message": "later", "sendAt": at})
        found = await backlog(three)
        assert (found["waiting"], found["scheduledUntil"]) == (1, at)
        assert found["estimatedCompletion"] >= at

    async def test_a_job_that_is_spread_is_not_done_before_its_last_message_is_due(self, three: Platform) -> None:
        contacts = [str(447700900300 + index) for index in range(4)]
        await three.post_job(contacts=contacts, spreadMinutes=60)
        found = await backlog(three)
        assert found["waiting"] == 4
        assert found["scheduledUntil"] == NOON + 45 * 60_000
        assert found["estimatedCompletion"] >= found["scheduledUntil"]

    async def test_nobody_could_send_it(self, platform: Platform) -> None:
        await platform.post_job()
        found = await backlog(platform)
        assert (found["waiting"], found["estimatedCompletion"]) == (1, None)


@pytest.mark.parametrize(
    "path", ["/api/sessions", f"/api/sessions/{SESSION}", "/api/proxies", "/api/profiles", "/status"]
)
async def test_whoever_may_read_sees_the_fleet(platform: Platform, path: str) -> None:
    await platform.register()
    answer = await platform.orchestrator.get(path, headers={"X-API-KEY": READ_KEY})
    assert answer.status_code == 200, answer.text
