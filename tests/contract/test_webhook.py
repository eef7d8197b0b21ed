"""/api/webhook: what workers report. Repeated, reordered and senseless events do no harm."""

from itertools import permutations, zip_longest
from typing import Any

import msgspec
import pytest

from .platform import DAY_MS, FRIEND, NOON, OTHER_PHONE, PHONE, SESSION, Platform, refused

UNKNOWN = "01ARZ3NDEKTSV4RRFFQ69G5FAV:0"


def proof(claim: dict[str, Any]) -> dict[str, Any]:
    task = claim["task"]
    return {"messageId": task["taskId"], "to": task["to"], "whatsappId": task["whatsappId"]}


async def session(platform: Platform) -> dict[str, Any]:
    found: dict[str, Any] = (await platform.orchestrator.get(f"/api/sessions/{SESSION}")).json()
    return found


@pytest.mark.parametrize(
    "order",
    list(permutations(["MESSAGE_SENT", "MESSAGE_DELIVERED", "MESSAGE_READ"])),
    ids=">".join,
)
async def test_receipts_in_any_order_and_twice_end_in_the_same_state(
    platform: Platform, order: tuple[str, ...]
) -> None:
    """Nothing moves backwards, nothing is counted twice, JOB_DONE comes once."""
    claim = await platform.claimed()
    for event in order * 2:
        assert (await platform.webhook(event, proof(claim))).status_code == 200
    job_id = claim["task"]["taskId"].partition(":")[0]
    status = (await platform.gateway.get(f"/v1/jobs/{job_id}")).json()
    assert (status["state"], status["progress"]["read"], status["progress"]["sent"]) == ("DONE", 1, 1)
    events = [event["event"] for event in await platform.store.jobs.events(100)]
    assert events.count("JOB_DONE") == 1


def failure(claim: dict[str, Any], **more: Any) -> dict[str, Any]:
    token = msgspec.json.decode(claim["raw"])["token"]
    error = {"code": "SEND_FAILED", "message": "x"}
    return {"messageId": claim["task"]["taskId"], "error": error, "notSent": True, "token": token, "epoch": 1, **more}


async def test_message_failed_and_nack_are_one_fact(platform: Platform) -> None:
    """Whichever comes second adds no failure."""
    claim = await platform.claimed()
    task_id = claim["task"]["taskId"]
    assert (await platform.webhook("MESSAGE_FAILED", failure(claim))).status_code == 200
    assert (await platform.message(task_id))["waiting"]["reason"] == "RETRY"
    await platform.outbox("nack", {"raw": claim["raw"], "epoch": 1, "notSent": True, "error": {"code": "NO_ACK"}})
    assert (await platform.link.read(("HGET", f"message:{task_id}", "failures")))[0] == "1"
    assert (await platform.message(task_id))["waiting"]["reason"] == "RETRY"


async def test_a_sent_after_a_failure_corrects_it(platform: Platform) -> None:
    """The proof counts: the job's numbers follow, without a second JOB_DONE."""
    claim = await platform.claimed()
    await platform.outbox(
        "nack", {"raw": claim["raw"], "epoch": 1, "notSent": True, "error": {"code": "NOT_ON_WHATSAPP"}}
    )
    await platform.webhook("MESSAGE_SENT", proof(claim))
    job_id = claim["task"]["taskId"].partition(":")[0]
    progress = (await platform.gateway.get(f"/v1/jobs/{job_id}")).json()["progress"]
    assert (progress["sent"], progress["failed"]) == (1, 0)
    events = [event["event"] for event in await platform.store.jobs.events(100)]
    assert (events.count("JOB_DONE"), events.count("JOB_CORRECTED")) == (1, 1)


async def test_an_older_word_about_the_connection_does_not_undo_a_newer(platform: Platform) -> None:
    await platform.connect()
    await platform.webhook("DISCONNECTED", {"code": 428}, at_ms=NOON - 1)
    assert (await session(platform))["connection"] == "CONNECTED"
    await platform.webhook("DISCONNECTED", {"code": 428}, at_ms=NOON + 1)
    assert (await session(platform))["connection"] == "RECONNECTING"


