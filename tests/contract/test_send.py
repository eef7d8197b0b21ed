"""POST /api/v1/send: one message, now or later, from a named number or the best one."""

from typing import Any

import pytest

from paceline.gateway.watcher import Watcher

from .platform import DAY_MS, FRIEND, NOON, OTHER_PHONE, PHONE, SESSION, Platform, refused

GOOD = {"to": FRIEND, "message": "hello"}


async def send(platform: Platform, **fields: Any) -> Any:
    return await platform.gateway.post("/api/v1/send", json={**GOOD, **fields})


async def test_a_message_is_queued_for_a_number_chosen_at_once(platform: Platform) -> None:
    """The answer has its id, its place and a time; the queue of the number has it."""
    await platform.connect()
    body = (await send(platform)).json()
    assert (body["queued"], body["position"]) == (True, 0)
    assert body["estimatedDelivery"] >= NOON
    assert (await platform.message(body["messageId"]))["phone"] == PHONE
    assert (await send(platform, to="972529876544")).json()["position"] == 1


async def test_the_named_number_is_taken_by_session_or_by_phone(platform: Platform) -> None:
    await platform.connect()
    await platform.connect("s2", OTHER_PHONE)
    for name, phone in (({"sessionId": "s2"}, OTHER_PHONE), ({"phone": f"+{OTHER_PHONE}"}, OTHER_PHONE)):
        body = (await send(platform, **name)).json()
        assert (await platform.message(body["messageId"]))["phone"] == phone


async def test_the_number_that_wrote_last_writes_again(platform: Platform) -> None:
    """Sticky: a second message goes from the same number although the other is less loaded."""
    await platform.connect()
    await platform.connect("s2", OTHER_PHONE)
    first = (await send(platform)).json()
    second = (await send(platform)).json()
    phones = {(await platform.message(body["messageId"]))["phone"] for body in (first, second)}
    assert len(phones) == 1


async def test_without_any_number_it_waits_as_a_job_of_one(platform: Platform) -> None:
    """Accepted all the same, and sent as soon as a number comes."""
    body = (await send(platform)).json()
    assert body == {"queued": True, "messageId": body["messageId"], "position": 0, "estimatedDelivery": None}
    await platform.dispatch()
    message = await platform.message(body["messageId"])
    assert (message["state"], message["waiting"]["reason"]) == ("queued", "NO_SESSIONS_AVAILABLE")
    await platform.connect()
    platform.clock.forward(1_000)
    await platform.dispatch()
    assert (await platform.claim())["task"]["taskId"] == body["messageId"]


async def test_a_scheduled_message_waits_for_its_time(platform: Platform) -> None:
    await platform.connect()
    body = (await send(platform, sendAt=NOON + 3_600_000)).json()
    message = await platform.message(body["messageId"])
    assert (message["state"], message["waiting"]["reason"]) == ("scheduled", "SCHEDULED")
    assert message["waiting"]["until"] == NOON + 3_600_000
    assert body["estimatedDelivery"] >= NOON + 3_600_000


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param({"to": "12"}, "to", id="to no number"),
        pytest.param({"to": "hello"}, "to", id="to a word"),
        pytest.param({"to": 972529876543}, "to", id="to an integer"),
        pytest.param({"to": ""}, "to", id="to empty"),
        pytest.param({"to": "9" * 65}, "to", id="to endless"),
        pytest.param({"message": ""}, "message", id="no text"),
        pytest.param({"message": "\t"}, "message", id="blank"),
        pytest.param({"message": "x" * 4097}, "message", id="4,097 characters"),
        pytest.param({"message": "hi {{name}}"}, "message", id="a variable nobody fills"),
        pytest.param({"message": None}, "message", id="null"),
        pytest.param({"priority": 9}, "priority", id="priority 9"),
        pytest.param({"sendAt": "soon"}, "sendAt", id="sendAt a word"),
        pytest.param({"phone": "x"}, "phone", id="phone no number"),
        pytest.param({"text": "hello"}, "text", id="unknown field"),
    ],
)
async def test_a_bad_field_is_named_and_nothing_stored(platform: Platform, change: dict[str, Any], field: str) -> None:
    await platform.connect()
    async with platform.nothing_stored():
        answer = await send(platform, **change)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["details"]["field"] == field


async def test_4_096_characters_are_just_right(platform: Platform) -> None:
    assert (await send(platform, message="x" * 4096)).status_code == 200


async def test_an_unknown_session_is_a_404(platform: Platform) -> None:
    async with platform.nothing_stored():
        refused(await send(platform, sessionId="nobody"), 404, "UNKNOWN_SESSION", "sessionId")


async def test_a_suppressed_recipient_is_a_422(platform: Platform) -> None:
    await platform.connect()
    await platform.gateway.post("/v1/suppressions", json={"to": FRIEND})
    async with platform.nothing_stored():
        refused(await send(platform, to=f"+{FRIEND}"), 422, "SUPPRESSED", "to")


