"""/v1/suppressions: adding, listing page by page, removing."""

from typing import Any

import pytest

from .platform import FRIEND, NOON, SEND_KEY, Platform, refused


async def test_one_or_many_are_added_and_listed_with_when_why_and_by_whom(platform: Platform) -> None:
    one = await platform.gateway.post("/v1/suppressions", json={"to": f"+{FRIEND}", "reason": "asked"})
    many = {"to": [FRIEND, "447911123456", "+44 7911 123456"]}
    more = await platform.gateway.post("/v1/suppressions", json=many, headers={"X-API-KEY": SEND_KEY})
    assert (one.json(), more.json()) == ({"added": 1}, {"added": 1})
    body = (await platform.gateway.get("/v1/suppressions")).json()
    assert body == {
        "items": [
            {"to": "447911123456", "at": NOON, "reason": "", "source": "sender"},
            {"to": FRIEND, "at": NOON, "reason": "asked", "source": "bootstrap"},
        ],
        "nextCursor": None,
    }


async def test_the_list_is_paged(platform: Platform) -> None:
    """Each person stands on one page, and the last page says that it is."""
    people = [str(972_540_000_000 + i) for i in range(25)]
    await platform.gateway.post("/v1/suppressions", json={"to": people})
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = (await platform.gateway.get("/v1/suppressions", params={"cursor": cursor, "limit": 10})).json()
        seen += [item["to"] for item in page["items"]]
        cursor = page["nextCursor"]
    assert seen == people


@pytest.mark.parametrize("asked", ["+55 11 98765-4321", "551187654321", "5501187654321"])
async def test_one_person_is_found_in_any_notation(platform: Platform, asked: str) -> None:
    await platform.gateway.post("/v1/suppressions", json={"to": ["551187654321", FRIEND], "reason": "asked"})
    page = (await platform.gateway.get("/v1/suppressions", params={"to": asked})).json()
    item = {"to": "551187654321", "at": NOON, "reason": "asked", "source": "bootstrap"}
    assert page == {"items": [item], "nextCursor": None}
    sheet = await platform.gateway.get("/v1/suppressions", params={"to": asked}, headers={"Accept": "text/csv"})
    assert [line.split(",")[0] for line in sheet.text.split()] == ["to", "551187654321"]


async def test_a_person_who_may_be_written_to_is_not_found(platform: Platform) -> None:
    await platform.gateway.post("/v1/suppressions", json={"to": "447911123456"})
    page = (await platform.gateway.get("/v1/suppressions", params={"to": FRIEND})).json()
    assert page == {"items": [], "nextCursor": None}


@pytest.mark.parametrize(
    ("query", "code", "field"),
    [
        pytest.param("to=nobody", "INVALID_NUMBER", "to", id="no number"),
        pytest.param("to=", "INVALID_NUMBER", "to", id="nobody: not the whole list"),
        pytest.param(f"to={FRIEND}&cursor=1", "INVALID_REQUEST", "cursor", id="a page of one person"),
    ],
)
async def test_a_bad_question_about_a_person(platform: Platform, query: str, code: str, field: str) -> None:
    refused(await platform.gateway.get(f"/v1/suppressions?{query}"), 400, code, field)


async def test_a_person_is_taken_off_once(platform: Platform) -> None:
    await platform.gateway.post("/v1/suppressions", json={"to": FRIEND})
    answer = await platform.gateway.delete(f"/v1/suppressions/+{FRIEND}")
    assert answer.json() == {"removed": True, "to": FRIEND}
    refused(await platform.gateway.delete(f"/v1/suppressions/{FRIEND}"), 404, "NOT_FOUND", "to")
    assert (await platform.gateway.get("/v1/suppressions")).json()["items"] == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        pytest.param({}, "to", id="nothing"),
        pytest.param({"to": 5}, "to", id="a number"),
        pytest.param({"to": "x"}, "to", id="no phone number"),
        pytest.param({"to": []}, "to", id="an empty list"),
        pytest.param({"to": [FRIEND, "x"]}, "to[1]", id="one that is none"),
        pytest.param({"to": [FRIEND, 5]}, "to[1]", id="one of the wrong type"),
        pytest.param({"to": [FRIEND] * 10_001}, "to", id="too many"),
        pytest.param({"to": FRIEND, "reason": 5}, "reason", id="a reason that is none"),
        pytest.param({"to": FRIEND, "why": "x"}, "why", id="unknown field"),
    ],
)
async def test_a_bad_body_adds_nobody(platform: Platform, body: dict[str, Any], field: str) -> None:
    async with platform.nothing_stored():
        answer = await platform.gateway.post("/v1/suppressions", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["details"]["field"] == field


async def test_a_bad_cursor_or_number_is_a_400(platform: Platform) -> None:
    refused(await platform.gateway.get("/v1/suppressions?cursor=[x"), 400, "INVALID_REQUEST", "cursor")
    refused(await platform.gateway.delete("/v1/suppressions/x"), 400, "INVALID_NUMBER", "to")


async def test_somebody_added_after_accept_gets_nothing(platform: Platform) -> None:
    """Checked again at the claim: the message ends `suppressed`, the job ends."""
    await platform.connect()
    job = await platform.post_job()
    await platform.dispatch()
    await platform.gateway.post("/v1/suppressions", json={"to": FRIEND})
    assert (await platform.claim())["task"] is None
    status = (await platform.gateway.get(job["statusUrl"])).json()
    assert (status["state"], status["progress"]["suppressed"]) == ("DONE", 1)
