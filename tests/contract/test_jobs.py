"""POST /v1/jobs and what can be asked about a job afterwards."""

from typing import Any

import pytest

from paceline.gateway import stretches

from .platform import DAY_MS, FRIEND, NOON, OTHER_PHONE, PHONE, SESSION, Platform, big_job, refused

JSON = {"Content-Type": "application/json"}
GOOD = {"contacts": [FRIEND], "text": "hello"}


async def test_a_job_is_accepted_with_its_counts_and_its_url(platform: Platform) -> None:
    """The answer names everything: taken, suppressed, doubled, refused, and where to ask."""
    await platform.gateway.post("/v1/suppressions", json={"to": "972529876544"})
    contacts = [FRIEND, "+972 52-987-6543", "972529876544", "12", {"to": "447911123456", "clientRef": "c1"}]
    answer = await platform.gateway.post("/v1/jobs", json={"contacts": contacts, "text": "hello"})
    assert answer.status_code == 202
    body = answer.json()
    assert body == {
        "status": "accepted",
        "jobId": body["jobId"],
        "total": 5,
        "accepted": 2,
        "suppressed": 1,
        "duplicates": 1,
        "rejected": [{"index": 3, "to": "12", "code": "INVALID_NUMBER"}],
        "willExpire": 0,
        "statusUrl": f"/v1/jobs/{body['jobId']}",
        "estimatedCompletion": None,
    }
    status = (await platform.gateway.get(body["statusUrl"])).json()
    assert (status["state"], status["progress"]["total"], status["progress"]["queued"]) == ("QUEUED", 2, 2)


