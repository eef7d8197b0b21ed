"""/v1/dead-letters: what was given up, why, and sending it again on purpose."""

from typing import Any

import pytest

from paceline.domain.ids import new_ulid
from paceline.kits.rng import new_rng

from .platform import DAY_MS, FRIEND, NOON, PHONE, READ_KEY, SEND_KEY, SESSION, Platform, refused
from .uploads import PNG

PATH = "/v1/dead-letters"
NOBODY = new_ulid(NOON, new_rng(9)) + ":0"


async def give_up(platform: Platform, code: str = "NOT_ON_WHATSAPP", **fields: Any) -> str:
    """A message whose one try failed for good."""
    if "epoch" not in vars(platform):
        vars(platform)["epoch"] = await platform.connect()
    await platform.post_job(**fields)
    platform.clock.forward(60_000)
    await platform.webhook("PING")
    await platform.dispatch()
    claim = await platform.claim()
    assert claim["task"], claim
    body = {"raw": claim["raw"], "epoch": 1, "error": {"code": code, "message": "no"}, "notSent": True}
    assert (await platform.outbox("nack", body)).json()["state"] == "failed"
    found: str = claim["task"]["taskId"]
    return found


async def letters(platform: Platform, **params: Any) -> list[dict[str, Any]]:
    answer = await platform.gateway.get(PATH, params=params, headers={"X-API-KEY": READ_KEY})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


async def replay(platform: Platform, path: str, body: Any = None, **headers: str) -> Any:
    given: dict[str, Any] = {} if body is None else {"json": body}
    return await platform.gateway.post(f"{PATH}/{path}", headers={"X-API-KEY": SEND_KEY, **headers}, **given)


async def test_a_letter_tells_everything_but_the_text(platform: Platform) -> None:
    task = await give_up(platform, text="canary of a text")
    [letter] = await letters(platform)
    history = letter.pop("history")
    assert letter == {
        "id": task,
        "taskId": task,
        "jobId": task[:26],
        "at": platform.clock.at_ms,
        "code": "NOT_ON_WHATSAPP",
        "class": "recipient",
        "message": "no",
        "to": FRIEND,
        "phone": PHONE,
        "sessionId": SESSION,
        "attempts": 1,
        "state": "failed",
        "replayable": True,
        "replayedAs": None,
    }
    assert [(line["what"], line["code"]) for line in history] == [("failed", "NOT_ON_WHATSAPP")]
    assert "canary" not in (await platform.gateway.get(PATH)).text


async def test_filters_and_pages(platform: Platform) -> None:
    first = await give_up(platform)
    middle = platform.clock.at_ms + 1
    second = await give_up(platform, "INVALID_RECIPIENT", contacts=["972529876544"])
    assert [item["id"] for item in await letters(platform)] == [second, first]
    for params, expected in (
        ({"code": "INVALID_RECIPIENT"}, [second]),
        ({"class": "recipient"}, [second, first]),
        ({"class": "platform"}, []),
        ({"phone": f"+{PHONE}"}, [second, first]),
        ({"phone": FRIEND}, []),
        ({"jobId": first[:26]}, [first]),
        ({"from": middle}, [second]),
        ({"until": middle}, [first]),
        ({"from": "2026-03-10T00:00:00Z"}, [second, first]),
    ):
        assert [item["id"] for item in await letters(platform, **params)] == expected, params
    page = (await platform.gateway.get(PATH, params={"limit": 1})).json()
    assert page["items"][0]["id"] == second
    await give_up(platform, contacts=["972529876545"])
    page = (await platform.gateway.get(PATH, params={"limit": 1, "cursor": page["nextCursor"]})).json()
    assert ([item["id"] for item in page["items"]], page["nextCursor"]) == ([first], None)


async def test_one_is_sent_again_as_a_new_job_with_its_own_words(platform: Platform) -> None:
    contact = {"to": FRIEND, "vars": {"name": "Ada"}, "clientRef": "c1"}
    task = await give_up(platform, contacts=[contact], text="Hello {{name}}", metadata={"a": 1}, tags=["t"])
    answer = await replay(platform, f"{task}/replay")
    assert answer.status_code == 202, answer.text
    made = answer.json()
    assert made == {
        "status": "accepted",
        "jobId": made["jobId"],
        "messageId": f"{made['jobId']}:0",
        "replayOf": task,
        "statusUrl": f"/v1/jobs/{made['jobId']}",
    }
    job = await platform.store.jobs.get(made["jobId"])
    assert job is not None
    assert (job.replay_of, job.metadata, job.accepted_by, job.tags) == (
        task,
        {"a": 1, "replayOf": task},
        "sender",
        ["t"],
    )
    platform.clock.forward(60_000)
    await platform.webhook("PING")
    await platform.dispatch()
    claim = await platform.claim()
    assert (claim["task"]["to"], claim["task"]["text"]) == (FRIEND, "Hello Ada")
    assert claim["task"]["taskId"] == made["messageId"]
    [letter] = await letters(platform)
    assert letter["replayedAs"] == made["jobId"]