async def test_a_named_number_that_has_sent_its_day_is_a_429(platform: Platform) -> None:
    """With the limit and the time until midnight; a message for later, or for any number, is taken."""
    await platform.connect()
    await platform.pace(cap_day="2026-03-10", cap_used="500")
    async with platform.nothing_stored():
        answer = await send(platform, sessionId=SESSION)
    error = refused(answer, 429, "DAILY_LIMIT_REACHED")
    assert error["details"]["limit"] == 500
    assert error["retryAfterSeconds"] == int(answer.headers["Retry-After"]) == 12 * 3600
    assert (await send(platform, sessionId=SESSION, sendAt=NOON + DAY_MS)).status_code == 200
    assert (await send(platform)).status_code == 200


async def test_over_1_000_waiting_single_messages_are_a_429(platform: Platform) -> None:
    await platform.connect()
    await platform.link.read(("SADD", f"queue:singles:{PHONE}", *[f"x:{i}" for i in range(1_000)]))
    async with platform.nothing_stored():
        answer = await send(platform, phone=PHONE)
    refused(answer, 429, "QUEUE_FULL")
    assert int(answer.headers["Retry-After"]) > 0


async def test_a_number_registered_a_moment_ago_can_be_named(platform: Platform) -> None:
    """The gateway's picture of the fleet may be a second old; that must not refuse what is true now."""
    await send(platform)
    await platform.connect()
    body = (await send(platform, sessionId=SESSION)).json()
    assert (await platform.message(body["messageId"]))["phone"] == PHONE


@pytest.mark.parametrize("session", ["status:s1", "s 1", "s1:x", "é", "x" * 65])
async def test_what_cannot_be_a_session_is_a_404_like_any_unknown_one(platform: Platform, session: str) -> None:
    """`status:s1` named another key of ours once, and the answer was a 500."""
    await platform.connect()
    async with platform.nothing_stored():
        refused(await send(platform, sessionId=session), 404, "UNKNOWN_SESSION", "sessionId")


NAMING = [
    pytest.param("/api/v1/send", {"to": FRIEND, "message": "hi"}, id="send"),
    pytest.param("/api/v1/send/batch", {"messages": [{"to": FRIEND, "text": "hi"}]}, id="batch"),
    pytest.param("/v1/jobs", {"contacts": [FRIEND], "text": "hi"}, id="job"),
    pytest.param("/v1/jobs/plan", {"contacts": [FRIEND], "text": "hi"}, id="plan"),
]


@pytest.mark.parametrize(("path", "body"), NAMING)
async def test_what_is_for_a_number_that_was_removed_is_refused(
    platform: Platform, path: str, body: dict[str, Any]
) -> None:
    """It was queued for a number that nobody serves any more, and waited in vain until it expired."""

    async def post(**name: str) -> Any:
        return await platform.gateway.post(path, json={**body, **name})

    await platform.connect()
    assert (await platform.orchestrator.delete(f"/api/sessions/{SESSION}")).status_code == 202
    async with platform.nothing_stored():
        refused(await post(phone=PHONE), 404, "UNKNOWN_PHONE", "phone")
        refused(await post(sessionId=SESSION), 409, "SESSION_REMOVING", "sessionId")
    assert (await platform.store.fleet.finish_removal(SESSION, now_ms=NOON)).code == "OK"
    async with platform.nothing_stored():
        refused(await post(phone=PHONE), 404, "UNKNOWN_PHONE", "phone")
        refused(await post(sessionId=SESSION), 404, "UNKNOWN_SESSION", "sessionId")
    await platform.connect("s2")
    assert (await post(phone=PHONE)).status_code in (200, 202)


async def test_a_number_is_served_while_one_of_its_sessions_stays(platform: Platform) -> None:
    await platform.connect()
    await platform.register("s2")
    assert (await platform.orchestrator.delete(f"/api/sessions/{SESSION}")).status_code == 202
    assert (await send(platform, phone=PHONE)).status_code == 200


async def test_single_sends_follow_the_servers_strategy(platform: Platform) -> None:
    """With round_robin each goes to the next number, also to the same person."""
    await platform.connect()
    await platform.connect("s2", OTHER_PHONE)
    platform.intake.watcher = Watcher(platform.store, platform.rules, "round_robin")
    phones = []
    for _ in range(4):
        body = (await send(platform)).json()
        phones.append((await platform.message(body["messageId"]))["phone"])
    assert phones[:2] == phones[2:]
    assert set(phones) == {PHONE, OTHER_PHONE}


