"""GET /v1/jobs, GET /v1/jobs/:id/messages and GET /v1/messages?to=."""

from typing import Any

import pytest

from .platform import FRIEND, NOON, PHONE, READ_KEY, SEND_KEY, SESSION, Platform, refused

HOUR = 3_600_000
PEOPLE = [FRIEND, "972529876544", "972529876545"]
NO_JOB = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


async def get(platform: Platform, path: str, **params: Any) -> dict[str, Any]:
    answer = await platform.gateway.get(path, params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def pages(platform: Platform, path: str, name: str, **params: Any) -> list[str]:
    """One field of all items of all pages."""
    page = await get(platform, path, **params)
    seen = [item[name] for item in page["items"]]
    while page["nextCursor"]:
        page = await get(platform, path, **params, cursor=page["nextCursor"])
        seen += [item[name] for item in page["items"]]
        assert len(seen) < 100
    return seen


async def send(platform: Platform, to: str = FRIEND, **fields: Any) -> str:
    answer = await platform.gateway.post("/api/v1/send", json={"to": to, "message": "x", **fields})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["messageId"])


async def jobs_apart(platform: Platform, count: int, **fields: Any) -> list[str]:
    """So many jobs, an hour apart; the newest first."""
    ids = []
    for _ in range(count):
        ids.append((await platform.post_job(**fields))["jobId"])
        platform.clock.forward(HOUR)
    return ids[::-1]


@pytest.mark.parametrize("path", ["/v1/jobs", f"/v1/jobs/{NO_JOB}/messages", f"/v1/messages?to={FRIEND}"])
class TestEach:
    @pytest.mark.parametrize(
        ("key", "status", "code"),
        [("", 401, "UNAUTHORIZED"), ("wrong", 401, "UNAUTHORIZED"), (SEND_KEY, 403, "FORBIDDEN")],
    )
    async def test_it_needs_a_key_that_may_read(
        self, platform: Platform, path: str, key: str, status: int, code: str
    ) -> None:
        refused(await platform.gateway.get(path, headers={"X-API-KEY": key}), status, code)

    @pytest.mark.parametrize("limit", ["0", "1001", "x", "-1"])
    async def test_a_bad_limit_is_named(self, platform: Platform, path: str, limit: str) -> None:
        answer = await platform.gateway.get(f"{path}{'&' if '?' in path else '?'}limit={limit}")
        refused(answer, 400, "INVALID_REQUEST", "limit")

    @pytest.mark.parametrize("cursor", ["x", "-1", "1-2", "1-" + "a" * 26, "٣", "9" * 40, f"1-{NO_JOB}-x", "1 "])
    async def test_a_cursor_that_is_not_ours_is_named(self, platform: Platform, path: str, cursor: str) -> None:
        answer = await platform.gateway.get(f"{path}{'&' if '?' in path else '?'}cursor={cursor}")
        refused(answer, 400, "INVALID_REQUEST", "cursor")