async def test_again_needs_a_word(platform: Platform) -> None:
    task = await give_up(platform)
    first = (await replay(platform, f"{task}/replay")).json()["jobId"]
    error = refused(await replay(platform, f"{task}/replay"), 409, "ALREADY_REPLAYED", "again")
    assert error["details"]["jobId"] == first
    assert (await replay(platform, f"{task}/replay", {"again": True})).json()["jobId"] != first


async def test_what_the_platform_refused_is_never_sent_again(platform: Platform) -> None:
    task = await give_up(platform, "RESTRICTED_463")
    [letter] = await letters(platform)
    assert (letter["class"], letter["replayable"]) == ("platform", False)
    async with platform.nothing_stored():
        refused(await replay(platform, f"{task}/replay", {"again": True}), 409, "NOT_REPLAYABLE", "id")
    many = (await replay(platform, "replay", {"again": True})).json()
    assert (many["replayed"], many["jobs"], many["skipped"]["notReplayable"]) == (0, [], 1)


async def test_what_was_proven_sent_since_is_not_sent_again(platform: Platform) -> None:
    task = await give_up(platform)
    await platform.store.outbox.prove(task, "delivered", now_ms=platform.clock.at_ms)
    [letter] = await letters(platform)
    assert (letter["state"], letter["replayable"]) == ("delivered", False)
    refused(await replay(platform, f"{task}/replay"), 409, "NOT_REPLAYABLE", "id")


async def test_suppressed_people_get_nothing(platform: Platform) -> None:
    task = await give_up(platform)
    await platform.gateway.post("/v1/suppressions", json={"to": FRIEND})
    refused(await replay(platform, f"{task}/replay"), 422, "SUPPRESSED", "id")
    many = (await replay(platform, "replay", {})).json()
    assert (many["replayed"], many["skipped"]["suppressed"]) == (0, 1)


async def test_all_that_match_are_sent_again_by_the_job_they_come_from(platform: Platform) -> None:
    one = await give_up(platform)
    two = await give_up(platform, contacts=["972529876544"])
    other = await give_up(platform, "INVALID_RECIPIENT", contacts=["972529876545"])
    many = (await replay(platform, "replay", {"code": "NOT_ON_WHATSAPP"})).json()
    assert (many["replayed"], many["more"]) == (2, False)
    assert {job["replayOf"] for job in many["jobs"]} == {one[:26], two[:26]}
    assert many["skipped"] == {"notReplayable": 0, "alreadyReplayed": 0, "suppressed": 0}
    again = (await replay(platform, "replay", {"limit": 2})).json()
    assert [job["replayOf"] for job in again["jobs"]] == [other[:26]]
    assert again["skipped"]["alreadyReplayed"] == 2
    limited = (await replay(platform, "replay", {"again": True, "limit": 1})).json()
    assert (limited["replayed"], limited["more"], limited["jobs"][0]["replayOf"]) == (1, True, other[:26])


async def test_a_file_that_is_gone_does_not_keep_the_others_from_being_sent_again(platform: Platform) -> None:
    """The others were sent, then the whole was a 404 with its key set free: whoever repeated it with `again` sent them
    twice, and no filter got past such a letter."""
    ref = (await platform.gateway.post("/v1/media", files={"file": ("a.png", PNG, "image/png")})).json()["mediaRef"]
    picture = await give_up(platform, mode="image", mediaRef=ref, contacts=["972529876544"])
    text = await give_up(platform)
    await platform.media.sweep(platform.clock.at_ms + 31 * DAY_MS)
    answer = await replay(platform, "replay", {})
    assert answer.status_code == 202, answer.text
    assert [job["replayOf"] for job in answer.json()["jobs"]] == [text[:26]]
    assert answer.json()["skipped"] == {"notReplayable": 1, "alreadyReplayed": 0, "suppressed": 0}
    refused(await replay(platform, f"{picture}/replay"), 404, "UNKNOWN_MEDIA", "id")


