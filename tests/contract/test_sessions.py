"""/api/sessions: the registry, as an operator and the launcher see it."""

import asyncio
from typing import Any

import pytest

from .platform import DAY_MS, NOON, OTHER_PHONE, PHONE, SESSION, Platform, refused

GOOD = {"phone": PHONE, "sessionId": SESSION}


async def create(platform: Platform, **fields: Any) -> Any:
    return await platform.orchestrator.post("/api/sessions", json={**GOOD, **fields})


async def test_a_session_is_created_once_and_looks_the_same_everywhere(platform: Platform) -> None:
    """201, then 200 for the same again; the list, the single look and the answer agree."""
    fields = {"phone": f"+{PHONE}", "driver": "simulated", "createdAt": NOON - DAY_MS, "timezone": "Asia/Jerusalem"}
    first = await create(platform, **fields, tags=["a"])
    assert first.status_code == 201
    expected = {
        "sessionId": SESSION, "phone": PHONE, "driver": "simulated", "status": "STARTING", "connection": "STARTING",
        "authorisation": "UNLINKED", "desired": "running", "epoch": 0, "createdAt": NOON - DAY_MS, "lastSeen": 0,
        "timezone": "Asia/Jerusalem", "restriction": "NONE", "restrictedUntil": None, "tags": ["a"],
        "paused": False, "removing": False, "generation": 1, "restartReason": None, "failedReason": None,
        "waitReason": None, "proxy": None, "proxyId": None, "direct": True, "profile": None, "displayName": None,
        "lastCommand": None,
    }  # fmt: skip
    assert {name: first.json()[name] for name in expected} == expected
    again = await create(platform, **fields)
    assert (again.status_code, again.json()) == (200, first.json())
    assert (await platform.orchestrator.get(f"/api/sessions/{SESSION}")).json() == first.json()
    page = (await platform.orchestrator.get("/api/sessions")).json()
    assert page == {"items": [first.json()], "nextCursor": None}


async def test_an_id_is_made_when_none_is_given(platform: Platform) -> None:
    made = [(await platform.orchestrator.post("/api/sessions", json={"phone": PHONE})).json() for _ in range(2)]
    assert made[0]["sessionId"] != made[1]["sessionId"]
    assert made[0]["createdAt"] == NOON


async def test_the_list_is_paged(platform: Platform) -> None:
    for number in range(5):
        await platform.register(f"s{number}", str(972_541_000_000 + number))
    seen, cursor = [], ""
    while True:
        page = (await platform.orchestrator.get("/api/sessions", params={"cursor": cursor, "limit": 2})).json()
        seen += [item["sessionId"] for item in page["items"]]
        if not page["nextCursor"]:
            break
        cursor = page["nextCursor"]
    assert seen == ["s0", "s1", "s2", "s3", "s4"]


async def test_an_id_of_another_phone_is_taken(platform: Platform) -> None:
    await platform.register()
    async with platform.nothing_stored():
        refused(await create(platform, phone=OTHER_PHONE), 409, "TAKEN", "sessionId")


async def test_a_fifth_session_of_a_phone_is_refused_under_any_race(platform: Platform) -> None:
    answers = await asyncio.gather(*[create(platform, sessionId=f"s{number}") for number in range(8)])
    assert sorted(answer.status_code for answer in answers) == [201] * 4 + [409] * 4
    for answer in answers:
        if answer.status_code == 409:
            refused(answer, 409, "PHONE_FULL", "phone")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param({"phone": "12"}, "phone", id="no number"),
        pytest.param({"phone": None}, "phone", id="phone null"),
        pytest.param({"sessionId": ""}, "sessionId", id="empty id"),
        pytest.param({"sessionId": "a/b"}, "sessionId", id="id with a slash"),
        pytest.param({"sessionId": "../x"}, "sessionId", id="id that climbs"),
        pytest.param({"sessionId": "a\n"}, "sessionId", id="id with a line end"),
        pytest.param({"sessionId": "x" * 65}, "sessionId", id="id too long"),
        pytest.param({"driver": "fax"}, "driver", id="unknown driver"),
        pytest.param({"createdAt": NOON + 1}, "createdAt", id="from the future"),
        pytest.param({"createdAt": "long ago"}, "createdAt", id="a time that is none"),
        pytest.param({"createdAt": 5}, "createdAt", id="a time in 1970"),
        pytest.param({"timezone": "Mars/Olympus"}, "timezone", id="unknown zone"),
        pytest.param({"timezone": "../../etc/passwd"}, "timezone", id="a zone that climbs"),
        pytest.param({"tags": "a"}, "tags", id="tags no list"),
        pytest.param({"proxy": "x"}, "proxy", id="unknown field"),
    ],
)
async def test_a_bad_field_is_named_and_nothing_stored(platform: Platform, change: dict[str, Any], field: str) -> None:
    async with platform.nothing_stored():
        answer = await create(platform, **change)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["details"]["field"] == field


@pytest.mark.parametrize("session", ["nobody", "status:s1", "outbox:s1", "x" * 100])
async def test_a_session_nobody_knows_is_a_404(platform: Platform, session: str) -> None:
    """Also for an id that would be another key of ours."""
    await platform.connect()
    refused(await platform.orchestrator.get(f"/api/sessions/{session}"), 404, "UNKNOWN_SESSION", "sessionId")