async def test_all_fields_of_a_job_come_back(platform: Platform) -> None:
    """What the caller said about the job is kept as said."""
    await platform.register()
    send_at = NOON + DAY_MS
    job = await platform.post_job(
        sessionId=SESSION, phone=f"+{PHONE}", tags=["a"], strategy="round_robin", priority=3, spreadMinutes=10,
        sendAt=send_at, validitySeconds=3_600, onUnknown="hold", strict=True, metadata={"campaign": {"id": 7}},
    )  # fmt: skip
    status = (await platform.gateway.get(job["statusUrl"])).json()
    expected = {
        "phone": PHONE, "sessionId": SESSION, "tags": ["a"], "priority": 3, "spreadMinutes": 10, "sendAt": send_at,
        "validitySeconds": 3_600, "onUnknown": "hold", "strategy": "round_robin", "metadata": {"campaign": {"id": 7}},
    }  # fmt: skip
    assert {name: status[name] for name in expected} == expected
    assert (status["acceptedAt"], status["acceptedBy"]) == (NOON, "bootstrap")
    assert "text" not in status


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param({"contacts": None}, "contacts", id="contacts null"),
        pytest.param({"contacts": "972529876543"}, "contacts", id="contacts no list"),
        pytest.param({"contacts": []}, "contacts", id="0 contacts"),
        pytest.param({"contacts": [FRIEND, FRIEND, 3]}, "contacts[2]", id="a contact that is a number"),
        pytest.param({"contacts": [FRIEND, {}]}, "contacts[1].to", id="a contact without to"),
        pytest.param({"contacts": [{"to": 5}]}, "contacts[0].to", id="to is no string"),
        pytest.param({"contacts": [{"to": FRIEND, "name": "x"}]}, "contacts[0].name", id="unknown field of a contact"),
        pytest.param(
            {"contacts": [{"to": FRIEND, "vars": {"a": 1}}]}, "contacts[0].vars[...]", id="a variable no string"
        ),
        pytest.param({"text": None}, "text", id="text null"),
        pytest.param({"text": 5}, "text", id="text a number"),
        pytest.param({"text": ""}, "text", id="text empty"),
        pytest.param({"text": " \n"}, "text", id="text blank"),
        pytest.param({"text": "x" * 4097}, "text", id="4,097 characters"),
        pytest.param({"text": "x" * 4097 + "{{name}}"}, "text", id="4,097 characters and a variable"),
        pytest.param({"text": "x" * 70_000}, "text", id="70,000 characters"),
        pytest.param({"mode": "image"}, "mediaRef", id="an image without a file"),
        pytest.param({"mode": "document", "mediaRef": "x", "mediaUrl": "y"}, "mediaUrl", id="two files"),
        pytest.param({"mode": "fax"}, "mode", id="mode unknown"),
        pytest.param({"mediaRef": "x"}, "mediaRef", id="media without mode"),
        pytest.param({"sessionId": 5}, "sessionId", id="sessionId a number"),
        pytest.param({"phone": "12"}, "phone", id="phone no number"),
        pytest.param({"tags": "a"}, "tags", id="tags no list"),
        pytest.param({"tags": [1]}, "tags[0]", id="a tag that is a number"),
        pytest.param({"strategy": "fastest"}, "strategy", id="strategy unknown"),
        pytest.param({"strategy": "Sticky"}, "strategy", id="strategy in capitals"),
        pytest.param({"priority": 0}, "priority", id="priority 0"),
        pytest.param({"priority": 4}, "priority", id="priority 4"),
        pytest.param({"priority": "1"}, "priority", id="priority a string"),
        pytest.param({"priority": 1.5}, "priority", id="priority a fraction"),
        pytest.param({"spreadMinutes": -1}, "spreadMinutes", id="negative spread"),
        pytest.param({"sendAt": "tomorrow"}, "sendAt", id="sendAt a word"),
        pytest.param({"sendAt": "2026-03-11T09:00:00"}, "sendAt", id="sendAt without an offset"),
        pytest.param({"sendAt": NOON // 1000}, "sendAt", id="sendAt in seconds"),
        pytest.param({"sendAt": NOON + 400 * DAY_MS}, "sendAt", id="sendAt beyond a year"),
        pytest.param({"sendAt": True}, "sendAt", id="sendAt a boolean"),
        pytest.param({"validitySeconds": 0}, "validitySeconds", id="validity 0"),
        pytest.param({"onUnknown": "repeat"}, "onUnknown", id="onUnknown unknown"),
        pytest.param({"strict": "yes"}, "strict", id="strict a string"),
        pytest.param({"metadata": []}, "metadata", id="metadata no object"),
        pytest.param({"metadata": {"a": "x" * 8_192}}, "metadata", id="metadata too large"),
        pytest.param({"sendat": NOON}, "sendat", id="a field misspelt"),
    ],
)
async def test_a_bad_field_is_a_400_that_names_it_and_stores_nothing(
    platform: Platform, change: dict[str, Any], field: str
) -> None:
    """Whatever is wrong, the caller learns where, and no half of it is kept."""
    async with platform.nothing_stored():
        answer = await platform.gateway.post("/v1/jobs", json={**GOOD, **change})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["details"]["field"] == field


@pytest.mark.parametrize(("missing", "code"), [("contacts", "INVALID_REQUEST"), ("text", "EMPTY_TEXT")])
async def test_a_missing_field_is_named(platform: Platform, missing: str, code: str) -> None:
    body = {name: value for name, value in GOOD.items() if name != missing}
    async with platform.nothing_stored():
        refused(await platform.gateway.post("/v1/jobs", json=body), 400, code, missing)


async def test_metadata_nested_deeper_than_we_keep_is_refused(platform: Platform) -> None:
    """A document that decodes may still be too deep to be read again elsewhere."""
    nested: Any = 1
    for _ in range(40):
        nested = [nested]
    async with platform.nothing_stored():
        answer = await platform.gateway.post("/v1/jobs", json={**GOOD, "metadata": {"a": nested}})
    refused(answer, 400, "METADATA_TOO_LARGE", "metadata")