async def test_an_idempotency_key_gives_the_first_answer_again(platform: Platform) -> None:
    task = await give_up(platform)
    for path, body in ((f"{task}/replay", {"again": False}), ("replay", {"again": True})):
        key = {"Idempotency-Key": f"k-{path}"}
        first = await replay(platform, path, body, **key)
        assert first.status_code == 202, first.text
        async with platform.nothing_stored():
            assert (await replay(platform, path, body, **key)).content == first.content
        refused(
            await replay(platform, path, {**body, "again": not body["again"]}, **key), 422, "IDEMPOTENCY_KEY_REUSED"
        )


async def test_a_replay_that_was_cut_off_is_taken_over_and_sends_nothing_twice(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It died after its first job; 30 s later the same request finds that one and makes the rest."""
    for number in range(3):
        await give_up(platform, contacts=[str(972_529_876_550 + number)])
    accept, calls = platform.store.jobs.accept, []

    async def dies(*args: Any, **kwargs: Any) -> str:
        calls.append(1)
        if len(calls) == 2:
            raise RuntimeError("killed")
        return await accept(*args, **kwargs)

    async def stays(*_args: Any, **_kwargs: Any) -> None:
        """A process that died forgets nothing in Redis."""

    key = {"Idempotency-Key": "k"}
    with monkeypatch.context() as patched:
        patched.setattr(platform.store.jobs, "accept", dies)
        patched.setattr(platform.store.guards, "end", stays)
        assert (await replay(platform, "replay", {}, **key)).status_code == 500
    # The process that comes back after a crash is another.
    ((record,),) = await platform.link.read(("KEYS", "idempotency:*"))
    await platform.link.read(("HSET", record, "holder", "the one that died"))
    refused(await replay(platform, "replay", {}, **key), 409, "IDEMPOTENCY_IN_FLIGHT")
    platform.clock.forward(31_000)
    answer = (await replay(platform, "replay", {}, **key)).json()
    assert (answer["replayed"], len(answer["jobs"])) == (3, 3)
    found = await letters(platform)
    assert sorted(item["replayedAs"] for item in found) == sorted(job["jobId"] for job in answer["jobs"])


@pytest.mark.parametrize("path", [f"{NOBODY}/replay", "x/replay", "%3A/replay"])
async def test_an_unknown_letter_is_a_404(platform: Platform, path: str) -> None:
    refused(await replay(platform, path), 404, "UNKNOWN_LETTER", "id")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 1_001}, "limit"),
        ({"class": "x"}, "class"),
        ({"phone": "x"}, "phone"),
        ({"jobId": "x"}, "jobId"),
        ({"from": "yesterday"}, "from"),
        ({"until": 5}, "until"),
        ({"again": 1}, "again"),
        ({"what": 1}, "what"),
    ],
)
async def test_a_bad_filter_is_named(platform: Platform, body: dict[str, Any], field: str) -> None:
    answer = await replay(platform, "replay", body)
    assert (answer.status_code, answer.json()["error"]["details"]["field"]) == (400, field), answer.text
    if field in ("class", "phone", "jobId", "from", "until"):
        answer = await platform.gateway.get(PATH, params=body)
        assert (answer.status_code, answer.json()["error"]["details"]["field"]) == (400, field), answer.text


async def test_a_bad_cursor_is_a_400(platform: Platform) -> None:
    refused(await platform.gateway.get(f"{PATH}?cursor=x"), 400, "INVALID_REQUEST", "cursor")


async def test_each_route_needs_its_scope(platform: Platform) -> None:
    for method, path, scope in (
        ("GET", PATH, READ_KEY),
        ("POST", f"{PATH}/{NOBODY}/replay", SEND_KEY),
        ("POST", f"{PATH}/replay", SEND_KEY),
    ):
        other = SEND_KEY if scope is READ_KEY else READ_KEY
        for key, status in ((other, 403), ("wrong", 401), ("", 401)):
            answer = await platform.gateway.request(method, path, headers={"X-API-KEY": key})
            assert answer.status_code == status, (method, path)


@pytest.mark.parametrize("path", ["one", "many"])
async def test_what_is_sent_again_has_a_plan_of_its_own(platform: Platform, path: str) -> None:
    """It had the old job's: of other times, and for all of its people."""
    paris = {"to": "33612345678", "timezone": "Europe/Paris"}
    task = await give_up(platform, contacts=[FRIEND, "972529876544", paris])
    platform.clock.forward(60_000)
    await platform.webhook("PING")
    answer = (
        await replay(platform, f"{task}/replay" if path == "one" else "replay", None if path == "one" else {})
    ).json()
    job = await platform.store.jobs.get(answer["jobId"] if path == "one" else answer["jobs"][0]["jobId"])
    assert job is not None
    assert job.zones == {"Asia/Jerusalem": 1}
    assert [sent for _, sent in job.planned] == [0, 1]
    assert job.planned[0][0] >= platform.clock.at_ms