async def test_a_restricted_number_gets_only_people_it_knows(platform: Platform) -> None:
    """The least loaded one may start no new chat; a stranger goes to the other, an old acquaintance stays."""
    await platform.connect()
    await platform.connect("s2", OTHER_PHONE)
    await platform.link.read(
        ("HSET", f"phone:{PHONE}", "restriction", "TIME_LOCKED", "restrictedUntil", NOON + DAY_MS),
        ("ZADD", f"chats:{PHONE}", NOON, FRIEND),
        ("SET", f"sticky:{FRIEND}", f"{PHONE} {NOON}"),
    )
    for to, phone in (("972529876544", OTHER_PHONE), (FRIEND, PHONE)):
        body = (await send(platform, to=to)).json()
        assert (await platform.message(body["messageId"]))["phone"] == phone


@pytest.mark.parametrize("name", [{}, {"phone": PHONE}], ids=["every number is locked", "it is named"])
async def test_only_those_it_knows_are_promised_a_message_from_a_locked_number(
    platform: Platform, name: dict[str, str]
) -> None:
    """A stranger was told seconds, and got it a day later."""
    await platform.connect()
    await platform.link.read(
        ("HSET", f"phone:{PHONE}", "restriction", "TIME_LOCKED", "restrictedUntil", NOON + DAY_MS),
        ("ZADD", f"chats:{PHONE}", NOON, FRIEND),
    )
    stranger, friend = [(await send(platform, to=to, **name)).json() for to in ("972529876544", FRIEND)]
    assert friend["estimatedDelivery"] < NOON + 60_000
    assert stranger["estimatedDelivery"] >= NOON + DAY_MS


async def test_each_message_is_told_its_own_time(platform: Platform) -> None:
    """Twenty in the same second went to one number, and all were told the time of the first."""
    await platform.connect()
    bodies = [(await send(platform, to=f"97252111{n:04d}")).json() for n in range(20)]
    times = [body["estimatedDelivery"] for body in bodies]
    assert times == sorted(set(times))
    assert times[-1] > times[0] + 60_000


async def test_the_time_is_that_of_the_number_that_was_chosen(platform: Platform) -> None:
    """A hundred wait for one number; a message for the other goes at once, and one for the first behind them."""
    await platform.connect()
    await platform.connect("s2", OTHER_PHONE)
    await platform.post_job(contacts=[f"97253{i:07d}" for i in range(100)], phone=PHONE)
    await platform.dispatch()
    platform.clock.forward(1_000)
    free = (await send(platform)).json()
    behind = (await send(platform, to="972527777777", phone=PHONE)).json()
    urgent = (await send(platform, to="972527777778", phone=PHONE, priority=3)).json()
    assert free["estimatedDelivery"] < NOON + 60_000
    assert urgent["estimatedDelivery"] < NOON + 120_000
    assert behind["estimatedDelivery"] > NOON + 10 * 60_000


async def test_a_message_for_later_does_not_wait_for_what_is_gone_by_then(platform: Platform) -> None:
    await platform.connect()
    await platform.post_job(contacts=[f"97253{i:07d}" for i in range(100)], phone=PHONE)
    await platform.dispatch()
    platform.clock.forward(1_000)
    for hours in (1, 23):
        at = NOON + hours * 3_600_000
        body = (await send(platform, to=f"9725277777{hours:02d}", sendAt=at)).json()
        assert at <= body["estimatedDelivery"] < at + 60_000


async def test_messages_for_later_spread_over_the_numbers(platform: Platform) -> None:
    """They lie in no queue yet, so the first number looked idle and got all of them."""
    await platform.connect()
    await platform.connect("s2", OTHER_PHONE)
    chosen = []
    for n in range(6):
        platform.clock.forward(1_000)
        body = (await send(platform, to=f"97252111{n:04d}", sendAt=NOON + 3_600_000, priority=1 + n % 3)).json()
        chosen.append((await platform.message(body["messageId"]))["phone"])
    assert (chosen.count(PHONE), chosen.count(OTHER_PHONE)) == (3, 3)


@pytest.mark.parametrize("later", [{}, {"sendAt": NOON + 3_600_000}], ids=["now", "later"])
async def test_a_number_full_of_single_messages_is_not_chosen(platform: Platform, later: dict[str, Any]) -> None:
    """A thousand for later filled the first number, and what came next was refused though another was free."""
    await platform.connect()
    await platform.connect("s2", OTHER_PHONE)
    await platform.link.read(("SADD", f"queue:singles:{PHONE}", *[f"x:{i}" for i in range(1_000)]))
    answer = await send(platform, **later)
    assert answer.status_code == 200, answer.text
    assert (await platform.message(answer.json()["messageId"]))["phone"] == OTHER_PHONE


async def test_a_message_for_tomorrow_does_not_need_a_unit_of_today(platform: Platform) -> None:
    await platform.connect()
    await platform.pace(cap_day="2026-03-10", cap_used="500")
    body = (await send(platform, sendAt=NOON + DAY_MS)).json()
    assert (await platform.message(body["messageId"]))["phone"] == PHONE
    assert NOON + DAY_MS <= body["estimatedDelivery"] < NOON + DAY_MS + 60_000