class TestJobs:
    async def test_none(self, platform: Platform) -> None:
        answer = await platform.gateway.get("/v1/jobs", headers={"X-API-KEY": READ_KEY})
        assert (answer.status_code, answer.json()) == (200, {"items": [], "nextCursor": None})

    async def test_newest_first_with_progress(self, platform: Platform) -> None:
        old = await platform.post_job(contacts=PEOPLE, tags=["a", "b"], metadata={"n": 1}, priority=2)
        platform.clock.forward(HOUR)
        new = (await send(platform)).partition(":")[0]
        await platform.gateway.post(f"/v1/jobs/{old['jobId']}/cancel")
        found = await get(platform, "/v1/jobs")
        assert found["nextCursor"] is None
        assert [(item["jobId"], item["single"]) for item in found["items"]] == [(new, True), (old["jobId"], False)]
        item = found["items"][1]
        progress = item.pop("progress")
        assert item == {
            "jobId": old["jobId"],
            "state": "CANCELED",
            "acceptedAt": NOON,
            "acceptedBy": "bootstrap",
            "closedAt": NOON + HOUR,
            "total": 3,
            "mode": "message",
            "priority": 2,
            "single": False,
            "tags": ["a", "b"],
            "metadata": {"n": 1},
        }
        assert progress == (await get(platform, f"/v1/jobs/{old['jobId']}"))["progress"]
        assert (progress["canceled"], progress["total"]) == (3, 3)

    async def test_page_by_page(self, platform: Platform) -> None:
        made = await jobs_apart(platform, 5)
        for limit in (1, 2, 5, 6):
            assert await pages(platform, "/v1/jobs", "jobId", limit=limit) == made

    async def test_new_jobs_between_two_pages_repeat_nothing(self, platform: Platform) -> None:
        made = await jobs_apart(platform, 3)
        page = await get(platform, "/v1/jobs", limit=2)
        await jobs_apart(platform, 3)
        rest = await get(platform, "/v1/jobs", limit=2, cursor=page["nextCursor"])
        assert [item["jobId"] for item in rest["items"]] == made[2:]

    async def test_filters(self, platform: Platform) -> None:
        first = (await platform.post_job(tags=["spring"]))["jobId"]
        platform.clock.forward(HOUR)
        body = {"contacts": PEOPLE, "text": "x"}
        answer = await platform.gateway.post("/v1/jobs", json=body, headers={"X-API-KEY": SEND_KEY})
        second = answer.json()["jobId"]
        await platform.gateway.post(f"/v1/jobs/{second}/pause")
        for params, expected in (
            ({"state": "PAUSED"}, [second]),
            ({"state": "PAUSED,QUEUED"}, [second, first]),
            ({"state": "DONE"}, []),
            ({"tag": "spring"}, [first]),
            ({"tag": "spring", "state": "PAUSED"}, []),
            ({"acceptedBy": "sender"}, [second]),
            ({"from": NOON + HOUR}, [second]),
            ({"until": NOON + HOUR}, [first]),
            ({"from": "2026-03-10T12:00:00+02:00", "until": "2026-03-10T13:00:00+02:00"}, [first]),
        ):
            found = await get(platform, "/v1/jobs", **params)  # type: ignore[arg-type]
            assert [item["jobId"] for item in found["items"]] == expected, params

    async def test_a_plus_that_was_not_escaped_is_understood(self, platform: Platform) -> None:
        await platform.post_job()
        answer = await platform.gateway.get("/v1/jobs?from=2026-03-10T12:00:00+02:00")
        assert len(answer.json()["items"]) == 1

    @pytest.mark.parametrize(
        ("params", "code", "field"),
        [
            pytest.param({"state": "queued"}, "INVALID_REQUEST", "state", id="a message's state"),
            pytest.param({"state": "DONE,"}, "INVALID_REQUEST", "state", id="an empty state"),
            pytest.param({"from": "yesterday"}, "INVALID_TIME", "from", id="from a word"),
            pytest.param({"from": NOON // 1000}, "INVALID_TIME", "from", id="from in seconds"),
            pytest.param({"until": "2026-03-10T12:00:00"}, "INVALID_TIME", "until", id="until without offset"),
            pytest.param({"until": "9" * 30}, "INVALID_TIME", "until", id="until far beyond"),
            pytest.param({"tag": "x" * 257}, "INVALID_REQUEST", "tag", id="a long tag"),
        ],
    )
    async def test_a_bad_filter_is_named(
        self, platform: Platform, params: dict[str, Any], code: str, field: str
    ) -> None:
        refused(await platform.gateway.get("/v1/jobs", params=params), 400, code, field)


class TestMessagesOfAJob:
    async def test_what_is_known_and_why_it_waits(self, platform: Platform) -> None:
        await platform.connect()
        contacts = [{"to": to, "clientRef": f"c{i}"} for i, to in enumerate(PEOPLE)]
        job = await platform.post_job(contacts=contacts)
        await platform.dispatch()
        claim = await platform.claim()
        await platform.outbox("ack", {"raw": claim["raw"], "epoch": 1})
        found = await get(platform, f"/v1/jobs/{job['jobId']}/messages")
        assert found["nextCursor"] is None
        sent, waits = found["items"][:2]
        status = await platform.message(f"{job['jobId']}:0")
        assert sent == {
            "messageId": f"{job['jobId']}:0",
            "jobId": job["jobId"],
            "index": 0,
            "to": FRIEND,
            "state": "sent",
            "clientRef": "c0",
            "phone": PHONE,
            "sessionId": SESSION,
            "whatsappId": status["whatsappId"],
            "attempts": 1,
            "times": status["times"],
            "lastError": None,
            "waiting": None,
        }
        assert (waits["state"], waits["clientRef"], waits["phone"]) == ("queued", "c1", PHONE)
        assert waits["waiting"] == (await platform.message(f"{job['jobId']}:1"))["waiting"]
        assert waits["waiting"]["reason"] == "PACING"

    async def test_the_error_of_one_that_failed(self, platform: Platform) -> None:
        claim = await platform.claimed()
        error = {"code": "NOT_ON_WHATSAPP", "message": "nobody there"}
        await platform.outbox("nack", {"raw": claim["raw"], "epoch": 1, "notSent": True, "error": error})
        job_id = claim["task"]["taskId"].partition(":")[0]
        (item,) = (await get(platform, f"/v1/jobs/{job_id}/messages", state="failed"))["items"]
        assert (item["state"], item["lastError"]["code"]) == ("failed", "NOT_ON_WHATSAPP")

    async def test_one_that_has_no_number_yet(self, platform: Platform) -> None:
        job = await platform.post_job(sendAt=NOON + HOUR)
        (item,) = (await get(platform, f"/v1/jobs/{job['jobId']}/messages"))["items"]
        assert (item["state"], item["phone"], item["whatsappId"], item["attempts"]) == ("queued", None, None, 0)
        assert item["waiting"] == (await platform.message(item["messageId"]))["waiting"]
        assert (item["waiting"]["reason"], item["waiting"]["until"]) == ("SCHEDULED", NOON + HOUR)

    async def test_by_state_page_by_page(self, platform: Platform) -> None:
        job = await platform.post_job(contacts=[str(972_540_000_000 + i) for i in range(10)])
        await platform.link.read(("SET", f"job:states:{job['jobId']}", "qFrSqFtDFX"))
        path = f"/v1/jobs/{job['jobId']}/messages"
        for states, expected in (
            ("queued", [0, 2, 4, 6]),
            ("failed", [1, 5, 8]),
            ("failed,canceled", [1, 5, 8, 9]),
            ("read", []),
            ("", list(range(10))),
        ):
            for limit in (1, 2, 4, 10):
                params = {"state": states} if states else {}
                assert await pages(platform, path, "index", limit=limit, **params) == expected

    @pytest.mark.parametrize("state", ["retrying", "QUEUED", "queued,,failed", "handedOff"])
    async def test_a_state_that_is_none_is_named(self, platform: Platform, state: str) -> None:
        job = await platform.post_job()
        answer = await platform.gateway.get(f"/v1/jobs/{job['jobId']}/messages", params={"state": state})
        error = refused(answer, 400, "INVALID_REQUEST", "state")
        assert "handed_off" in error["details"]["allowed"]

    @pytest.mark.parametrize("job_id", [NO_JOB, "x", f"run:{NO_JOB}", "%20"])
    async def test_a_job_nobody_knows_is_a_404(self, platform: Platform, job_id: str) -> None:
        await platform.post_job()
        refused(await platform.gateway.get(f"/v1/jobs/{job_id}/messages"), 404, "UNKNOWN_JOB", "jobId")


class TestOfAPerson:
    async def test_nobody_wrote_to_them(self, platform: Platform) -> None:
        await platform.post_job(contacts=PEOPLE[1:])
        assert await get(platform, "/v1/messages", to=FRIEND) == {"items": [], "nextCursor": None}

    async def test_sent_routed_and_still_waiting_ones_newest_first(self, platform: Platform) -> None:
        claim = await platform.claimed()
        await platform.outbox("ack", {"raw": claim["raw"], "epoch": 1})
        platform.clock.forward(1_000)
        routed = await send(platform)
        platform.clock.forward(1_000)
        later = await platform.post_job(contacts=PEOPLE[::-1], sendAt=NOON + HOUR)
        platform.clock.forward(1_000)
        newest = await send(platform)
        await platform.post_job(contacts=PEOPLE[1:])
        found = await get(platform, "/v1/messages", to="+972 52-987-6543")
        assert [(item["messageId"], item["state"]) for item in found["items"]] == [
            (newest, "queued"),
            (f"{later['jobId']}:2", "queued"),
            (routed, "queued"),
            (claim["task"]["taskId"], "sent"),
        ]
        assert {item["to"] for item in found["items"]} == {FRIEND}
        assert [item["phone"] for item in found["items"]] == [PHONE, None, PHONE, PHONE]
        assert found["items"][1]["waiting"]["reason"] == "SCHEDULED"
        assert found["nextCursor"] is None

    @pytest.mark.parametrize("limit", [1, 2, 3, 7])
    async def test_page_by_page_while_they_get_their_numbers(self, platform: Platform, limit: int) -> None:
        """One that is routed between two pages keeps its place: it is neither skipped nor shown twice."""
        jobs = await jobs_apart(platform, 3, contacts=PEOPLE[::-1])
        singles = [await send(platform) for _ in range(2)]
        page = await get(platform, "/v1/messages", to=FRIEND, limit=limit)
        seen = [item["messageId"] for item in page["items"]]
        await platform.connect()
        while page["nextCursor"]:
            await platform.dispatch()
            page = await get(platform, "/v1/messages", to=FRIEND, limit=limit, cursor=page["nextCursor"])
            seen += [item["messageId"] for item in page["items"]]
        assert sorted(seen[:2]) == sorted(singles)
        assert seen[2:] == [f"{job_id}:2" for job_id in jobs]

    async def test_a_search_through_large_jobs_goes_on_with_a_cursor(
        self, platform: Platform, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("paceline.gateway.listing.SEARCH_CALLS", 1)
        old = await platform.post_job(contacts=[FRIEND])
        platform.clock.forward(HOUR)
        large = [str(972_540_000_000 + i) for i in range(2_500)]
        job = await platform.post_job(contacts=[*large, FRIEND])
        page = await get(platform, "/v1/messages", to=FRIEND)
        assert page["items"] == []
        assert page["nextCursor"] is not None
        found = await pages(platform, "/v1/messages", "messageId", to=FRIEND)
        assert found == [f"{job['jobId']}:2500", f"{old['jobId']}:0"]

    async def test_two_of_one_batch(self, platform: Platform) -> None:
        messages = [{"to": FRIEND, "text": "a"}, {"to": PEOPLE[1], "text": "b"}, {"to": FRIEND, "text": "c"}]
        answer = await platform.gateway.post("/api/v1/send/batch", json={"messages": messages})
        job_id = answer.json()["jobId"]
        for limit in (1, 5):
            found = await pages(platform, "/v1/messages", "messageId", to=FRIEND, limit=limit)
            assert found == [f"{job_id}:0", f"{job_id}:2"]

    @pytest.mark.parametrize("to", ["12", "x", "", "+", "0521234567", "9" * 60, "972529876543@g.us"])
    async def test_a_bad_number_is_named(self, platform: Platform, to: str) -> None:
        refused(await platform.gateway.get("/v1/messages", params={"to": to}), 400, "INVALID_NUMBER", "to")

    async def test_without_a_number_it_is_named_too(self, platform: Platform) -> None:
        refused(await platform.gateway.get("/v1/messages"), 400, "INVALID_REQUEST", "to")

    async def test_a_page_has_200_at_most(self, platform: Platform) -> None:
        answer = await platform.gateway.get("/v1/messages", params={"to": FRIEND, "limit": 201})
        refused(answer, 400, "INVALID_REQUEST", "limit")

    async def test_the_number_may_be_written_as_sending_takes_it(self, platform: Platform) -> None:
        await platform.post_job()
        for to in ("972529876543", "+972529876543", "972529876543@c.us", "(972) 52.987.6543"):
            assert len((await get(platform, "/v1/messages", to=to))["items"]) == 1, to

    async def test_a_number_that_can_be_written_in_two_ways_is_one_person(self, platform: Platform) -> None:
        """Brazil: WhatsApp's own ids may lack the 9 that people write."""
        await platform.connect()
        sent = await send(platform, "5511987654321")
        job = await platform.post_job(contacts=["551187654321"], sendAt=NOON + HOUR)
        for to in ("5511987654321", "551187654321"):
            found = (await get(platform, "/v1/messages", to=to))["items"]
            assert {item["messageId"] for item in found} == {sent, f"{job['jobId']}:0"}, to