async def test_a_worker_whose_clock_is_ahead_does_not_silence_those_after_it(platform: Platform) -> None:
    """An event from the future counts as one of now."""
    await platform.connect()
    await platform.webhook("DISCONNECTED", {"code": 428}, at_ms=NOON + 10**12)
    platform.clock.forward(1)
    await platform.webhook("CONNECTED", {}, at_ms=NOON + 1)
    assert (await session(platform))["connection"] == "CONNECTED"


async def test_what_is_said_after_the_clock_was_set_back_counts(platform: Platform) -> None:
    """Redis' clock went back an hour and the orchestrator was started anew. The worker says once only that it is
    connected, or that there is a limit: neither may count as older than what was heard before."""
    await platform.connect()
    await platform.webhook("DISCONNECTED", {"code": 428})
    await platform.webhook("RESTRICTION", {"kind": "NONE"})
    platform.clock.at_ms -= 3_600_000
    await platform.webhook("CONNECTED", {}, at_ms=NOON + 1_000)
    await platform.webhook("RESTRICTION", {"kind": "TIME_LOCKED", "until": NOON + DAY_MS}, at_ms=NOON + 1_000)
    found = await session(platform)
    assert (found["connection"], found["restriction"]) == ("CONNECTED", "TIME_LOCKED")


async def test_the_next_worker_is_believed_although_its_host_is_behind(platform: Platform) -> None:
    """Its first word is older than the farewell of the one before, by their two clocks; that one's late words are
    told apart by their epoch."""
    await platform.connect()
    await platform.webhook("DISCONNECTED", {"code": 428, "epoch": 1})
    platform.clock.forward(30_000)
    epoch = (await platform.hello(instance="the-new-one")).json()["epoch"]
    await platform.webhook("CONNECTED", {"epoch": epoch}, at_ms=NOON - 300_000)
    assert (await session(platform))["connection"] == "CONNECTED"
    await platform.webhook("DISCONNECTED", {"code": 428, "epoch": 1}, at_ms=NOON)
    assert (await session(platform))["connection"] == "CONNECTED"


@pytest.mark.parametrize(
    ("code", "connection", "restriction"),
    [
        (428, "RECONNECTING", "NONE"),
        (440, "FAILED", "NONE"),
        (401, "FAILED", "QUARANTINED"),
        (402, "FAILED", "QUARANTINED"),
        (403, "FAILED", "QUARANTINED"),
        (406, "FAILED", "QUARANTINED"),
    ],
)
async def test_each_disconnect_has_its_meaning(
    platform: Platform, code: int, connection: str, restriction: str
) -> None:
    await platform.connect()
    await platform.webhook("DISCONNECTED", {"code": code, "reason": "x"})
    found = await session(platform)
    assert (found["connection"], found["restriction"]) == (connection, restriction)


async def test_a_ping_is_a_sign_of_life_and_nothing_more(platform: Platform) -> None:
    await platform.connect()
    before = await platform.snapshot()
    platform.clock.forward(5_000)
    await platform.webhook("PING")
    after = await platform.snapshot()
    assert after.pop(f"session:{SESSION}") == before.pop(f"session:{SESSION}") | {"lastSeen": str(NOON + 5_000)}
    assert (after.pop("sessions:seen"), before.pop("sessions:seen")[SESSION]) == (
        {SESSION: str(NOON + 5_000)},
        str(NOON),
    )
    assert after == before