@pytest.mark.parametrize(
    ("name", "code", "field"),
    [
        pytest.param({"sessionId": "nobody"}, "UNKNOWN_SESSION", "sessionId", id="session"),
        pytest.param({"phone": OTHER_PHONE}, "UNKNOWN_PHONE", "phone", id="phone"),
    ],
)
async def test_an_unknown_session_or_phone_is_a_404(
    platform: Platform, name: dict[str, str], code: str, field: str
) -> None:
    await platform.register()
    async with platform.nothing_stored():
        refused(await platform.gateway.post("/v1/jobs", json={**GOOD, **name}), 404, code, field)


async def test_a_session_of_another_phone_is_a_contradiction(platform: Platform) -> None:
    await platform.register()
    body = {**GOOD, "sessionId": SESSION, "phone": OTHER_PHONE}
    refused(await platform.gateway.post("/v1/jobs", json=body), 400, "PHONE_MISMATCH", "phone")


async def test_100_000_contacts_are_one_job_and_100_001_are_none(platform: Platform) -> None:
    """The limit holds exactly, and a job at the limit is whole: every task is one byte."""
    async with platform.nothing_stored():
        answer = await platform.gateway.post("/v1/jobs", content=big_job(100_001), headers=JSON)
    refused(answer, 400, "INVALID_REQUEST", "contacts")
    answer = await platform.gateway.post("/v1/jobs", content=big_job(100_000), headers=JSON)
    assert answer.json()["accepted"] == 100_000
    status = (await platform.gateway.get(answer.json()["statusUrl"])).json()
    assert status["progress"]["total"] == status["progress"]["queued"] == 100_000


async def test_the_event_loop_breathes_while_a_large_job_is_taken(platform: Platform) -> None:
    """Between two thousand contacts others get their turn, so a large job cannot hold up small ones."""
    breaths = 0

    async def breathe() -> None:
        nonlocal breaths
        breaths += 1

    platform.intake._breathe = breathe
    answer = await platform.gateway.post("/v1/jobs", content=big_job(10_000), headers=JSON)
    assert answer.status_code == 202
    assert breaths == 10


async def test_bad_contacts_are_listed_with_their_reasons(platform: Platform) -> None:
    """Each kind of fault has its code and the place it stands at; good ones are not spoiled by it."""
    contacts = [
        {"to": FRIEND, "vars": {"name": "Ada"}},
        {"to": "447911123456"},
        {"to": "447911123457", "vars": {"name": "x" * 4096}},
        {"to": "447911123458", "vars": {"name": "Ada"}, "timezone": "Mars/Olympus"},
        {"to": "0123", "vars": {"name": "Ada"}},
    ]
    body = (await platform.gateway.post("/v1/jobs", json={"contacts": contacts, "text": "hi {{name}}"})).json()
    assert body["accepted"] == 1
    assert [(item["index"], item["code"]) for item in body["rejected"]] == [
        (1, "MISSING_VARIABLE"),
        (2, "TEXT_TOO_LONG"),
        (3, "INVALID_TIMEZONE"),
        (4, "INVALID_NUMBER"),
    ]


async def test_strict_refuses_all_and_lists_the_bad_ones(platform: Platform) -> None:
    async with platform.nothing_stored():
        answer = await platform.gateway.post("/v1/jobs", json={**GOOD, "contacts": [FRIEND, "x"], "strict": True})
    error = refused(answer, 422, "CONTACTS_REJECTED", "contacts")
    assert error["details"]["rejected"] == [{"index": 1, "to": "x", "code": "INVALID_NUMBER"}]


