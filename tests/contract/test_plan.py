"""POST /v1/jobs/plan: the same body and the same refusals as a job, nothing stored, an answer that adds up."""

import pytest

from .platform import DAY_MS, FRIEND, NOON, OTHER_PHONE, PHONE, READ_KEY, SEND_KEY, SESSION, Platform


def israelis(count: int) -> list[str]:
    return [f"97252{i:07d}" for i in range(count)]


async def ask(platform: Platform, **body: object) -> dict:
    async with platform.nothing_stored():
        answer = await platform.gateway.post("/v1/jobs/plan", json={"text": "hi", **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_plan_of_two_days(platform: Platform) -> None:
    """One hot number sends 500 today and the rest tomorrow; days, phones and the job agree."""
    await platform.connect()
    plan = await ask(platform, contacts=israelis(700))
    assert (plan["accepted"], plan["suppressed"], plan["duplicates"], plan["rejected"]) == (700, 0, 0, [])
    assert [(day["date"], day["messages"], day["phones"]) for day in plan["days"]] == [
        ("2026-03-10", 500, 1),
        ("2026-03-11", 200, 1),
    ]
    (phone,) = plan["phones"]
    assert (phone["phone"], phone["sessionId"], phone["messages"]) == (PHONE, SESSION, 700)
    assert phone["limitedBy"] == plan["bottleneck"] == "DAILY_CAP"
    assert NOON <= plan["startsAt"] < NOON + 10_000
    assert NOON + 18 * 3_600_000 < plan["finishesAt"] < NOON + DAY_MS
    assert plan["willExpire"] == {"count": 0, "why": None}
    assert plan["refused"] == []


async def test_a_plan_and_the_job_say_the_same(platform: Platform) -> None:
    """What a plan promises is what the accepted job is told, and its status a moment later."""
    await platform.connect()
    plan = await ask(platform, contacts=israelis(600))
    job = await platform.post_job(contacts=israelis(600))
    assert job["estimatedCompletion"] == plan["finishesAt"]


async def test_advice_is_forecast(platform: Platform) -> None:
    """Two more hot numbers would end a two-day job today, and the advice says so in words."""
    await platform.connect()
    plan = await ask(platform, contacts=israelis(1_200))
    more = next(item for item in plan["suggestions"] if item["text"].startswith("two more hot numbers: done today "))
    assert more["change"] == "MORE_NUMBERS"
    assert more["finishesAt"] < NOON + 3 * 3_600_000 < plan["finishesAt"]


async def test_without_the_spread(platform: Platform) -> None:
    """A spread job ends with its last message; the advice knows what the spread costs."""
    await platform.connect()
    plan = await ask(platform, contacts=israelis(60), spreadMinutes=300)
    assert plan["bottleneck"] == "SPREAD"
    assert NOON + 290 * 60_000 < plan["finishesAt"] < NOON + 301 * 60_000
    assert any(item["change"] == "NO_SPREAD" for item in plan["suggestions"])


async def test_contacts_are_counted_as_a_job_would(platform: Platform) -> None:
    """Bad, doubled and suppressed contacts, in digits or not, are told as POST /v1/jobs tells them."""
    await platform.connect()
    await platform.gateway.post("/v1/suppressions", json={"to": FRIEND})
    contacts = [*israelis(5), israelis(1)[0], "+972 52-000-0003", FRIEND, "12"]
    plan = await ask(platform, contacts=contacts)
    job = await platform.post_job(contacts=contacts)
    for field in ("accepted", "suppressed", "duplicates", "rejected"):
        assert plan[field] == job[field]
    assert (plan["accepted"], plan["suppressed"], plan["duplicates"]) == (5, 1, 2)
    bare = await ask(platform, contacts=[*israelis(5), israelis(1)[0], FRIEND])
    assert (bare["accepted"], bare["suppressed"], bare["duplicates"]) == (5, 1, 1)


@pytest.mark.parametrize(
    "notations",
    [
        pytest.param(["+55 11 98765-4321", "551187654321", "+55 (0)11 8765 4321"], id="Brazil"),
        pytest.param(["5491123456789", "+54 11 2345-6789"], id="Argentina"),
        pytest.param(["+52 1 55 1234 5678", "+52 55 1234 5678"], id="Mexico"),
        pytest.param(["+972 54 123 4567", "9720541234567"], id="a trunk 0"),
    ],
)
async def test_a_person_in_two_notations_gets_a_job_once(platform: Platform, notations: list[str]) -> None:
    """They were written to once for each way in which their number was written."""
    await platform.connect()
    for contacts in (notations, [{"to": to, "vars": {}} for to in reversed(notations)]):
        plan = await ask(platform, contacts=contacts)
        job = await platform.post_job(contacts=contacts)
        for answer in (plan, job):
            assert (answer["accepted"], answer["duplicates"], answer["rejected"]) == (1, len(notations) - 1, [])


async def test_what_would_expire(platform: Platform) -> None:
    """What does not fit into the validity is counted, with the reason."""
    await platform.connect()
    plan = await ask(platform, contacts=israelis(2_000), validitySeconds=3_600)
    assert 1_400 <= plan["willExpire"]["count"] <= 1_700
    assert plan["willExpire"]["why"] == "DAILY_CAP"


async def test_people_with_no_common_hours(platform: Platform) -> None:
    """Recipients who sleep whenever the number may send are refused, and said so before anything is sent."""
    await platform.connect()
    contacts = [*israelis(50), *({"to": f"97253{i:07d}", "timezone": "Pacific/Honolulu"} for i in range(50))]
    plan = await ask(platform, contacts=contacts)
    assert plan["accepted"] == 100
    assert sum(day["messages"] for day in plan["days"]) == 100 - sum(item["count"] for item in plan["refused"])


async def test_with_no_number(platform: Platform) -> None:
    """Nobody could send: no date, and the reason."""
    plan = await ask(platform, contacts=israelis(3))
    assert (plan["finishesAt"], plan["startsAt"], plan["days"], plan["phones"]) == (None, None, [], [])
    assert plan["bottleneck"] == "NO_SESSIONS_AVAILABLE"
    assert plan["suggestions"][0]["change"] == "MORE_NUMBERS"


async def test_from_one_number(platform: Platform) -> None:
    """A job that names its number is forecast with that one alone, and told what all would do."""
    await platform.connect()
    await platform.connect("s2", OTHER_PHONE)
    plan = await ask(platform, contacts=israelis(400), phone=OTHER_PHONE)
    assert [(phone["phone"], phone["messages"]) for phone in plan["phones"]] == [(OTHER_PHONE, 400)]
    assert any(item["change"] == "ANY_NUMBER" for item in plan["suggestions"])


@pytest.mark.parametrize("key", [SEND_KEY, READ_KEY])
async def test_who_may_plan(platform: Platform, key: str) -> None:
    """A key that may send, or only look, may plan."""
    body = {"text": "hi", "contacts": israelis(2)}
    answer = await platform.gateway.post("/v1/jobs/plan", json=body, headers={"X-API-KEY": key})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        pytest.param({"contacts": [], "text": "hi"}, 400, "contacts", id="no contacts"),
        pytest.param({"contacts": ["972520000001"], "text": ""}, 400, "text", id="no text"),
        pytest.param({"contacts": ["12"], "text": "hi"}, 422, "contacts", id="nothing accepted"),
        pytest.param({"contacts": ["972520000001"], "text": "x", "sendAt": "soon"}, 400, "sendAt", id="no time"),
        pytest.param({"contacts": ["972520000001"], "text": "x", "phone": "972541111111"}, 404, "phone", id="phone"),
        pytest.param({"contacts": ["972520000001"], "text": "x", "sessionId": "no"}, 404, "sessionId", id="session"),
        pytest.param({"contacts": ["972520000001", "1"], "text": "x", "strict": True}, 422, "contacts", id="strict"),
    ],
)
async def test_bad_bodies(platform: Platform, body: dict, status: int, field: str) -> None:
    """Refused like the job itself, with the field's name."""
    async with platform.nothing_stored():
        answer = await platform.gateway.post("/v1/jobs/plan", json=body)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]["details"]["field"] == field


async def test_a_spread_job_over_night(platform: Platform) -> None:
    """Who is due while the number is closed, and is valid for an hour, ends before it opens; nobody was told."""
    await platform.connect()
    body = {"contacts": israelis(240), "spreadMinutes": 1_440, "validitySeconds": 3_600}
    plan = await ask(platform, **body)
    # Ten an hour; closed from 23 to 7, and the last hour of that lives to see the morning.
    assert plan["willExpire"]["why"] == "HOURS"
    assert plan["willExpire"]["count"] == pytest.approx(70, abs=3)
    assert (await platform.post_job(**body))["willExpire"] == plan["willExpire"]["count"]
    by_day = await ask(platform, contacts=israelis(60), spreadMinutes=300, validitySeconds=3_600)
    assert by_day["willExpire"] == {"count": 0, "why": None}