async def test_what_people_write_is_not_kept_in_the_history_of_the_session(platform: Platform) -> None:
    await platform.connect()
    data = {"from": PHONE, "text": "canary of a private word", "whatsappId": "x"}
    assert (await platform.webhook("MESSAGE_RECEIVED", data)).status_code == 200
    assert "canary" not in repr(await platform.snapshot())


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param({"event": "PARTY"}, "event", id="unknown event"),
        pytest.param({"event": 5}, "event", id="event a number"),
        pytest.param({"timestamp": "now"}, "timestamp", id="timestamp a word"),
        pytest.param({"eventId": ""}, "eventId", id="no event id"),
        pytest.param({"data": []}, "data", id="data a list"),
        pytest.param({"more": 1}, "more", id="unknown field"),
        pytest.param({"event": "MESSAGE_SENT"}, "data.messageId", id="sent without an id"),
        pytest.param({"event": "MESSAGE_SENT", "data": {"messageId": 5}}, "data.messageId", id="sent with a bad id"),
        pytest.param(
            {"event": "MESSAGE_SENT", "data": {"messageId": UNKNOWN}}, "data.whatsappId", id="sent as nothing"
        ),
        pytest.param(
            {"event": "MESSAGE_SENT", "data": {"messageId": UNKNOWN, "whatsappId": "x"}}, "whatsappId", id="wrong id"
        ),
        pytest.param(
            {"event": "MESSAGE_FAILED", "data": {"messageId": UNKNOWN}}, "data.error.code", id="failed without an error"
        ),
        pytest.param({"event": "MESSAGE_RECEIVED", "data": {"whatsappId": "x"}}, "data.from", id="from nobody"),
        pytest.param({"event": "MESSAGE_RECEIVED", "data": {"from": 5}}, "data.from", id="from a number that is none"),
        pytest.param(
            {"event": "MESSAGE_RECEIVED", "data": {"from": FRIEND}}, "data.whatsappId", id="received as nothing"
        ),
        pytest.param({"event": "RESTRICTION"}, "data.kind", id="a limit of no kind"),
        *[
            pytest.param(
                {"event": "RESTRICTION", "data": {"kind": kind, "until": NOON}}, "data.kind", id=f"kind {kind}"
            )
            for kind in ("LOCKED", "", 5, None)
        ],
        pytest.param({"event": "RESTRICTION", "data": {"kind": "CAPPED"}}, "data.until", id="a limit without an end"),
        *[
            pytest.param(
                {"event": "RESTRICTION", "data": {"kind": "TIME_LOCKED", "until": until}},
                "data.until",
                id=f"until {until}",
            )
            for until in (
                None,
                True,
                0,
                -1,
                1.5,
                "soon",
                NOON // 1_000,
                str(NOON),
                [NOON],
                NOON + 366 * DAY_MS + 1,
                10**30,
            )
        ],
    ],
)
async def test_a_bad_event_is_a_400_that_names_the_field(
    platform: Platform, change: dict[str, Any], field: str
) -> None:
    await platform.connect()
    body = {"sessionId": SESSION, "event": "PING", "timestamp": NOON, "eventId": "e", "data": {}, **change}
    async with platform.nothing_stored():
        answer = await platform.worker("/api/webhook", body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["details"]["field"] == field


@pytest.mark.parametrize("not_sent", [True, False])
@pytest.mark.parametrize("task", [UNKNOWN, "x", "a:b:c", "\x00:1"], ids=repr)
async def test_a_failure_of_a_message_that_never_was_is_a_404(platform: Platform, task: str, not_sent: bool) -> None:
    await platform.connect()
    data = {"messageId": task, "error": {"code": "NO_ACK"}, "notSent": not_sent, "token": "1", "epoch": 1}
    async with platform.nothing_stored():
        refused(await platform.webhook("MESSAGE_FAILED", data), 404, "UNKNOWN_TASK")


async def test_an_event_of_a_session_nobody_registered_is_a_404(platform: Platform) -> None:
    async with platform.nothing_stored():
        for event, data in (
            ("CONNECTED", {}),
            ("RESTRICTION", locked(NOON + 1)),
            ("MESSAGE_RECEIVED", word()),
        ):
            refused(await platform.webhook(event, data, session="nobody"), 404, "UNKNOWN_SESSION", "sessionId")


async def test_a_failure_told_again_does_not_settle_the_next_attempt(platform: Platform) -> None:
    """Found in review: a repeated webhook took the second try away from under its worker and freed the phone."""
    first = await platform.claimed()
    await platform.webhook("MESSAGE_FAILED", failure(first))
    platform.clock.forward(600_000)
    await platform.webhook("PING")
    await platform.dispatch()
    second = await platform.claim()
    assert second["task"]["attempt"] == 2
    await platform.webhook("MESSAGE_FAILED", failure(first))
    assert (await platform.message(first["task"]["taskId"]))["state"] == "claimed"
    await platform.webhook("MESSAGE_FAILED", {k: v for k, v in failure(second).items() if k != "token"})
    assert (await platform.message(first["task"]["taskId"]))["state"] == "claimed", "without its claim it is no word"


async def test_the_last_word_of_a_replaced_instance_does_not_silence_the_new_one(platform: Platform) -> None:
    """Found in review: the old worker said "replaced", and the session was FAILED though the new one was connected."""
    await platform.connect()
    assert (await platform.hello(instance="the-new-one")).json()["epoch"] == 2
    await platform.webhook("CONNECTED", {"epoch": 2})
    platform.clock.forward(20)
    await platform.webhook("DISCONNECTED", {"code": 440, "epoch": 1}, at_ms=platform.clock.now_ms())
    assert (await session(platform))["connection"] == "CONNECTED"


# What the platform lays on a number


def locked(until: int | None, kind: str = "TIME_LOCKED", epoch: int = 1) -> dict[str, Any]:
    return {"kind": kind, "until": until, "epoch": epoch}


async def restriction(platform: Platform, phone: str = PHONE) -> tuple[str | None, str | None]:
    [found] = await platform.link.read(("HMGET", f"phone:{phone}", "restriction", "restrictedUntil"))
    return tuple(found)


async def waiting(platform: Platform, task: str) -> tuple[str, int]:
    found = (await platform.message(task))["waiting"]
    return found["reason"], found["until"]


async def incidents(platform: Platform) -> list[dict[str, Any]]:
    [lines] = await platform.link.read(("LRANGE", "antiban:incidents", 0, -1))
    return [msgspec.json.decode(line) for line in lines]


@pytest.mark.parametrize("kind", ["TIME_LOCKED", "CAPPED"])
async def test_a_stated_limit_stands_once_however_often_it_is_told(platform: Platform, kind: str) -> None:
    """Kept with its end, one incident; told again it changes nothing but the session's history."""
    await platform.connect()
    until = NOON + 3_600_000
    assert (await platform.webhook("RESTRICTION", locked(until, kind), id_="lock")).status_code == 200
    assert await restriction(platform) == (kind, str(until))
    [said] = await incidents(platform)
    assert (said["kind"], said["phone"], said["sessionId"], said["until"]) == (
        "PHONE_RESTRICTED", PHONE, SESSION, until,
    )  # fmt: skip
    before = await platform.snapshot()
    for at_ms in (NOON, NOON):
        await platform.webhook("RESTRICTION", locked(until, kind), at_ms=at_ms, id_="lock")
    after = await platform.snapshot()
    history = f"session:events:{SESSION}"
    assert len(after.pop(history)) == len(before.pop(history)) + 2
    assert after == before


@pytest.mark.parametrize(
    "word_of_its_end",
    [locked(None, "NONE"), locked(NOON + 1_000), locked(NOON - DAY_MS)],
    ids=["NONE", "an end that is reached", "an end long past"],
)
async def test_a_limit_that_is_over_is_lifted(platform: Platform, word_of_its_end: dict[str, Any]) -> None:
    """The platform says so, or states an end that is past. Where there is no limit, nothing happens."""
    await platform.connect()
    await platform.webhook("RESTRICTION", locked(NOON + 3_600_000))
    platform.clock.forward(1_000)
    for _ in range(2):
        assert (await platform.webhook("RESTRICTION", word_of_its_end)).status_code == 200
        assert await restriction(platform) == (None, None)
    assert len(await incidents(platform)) == 1


async def test_the_word_that_was_said_last_counts_not_the_one_that_came_last(platform: Platform) -> None:
    await platform.connect()
    platform.clock.forward(10_000)
    await platform.webhook("RESTRICTION", locked(NOON + 3_600_000), at_ms=NOON + 5_000)
    for late in (locked(None, "NONE"), locked(NOON + 60_000), locked(NOON + 90_000_000, "CAPPED")):
        await platform.webhook("RESTRICTION", late, at_ms=NOON + 4_999)
        assert await restriction(platform) == ("TIME_LOCKED", str(NOON + 3_600_000))
    await platform.webhook("RESTRICTION", locked(NOON + 60_000), at_ms=NOON + 5_001)
    assert await restriction(platform) == ("TIME_LOCKED", str(NOON + 60_000))


async def test_a_replaced_instance_can_neither_lock_nor_lift(platform: Platform) -> None:
    """Its events may have waited for hours; its successor was told the truth at its connect."""
    await platform.connect()
    await platform.hello(instance="the-new-one")
    await platform.webhook("RESTRICTION", locked(NOON + 60_000, epoch=1))
    assert await restriction(platform) == (None, None)
    await platform.webhook("RESTRICTION", locked(NOON + 60_000, epoch=2))
    await platform.webhook("RESTRICTION", locked(None, "NONE", epoch=1))
    assert await restriction(platform) == ("TIME_LOCKED", str(NOON + 60_000))


async def test_a_message_to_somebody_new_waits_for_the_end_of_a_limit_and_no_longer(platform: Platform) -> None:
    """Parked until the stated end; an earlier end that is stated later brings it back then."""
    await platform.connect()
    await platform.webhook("RESTRICTION", locked(NOON + 7_200_000))
    job = await platform.post_job(contacts=[FRIEND], phone=PHONE)
    task = f"{job['jobId']}:0"
    await platform.dispatch()
    assert await waiting(platform, task) == ("TIME_LOCKED", NOON + 7_200_000)
    platform.clock.forward(1_000)
    await platform.webhook("RESTRICTION", locked(NOON + 60_000))
    await platform.dispatch()
    assert await waiting(platform, task) == ("TIME_LOCKED", NOON + 60_000)
    platform.clock.forward(59_000)
    await platform.webhook("PING")
    await platform.dispatch()
    assert (await platform.claim())["task"]["taskId"] == task


# What people write


def word(sender: str = FRIEND) -> dict[str, Any]:
    return {"from": sender, "whatsappId": "3A01", "text": "a private word"}


async def conversation(platform: Platform, person: str = FRIEND) -> dict[str, Any] | None:
    [text] = await platform.link.read(("GET", f"sticky:{person}"))
    return dict(zip_longest(("phone", "at", "warm"), text.split())) if text else None


async def knows(platform: Platform, phone: str, person: str = FRIEND) -> bool:
    return (await platform.link.read(("ZSCORE", f"chats:{phone}", person)))[0] is not None


@pytest.mark.parametrize("sender", [FRIEND, f"+{FRIEND}", f"{FRIEND}@s.whatsapp.net", f"{FRIEND}@c.us"])
async def test_whoever_writes_to_a_number_is_known_to_it_and_stays_with_it(platform: Platform, sender: str) -> None:
    """Known as digits, for 90 days and an hour; without what they wrote."""
    await platform.connect()
    platform.clock.forward(5_000)
    assert (await platform.webhook("MESSAGE_RECEIVED", word(sender), at_ms=NOON + 3_000)).status_code == 200
    assert await knows(platform, PHONE)
    assert await conversation(platform) == {"phone": PHONE, "at": str(NOON + 5_000), "warm": str(NOON + 3_000)}
    [ttl] = await platform.link.read(("TTL", f"sticky:{FRIEND}"))
    assert 90 * 86_400 < ttl <= 90 * 86_400 + 3_600
    assert "private" not in repr(await platform.snapshot())


async def test_a_conversation_is_where_the_person_wrote_last(platform: Platform) -> None:
    """A newer word to another number moves it there; an older one that comes late, or the same again, does not."""
    await platform.connect()
    await platform.connect("s2", OTHER_PHONE)
    platform.clock.forward(10_000)
    await platform.webhook("MESSAGE_RECEIVED", word(), at_ms=NOON + 2_000)
    await platform.webhook("MESSAGE_RECEIVED", word(), session="s2", at_ms=NOON + 3_000)
    moved = {"phone": OTHER_PHONE, "at": str(NOON + 10_000), "warm": str(NOON + 3_000)}
    assert await conversation(platform) == moved
    platform.clock.forward(10_000)
    for session, at_ms in ((SESSION, NOON + 2_000), (SESSION, NOON + 2_999), ("s2", NOON + 3_000)):
        assert (await platform.webhook("MESSAGE_RECEIVED", word(), session=session, at_ms=at_ms)).status_code == 200
        assert await conversation(platform) == moved
    assert await knows(platform, PHONE)
    assert await knows(platform, OTHER_PHONE)


@pytest.mark.parametrize("sender", ["120363041234567890@g.us", "123456789012345@lid", "status@broadcast", "x" * 200])
async def test_a_sender_that_is_no_number_is_noted_and_otherwise_ignored(platform: Platform, sender: str) -> None:
    await platform.connect()
    before = await platform.snapshot()
    assert (await platform.webhook("MESSAGE_RECEIVED", word(sender))).status_code == 200
    after = await platform.snapshot()
    history = f"session:events:{SESSION}"
    assert sender in after.pop(history)[0]
    before.pop(history)
    assert after == before


async def test_somebody_who_wrote_is_served_by_a_number_that_may_start_no_chats(platform: Platform) -> None:
    """A time lock keeps the number from new people alone."""
    await platform.connect()
    await platform.webhook("RESTRICTION", locked(NOON + 3_600_000))
    await platform.webhook("MESSAGE_RECEIVED", word())
    await platform.post_job(contacts=[FRIEND])
    await platform.dispatch()
    assert (await platform.claim())["task"]["to"] == FRIEND


@pytest.mark.parametrize("not_sent", [None, False, True])
async def test_a_463_is_a_refusal_however_it_is_told(platform: Platform, not_sent: bool | None) -> None:
    """Found in review: without `notSent` it was taken for an unknown outcome and tried again."""
    claim = await platform.claimed()
    data = failure(claim, error={"code": "463", "message": "restricted"}, notSent=not_sent)
    assert (await platform.webhook("MESSAGE_FAILED", data)).status_code == 200
    view = await platform.message(claim["task"]["taskId"])
    assert (view["state"], view["lastError"]["code"]) == ("failed", "463")
    assert (await session(platform))["restriction"] == "TIME_LOCKED"


async def test_a_rate_limit_in_a_nack_without_notsent_still_rests_the_number(platform: Platform) -> None:
    """The code itself says that the server did not take it."""
    claim = await platform.claimed()
    await platform.outbox("nack", {"raw": claim["raw"], "epoch": 1, "error": {"code": "RATE_LIMIT"}})
    assert (await session(platform))["restriction"] == "COOLDOWN"


@pytest.mark.parametrize("code", [[], {}, "x", None, "403", 403], ids=repr)
async def test_any_disconnect_code_is_taken(platform: Platform, code: Any) -> None:
    """Found in review: a list was a 500, and "403" as text was no ban."""
    await platform.connect()
    assert (await platform.webhook("DISCONNECTED", {"code": code})).status_code == 200
    expected = "QUARANTINED" if code in ("403", 403) else "NONE"
    assert (await session(platform))["restriction"] == expected


@pytest.mark.parametrize("event", ["MESSAGE_SENT", "MESSAGE_FAILED", "MESSAGE_READ"])
async def test_an_index_beyond_all_bounds_is_a_404(platform: Platform, event: str) -> None:
    """Found in review: Redis' own error about the offset became a 500."""
    await platform.connect()
    data = {"messageId": "A:99999999999999999999", "whatsappId": "x", "error": {"code": "x"}, "token": 1, "epoch": 1}
    refused(await platform.webhook(event, data), 404, "UNKNOWN_TASK")