async def test_a_planted_gateway_that_stores_before_it_refuses_is_seen(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were half of a refused job kept, `nothing_stored` would say so."""
    sifted = stretches.sifted

    async def stores_first(*facts: Any) -> Any:
        sift = await sifted(*facts)
        await platform.store.jobs.stage(platform.intake.new_job_id(NOON), sift.accepted)
        return sift

    monkeypatch.setattr(stretches, "sifted", stores_first)
    with pytest.raises(AssertionError, match="something was stored"):
        await test_strict_refuses_all_and_lists_the_bad_ones(platform)


@pytest.mark.parametrize("contacts", [["x"], ["١٢٣٤٥٦٧٨٩٠١٢"], ["972529876543x"], [""]], ids=repr)
async def test_nothing_accepted_is_a_422(platform: Platform, contacts: list[str]) -> None:
    async with platform.nothing_stored():
        answer = await platform.gateway.post("/v1/jobs", json={**GOOD, "contacts": contacts})
    refused(answer, 422, "NOTHING_ACCEPTED", "contacts")


async def test_a_job_of_suppressed_people_alone_is_refused(platform: Platform) -> None:
    await platform.gateway.post("/v1/suppressions", json={"to": FRIEND})
    error = refused(await platform.gateway.post("/v1/jobs", json=GOOD), 422, "NOTHING_ACCEPTED")
    assert error["details"]["suppressed"] == 1


async def test_at_most_1_000_bad_contacts_are_listed(platform: Platform) -> None:
    body = await platform.post_job(contacts=[FRIEND, *["x"] * 1_500])
    assert len(body["rejected"]) == 1_000
    assert body["total"] == 1_501


@pytest.mark.parametrize(
    "send_at", ["2026-03-11T12:00:00+02:00", "2026-03-11T10:00:00Z", NOON + DAY_MS], ids=["offset", "Z", "ms"]
)
async def test_send_at_is_understood_in_each_way(platform: Platform, send_at: str | int) -> None:
    job = await platform.post_job(sendAt=send_at)
    status = (await platform.gateway.get(job["statusUrl"])).json()
    assert status["sendAt"] == NOON + DAY_MS


async def test_a_time_that_has_passed_is_now(platform: Platform) -> None:
    """A job scheduled for a minute ago must not expire earlier for it."""
    job = await platform.post_job(sendAt=NOON - 60_000)
    assert (await platform.gateway.get(job["statusUrl"])).json()["sendAt"] is None


async def test_the_estimate_counts_what_stands_before(platform: Platform) -> None:
    """With numbers there is an estimate; a second job of the same size is done later than the first."""
    await platform.connect()
    contacts = [str(972_540_000_000 + i) for i in range(300)]
    first = await platform.post_job(contacts=contacts)
    platform.clock.forward(2_000)
    second = await platform.post_job(contacts=contacts)
    assert NOON < first["estimatedCompletion"] < second["estimatedCompletion"]
    status = (await platform.gateway.get(first["statusUrl"])).json()
    assert status["estimatedCompletion"] > NOON


async def test_what_cannot_go_out_in_time_is_foretold(platform: Platform) -> None:
    """A hot number sends 500 a day; of 2,000 with a validity of a day some will expire, and the answer says so."""
    await platform.connect()
    contacts = [str(972_540_000_000 + i) for i in range(2_000)]
    job = await platform.post_job(contacts=contacts, validitySeconds=86_400)
    assert 1_000 <= job["willExpire"] <= 1_500
    assert (await platform.post_job(contacts=contacts))["willExpire"] == 0


@pytest.mark.parametrize("job_id", ["01ARZ3NDEKTSV4RRFFQ69G5FAV", "x", "run:01ARZ3NDEKTSV4RRFFQ69G5FAV", "states:1"])
async def test_a_job_nobody_knows_is_a_404(platform: Platform, job_id: str) -> None:
    """Also for an id that would be another key of ours."""
    await platform.post_job()
    refused(await platform.gateway.get(f"/v1/jobs/{job_id}"), 404, "UNKNOWN_JOB", "jobId")
    refused(await platform.gateway.post(f"/v1/jobs/{job_id}/cancel"), 404, "UNKNOWN_JOB", "jobId")


async def test_cancel_stops_what_nobody_claimed_and_says_how_many(platform: Platform) -> None:
    """Each message ends `canceled`; the claimed one ends as it ends; a repeat is no error."""
    await platform.connect()
    job = await platform.post_job(contacts=[FRIEND, "972529876544", "972529876545"])
    await platform.dispatch()
    claim = await platform.claim()
    url = f"{job['statusUrl']}/cancel"
    assert (await platform.gateway.post(url)).json() == {
        "jobId": job["jobId"],
        "state": "CANCELED",
        "canceled": 2,
        "open": 1,
    }
    assert (await platform.gateway.post(url)).json()["canceled"] == 0
    await platform.outbox("ack", {"raw": claim["raw"], "epoch": 1})
    status = (await platform.gateway.get(job["statusUrl"])).json()
    assert (status["state"], status["progress"]["sent"], status["progress"]["canceled"]) == ("CANCELED", 1, 2)


async def test_a_job_that_is_done_cannot_be_canceled(platform: Platform) -> None:
    claim = await platform.claimed()
    await platform.outbox("ack", {"raw": claim["raw"], "epoch": 1})
    job_id = claim["task"]["taskId"].partition(":")[0]
    error = refused(await platform.gateway.post(f"/v1/jobs/{job_id}/cancel"), 409, "JOB_CLOSED")
    assert error["details"]["state"] == "DONE"


async def test_progress_adds_up_as_callers_add_it_up(platform: Platform) -> None:
    """`sent` counts all that went out, so sent + failed + expired + canceled + suppressed is the total at the end."""
    claim = await platform.claimed()
    task = claim["task"]
    proof = {"messageId": task["taskId"], "to": task["to"], "whatsappId": task["whatsappId"]}
    await platform.webhook("MESSAGE_READ", proof)
    status = (await platform.gateway.get(f"/v1/jobs/{task['taskId'].partition(':')[0]}")).json()
    progress = status["progress"]
    assert (progress["sent"], progress["delivered"], progress["read"], progress["total"]) == (1, 1, 1, 1)
    assert (status["state"], status["closedAt"], status["waiting"]) == ("DONE", NOON, None)


async def test_a_job_without_numbers_says_what_it_waits_for(platform: Platform) -> None:
    job = await platform.post_job()
    await platform.dispatch()
    status = (await platform.gateway.get(job["statusUrl"])).json()
    assert (status["state"], status["lastError"]) == ("QUEUED", "NO_SESSIONS_AVAILABLE")
    assert (status["waiting"]["reason"], status["waiting"]["until"]) == ("NO_SESSIONS_AVAILABLE", None)
    assert "no number" in status["waiting"]["text"].lower()


async def test_without_a_strategy_the_servers_own_counts(platform: Platform) -> None:
    job = await platform.post_job()
    assert (await platform.gateway.get(job["statusUrl"])).json()["strategy"] is None


async def test_above_80_percent_of_memory_nothing_new_is_taken(platform: Platform) -> None:
    """503 with Retry-After, nothing stored; what is accepted already can still be asked for."""
    job = await platform.post_job()
    used = int((await platform.link.read(("INFO", "memory")))[0]["used_memory"])
    await platform.link.read(("CONFIG", "SET", "maxmemory", used * 11 // 10))
    platform.clock.forward(1_000)
    try:
        async with platform.nothing_stored():
            answer = await platform.gateway.post("/v1/jobs", json=GOOD)
            send = await platform.gateway.post("/api/v1/send", json={"to": FRIEND, "message": "x"})
        for refusal in (answer, send):
            error = refused(refusal, 503, "UNAVAILABLE")
            assert int(refusal.headers["Retry-After"]) == error["retryAfterSeconds"] == 30
        assert (await platform.gateway.get(job["statusUrl"])).status_code == 200
    finally:
        await platform.link.read(("CONFIG", "SET", "maxmemory", 0))


async def test_a_body_with_a_field_twice_is_refused_by_name(platform: Platform) -> None:
    """One reader keeps the first, another the last: a proxy may have checked another text than we would send."""
    body = b'{"contacts":["972529876543"],"text":"first","text":"second"}'
    async with platform.nothing_stored():
        refused(await platform.gateway.post("/v1/jobs", content=body, headers=JSON), 400, "INVALID_JSON", "text")
