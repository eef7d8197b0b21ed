"""A session's life over HTTP: start, stop, restart, pause, resume, remove, change; who did it; and races of them."""

import asyncio
import json
from collections.abc import Callable
from typing import Any, get_args

import httpx
import pytest

from paceline.domain.sessions import Connection, Status
from paceline.orchestrator.audit import AuditFollower
from paceline.orchestrator.audit_db import AuditDb
from paceline.orchestrator.routes_sessions import ConnectionWord, StatusWord
from paceline.store import keys

from .platform import DAY_MS, FRIEND, NOON, OTHER_PHONE, PHONE, READ_KEY, SESSION, Platform, refused

WISHES = ("start", "stop", "restart", "pause", "resume")
PATH = f"/api/sessions/{SESSION}"


async def act(platform: Platform, wish: str, session: str = SESSION) -> httpx.Response:
    return await platform.orchestrator.post(f"/api/sessions/{session}/{wish}")


async def remove(platform: Platform, session: str = SESSION, **params: str) -> httpx.Response:
    return await platform.orchestrator.delete(f"/api/sessions/{session}", params=params)


async def view(platform: Platform, session: str = SESSION) -> dict[str, Any]:
    answer = await platform.orchestrator.get(f"/api/sessions/{session}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def trail(platform: Platform) -> list[dict[str, Any]]:
    entries = (await platform.link.read(("XRANGE", keys.audit(), "-", "+")))[0]
    return [json.loads(fields["d"]) for _, fields in entries]


class TestWho:
    @pytest.mark.parametrize("wish", [*WISHES, "logout", "pairing-code", "simulated/scan"])
    async def test_nobody_knows_it(self, platform: Platform, wish: str) -> None:
        async with platform.nothing_stored():
            refused(await act(platform, wish, "nobody"), 404, "UNKNOWN_SESSION", "sessionId")

    @pytest.mark.parametrize("path", ["", "/qr", "/events", "/history"])
    async def test_nobody_knows_what_is_looked_at(self, platform: Platform, path: str) -> None:
        refused(await platform.orchestrator.get(f"/api/sessions/nobody{path}"), 404, "UNKNOWN_SESSION", "sessionId")

    async def test_nobody_knows_what_is_removed_or_changed(self, platform: Platform) -> None:
        async with platform.nothing_stored():
            refused(await remove(platform, "nobody"), 404, "UNKNOWN_SESSION", "sessionId")
            answer = await platform.orchestrator.patch("/api/sessions/nobody", json={"tags": []})
            refused(answer, 404, "UNKNOWN_SESSION", "sessionId")
            refused(await platform.orchestrator.post("/session/restart/nobody"), 404, "UNKNOWN_SESSION", "sessionId")

    @pytest.mark.parametrize("wish", WISHES)
    async def test_it_needs_an_operators_key(self, platform: Platform, wish: str) -> None:
        await platform.connect()
        async with platform.nothing_stored():
            headers = {"X-API-KEY": READ_KEY}
            refused(await platform.orchestrator.post(f"{PATH}/{wish}", headers=headers), 403, "FORBIDDEN")
            refused(await platform.orchestrator.post(f"{PATH}/{wish}", headers={"X-API-KEY": "x"}), 401, "UNAUTHORIZED")

    async def test_every_action_is_written_down_with_who_did_it(self, platform: Platform) -> None:
        await platform.connect()
        for wish in ("pause", "resume", "restart", "stop", "start"):
            assert (await act(platform, wish)).status_code == 200
        await platform.orchestrator.patch(PATH, json={"tags": ["a"]})
        await remove(platform)
        facts = [fact for fact in await trail(platform) if "action" in fact]
        assert [fact["action"] for fact in facts] == [
            "create", "pause", "resume", "restart", "stop", "start", "change", "remove",
        ]  # fmt: skip
        assert {(fact["by"], fact["sessionId"], fact["phone"]) for fact in facts} == {("bootstrap", SESSION, PHONE)}


class TestWishes:
    async def test_stop_and_start(self, platform: Platform) -> None:
        await platform.connect()
        stopped = (await act(platform, "stop")).json()
        assert (stopped["status"], stopped["changed"]) == ("ok", True)
        assert (stopped["session"]["status"], stopped["session"]["desired"]) == ("STOPPED", "stopped")
        assert (await act(platform, "stop")).json()["changed"] is False
        started = (await act(platform, "start")).json()["session"]
        assert (started["status"], started["desired"], started["generation"]) == ("STARTING", "running", 2)
        assert (await act(platform, "start")).json()["changed"] is False

    async def test_a_restart_is_always_another_worker(self, platform: Platform) -> None:
        await platform.connect()
        first = (await act(platform, "restart")).json()["session"]
        assert (first["generation"], first["restartReason"], first["connection"]) == (2, "OPERATOR", "STARTING")
        older = await platform.orchestrator.post(f"/session/restart/{SESSION}")
        assert (older.status_code, older.json()) == (200, {"status": "ok", "restarted": SESSION})
        assert (await view(platform))["generation"] == 3

    async def test_a_stopped_session_is_restarted_by_a_restart(self, platform: Platform) -> None:
        await platform.connect()
        await act(platform, "stop")
        assert (await act(platform, "restart")).json()["session"]["desired"] == "running"

    async def test_the_worker_of_a_stopped_session_is_told_to_go(self, platform: Platform) -> None:
        """Also one that waits for a task at that moment."""
        epoch = await platform.connect()
        waiting = asyncio.create_task(platform.outbox("claim?timeout=20", {"epoch": epoch}))
        while not platform.waiters._waiting:  # noqa: ASYNC110 - the application has no event for its first look
            await asyncio.sleep(0)
        await act(platform, "stop")
        platform.waiters.wake(SESSION)
        refused(await waiting, 409, "NOT_WANTED")
        refused(await platform.hello(instance="another"), 409, "NOT_WANTED")

    async def test_stop_while_starting(self, platform: Platform) -> None:
        """The worker's CONNECTED comes when nobody wants it any more."""
        await platform.register()
        await platform.hello()
        await act(platform, "stop")
        assert (await platform.webhook("CONNECTED", {"epoch": 1})).status_code == 200
        assert (await view(platform))["status"] == "STOPPED"

    async def test_a_failed_session_starts_again(self, platform: Platform) -> None:
        await platform.connect()
        await platform.webhook("DISCONNECTED", {"code": 440, "epoch": 1})
        failed = await view(platform)
        assert (failed["status"], failed["failedReason"]) == ("FAILED", "REPLACED")
        await platform.webhook("DISCONNECTED", {"code": 440, "epoch": 1})
        told = [line for line in await platform.store.operators.incidents() if line["kind"] == "SESSION_FAILED"]
        assert [(line["sessionId"], line["reason"]) for line in told] == [(SESSION, "REPLACED")], "once"
        started = (await act(platform, "start")).json()
        assert (started["changed"], started["session"]["failedReason"]) == (True, None)


class TestPause:
    async def test_it_stays_connected_and_sends_nothing_until_it_is_resumed(self, platform: Platform) -> None:
        epoch = await platform.connect()
        paused = (await act(platform, "pause")).json()["session"]
        assert (paused["status"], paused["connection"], paused["paused"]) == ("PAUSED", "CONNECTED", True)
        task = (await platform.post_job(phone=PHONE))["jobId"] + ":0"
        await platform.dispatch()
        assert (await platform.claim(epoch))["task"] is None
        await act(platform, "resume")
        await platform.dispatch()
        assert (await platform.claim(epoch))["task"]["taskId"] == task

    async def test_what_waits_says_why(self, platform: Platform) -> None:
        await platform.connect()
        body = {"to": FRIEND, "message": "hello", "sessionId": SESSION}
        sent = (await platform.gateway.post("/api/v1/send", json=body)).json()
        await act(platform, "pause")
        await platform.dispatch()
        waiting = (await platform.message(sent["messageId"]))["waiting"]
        assert (waiting["reason"], waiting["until"]) == ("SESSION_PAUSED", None)
        assert "paused until an operator resumes it" in waiting["text"]
        explained = (await platform.dispatcher.get(f"/sessions/{SESSION}/explain")).json()
        assert (explained["decision"], explained["rule"]) == ("wait", "SESSION_PAUSED")

    async def test_what_was_handed_over_goes_back_and_out_by_another_session(self, platform: Platform) -> None:
        """The phone has two; the pause of one does not hold up the number."""
        epochs = {session: await platform.connect(session) for session in ("s1", "s2")}
        await platform.post_job(phone=PHONE)
        await platform.dispatch()
        await act(platform, "pause", "s1")
        assert (await platform.claim(epochs["s1"], session="s1"))["task"] is None
        await platform.dispatch()
        assert (await platform.claim(epochs["s2"], session="s2"))["task"] is not None

    async def test_it_outlives_a_restart(self, platform: Platform) -> None:
        await platform.connect()
        await act(platform, "pause")
        assert (await act(platform, "restart")).json()["session"]["paused"] is True


class TestRemove:
    async def test_remove_while_connected(self, platform: Platform) -> None:
        """202 and REMOVING, the same again; its worker is told to go, its words change nothing, nothing else may be."""
        epoch = await platform.connect()
        for _ in range(2):
            answer = await remove(platform)
            assert (answer.status_code, answer.json()) == (202, {"status": "ok", "removing": True})
        assert (await view(platform))["status"] == "REMOVING"
        refused(await platform.outbox("claim?timeout=0", {"epoch": epoch}), 409, "NOT_WANTED")
        await platform.webhook("CONNECTED", {"epoch": epoch})
        assert (await view(platform))["connection"] == "STOPPED"
        for wish in WISHES:
            refused(await act(platform, wish), 409, "SESSION_REMOVING")
        refused(await platform.orchestrator.patch(PATH, json={"tags": []}), 409, "SESSION_REMOVING")

    async def test_registered_again_while_it_goes_it_is_refused_and_new_afterwards(self, platform: Platform) -> None:
        """It was once answered 200, as of a session that is there; a moment later it was gone."""
        await platform.connect()
        await remove(platform)
        body = {"sessionId": SESSION, "phone": PHONE}
        async with platform.nothing_stored():
            refused(await platform.orchestrator.post("/api/sessions", json=body), 409, "SESSION_REMOVING")
        assert (await platform.store.fleet.finish_removal(SESSION, now_ms=NOON)).code == "OK"
        assert (await platform.orchestrator.post("/api/sessions", json=body)).status_code == 201

    async def test_with_messages_waiting_only_by_force(self, platform: Platform) -> None:
        """They belong to the number and stay with it; a new session of it sends them."""
        await platform.connect()
        await act(platform, "pause")
        body = {"to": FRIEND, "message": "hello", "sessionId": SESSION}
        sent = (await platform.gateway.post("/api/v1/send", json=body)).json()
        async with platform.nothing_stored():
            error = refused(await remove(platform), 409, "TASKS_WAITING")
        assert error["details"]["waiting"] == 1
        assert "last session" in error["message"]
        assert (await remove(platform, force="true")).status_code == 202
        assert (await platform.store.fleet.finish_removal(SESSION, now_ms=NOON)).code == "OK"
        refused(await platform.orchestrator.get(PATH), 404, "UNKNOWN_SESSION")
        await platform.dispatch()
        message = await platform.message(sent["messageId"])
        assert (message["state"], message["waiting"]["reason"]) == ("queued", "NOT_CONNECTED")
        epoch = await platform.connect("s2")
        await platform.dispatch()
        assert (await platform.claim(epoch, session="s2"))["task"]["taskId"] == sent["messageId"]

    async def test_of_one_that_is_not_the_last_it_says_what_it_holds(self, platform: Platform) -> None:
        """It said that this was the number's last session, which it was not."""
        await platform.claimed()
        await platform.register("s2")
        error = refused(await remove(platform), 409, "TASKS_WAITING")
        assert (error["details"]["waiting"], "last session" in error["message"]) == (1, False)

    async def test_force_is_a_boolean(self, platform: Platform) -> None:
        await platform.register()
        refused(await remove(platform, force="perhaps"), 400, "INVALID_REQUEST", "force")


class TestChange:
    async def test_age_timezone_and_tags(self, platform: Platform) -> None:
        await platform.register(age_days=0)
        body = {"createdAt": NOON - 30 * DAY_MS, "timezone": "Europe/London", "tags": ["a", "b"]}
        changed = (await platform.orchestrator.patch(PATH, json=body)).json()
        assert {name: changed[name] for name in body} == body
        phone = (await platform.link.read(("HMGET", keys.phone(PHONE), "createdAt", "timezone")))[0]
        assert phone == [str(NOON - 30 * DAY_MS), "Europe/London"]

    async def test_what_is_not_named_stays(self, platform: Platform) -> None:
        await platform.register()
        before = await view(platform)
        changed = (await platform.orchestrator.patch(PATH, json={"tags": ["x"]})).json()
        assert changed == {**before, "tags": ["x"]}

    async def test_a_number_is_as_old_as_its_oldest_session(self, platform: Platform) -> None:
        await platform.register("s1", age_days=10)
        await platform.register("s2", age_days=20)
        await platform.orchestrator.patch("/api/sessions/s2", json={"createdAt": NOON - DAY_MS})
        phone = (await platform.link.read(("HGET", keys.phone(PHONE), "createdAt")))[0]
        assert phone == str(NOON - 10 * DAY_MS)

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({"createdAt": NOON + 1}, "createdAt"),
            ({"createdAt": "long ago"}, "createdAt"),
            ({"timezone": "Mars"}, "timezone"),
            ({"tags": [""]}, "tags[0]"),
            ({"phone": OTHER_PHONE}, "phone"),
        ],
    )
    async def test_bad_input_names_the_field(self, platform: Platform, body: dict[str, Any], field: str) -> None:
        await platform.register()
        async with platform.nothing_stored():
            answer = await platform.orchestrator.patch(PATH, json=body)
            assert answer.status_code == 400, answer.text
            assert answer.json()["error"]["details"]["field"].split(".")[0].replace("[...]", "[0]") == field


class TestList:
    @pytest.fixture
    async def fleet(self, platform: Platform) -> Platform:
        for number in range(4):
            await platform.connect(f"s{number}", str(972_541_000_000 + number))
        await act(platform, "stop", "s0")
        await act(platform, "pause", "s1")
        await platform.orchestrator.patch("/api/sessions/s2", json={"tags": ["vip"]})
        await platform.webhook("RESTRICTION", {"kind": "TIME_LOCKED", "until": NOON + DAY_MS}, session="s3")
        return platform

    @pytest.mark.parametrize(
        ("asked", "found"),
        [
            ({"connection": "STOPPED"}, ["s0"]),
            ({"connection": "CONNECTED"}, ["s1", "s2", "s3"]),
            ({"connection": "CONNECTED", "restriction": "NONE"}, ["s1", "s2"]),
            ({"restriction": "TIME_LOCKED"}, ["s3"]),
            ({"status": "PAUSED"}, ["s1"]),
            ({"tag": "vip"}, ["s2"]),
            ({"phone": "+972541000003"}, ["s3"]),
            ({"phone": "972541000009"}, []),
            ({"tag": "vip", "connection": "STOPPED"}, []),
        ],
    )
    async def test_filters(self, fleet: Platform, asked: dict[str, str], found: list[str]) -> None:
        page = (await fleet.orchestrator.get("/api/sessions", params=asked)).json()
        assert [item["sessionId"] for item in page["items"]] == found
        assert page["nextCursor"] is None

    @pytest.mark.parametrize("field", ["connection", "restriction", "status"])
    async def test_a_word_that_there_is_not(self, platform: Platform, field: str) -> None:
        answer = await platform.orchestrator.get("/api/sessions", params={field: "SLEEPY"})
        refused(answer, 400, "INVALID_REQUEST", field)

    def test_the_words_are_those_of_the_table(self) -> None:
        for words, known in ((ConnectionWord, Connection), (StatusWord, Status)):
            assert set(get_args(words)) - {""} == set(known)

    async def test_a_filtered_list_has_pages_too(self, fleet: Platform) -> None:
        seen, cursor = [], ""
        while True:
            params: dict[str, Any] = {"connection": "CONNECTED", "limit": 1, "cursor": cursor}
            page = (await fleet.orchestrator.get("/api/sessions", params=params)).json()
            seen += [item["sessionId"] for item in page["items"]]
            if not page["nextCursor"]:
                break
            cursor = page["nextCursor"]
        assert seen == ["s1", "s2", "s3"]


class TestInventory:
    @pytest.fixture
    async def pool(self, platform: Platform) -> Platform:
        lines = b"http://user:secret@10.0.0.1:8080\nhttp://10.0.0.2:8080\n"
        await platform.orchestrator.post("/upload/proxies", files={"file": ("p.txt", lines)})
        profile = {"displayName": "Ada", "timezone": "Europe/London", "tags": ["p"], "createdAt": NOON - 20 * DAY_MS}
        await platform.orchestrator.post("/upload/profiles", files={"file": ("f.txt", json.dumps(profile).encode())})
        return platform

    async def profile_id(self, platform: Platform) -> str:
        found: str = (await platform.orchestrator.get("/api/profiles")).json()["items"][0]["profileId"]
        return found

    async def test_a_profile_gives_defaults(self, pool: Platform) -> None:
        body = {"phone": PHONE, "sessionId": SESSION, "profile": await self.profile_id(pool), "tags": ["mine"]}
        made = (await pool.orchestrator.post("/api/sessions", json=body)).json()
        assert (made["profile"], made["displayName"]) == (body["profile"], "Ada")
        assert (made["timezone"], made["createdAt"]) == ("Europe/London", NOON - 20 * DAY_MS)
        assert made["tags"] == ["mine"], "what the request says counts first"
        again = await pool.orchestrator.post("/api/sessions", json={**body, "sessionId": "s2", "phone": OTHER_PHONE})
        refused(again, 409, "PROFILE_IN_USE", "profile")

    @pytest.mark.parametrize("proxy", ["p1", "http://user:secret@10.0.0.1:8080"])
    async def test_a_proxy_by_its_id_or_its_url(self, pool: Platform, proxy: str) -> None:
        body = {"phone": PHONE, "sessionId": SESSION, "proxy": proxy}
        made = await pool.orchestrator.post("/api/sessions", json=body)
        assert (made.status_code, made.json()["direct"]) == (201, False)
        sticky = (await pool.link.read(("HGET", keys.sticky_proxy(), PHONE)))[0]
        assert sticky == "http://user:secret@10.0.0.1:8080"
        assert "secret" not in made.text
        other = await pool.orchestrator.post("/api/sessions", json={**body, "sessionId": "s2", "proxy": "p2"})
        refused(other, 409, "PROXY_STICKY", "proxy")

    @pytest.mark.parametrize(
        ("fields", "status", "code", "field"),
        [
            ({"proxy": "p9"}, 404, "UNKNOWN_PROXY", "proxy"),
            ({"proxy": "http://10.0.0.9:80"}, 404, "UNKNOWN_PROXY", "proxy"),
            ({"proxy": "socks5://u:hidden@10.0.0.9:80"}, 400, "INVALID_URL", "proxy"),
            ({"proxy": "nonsense"}, 400, "INVALID_URL", "proxy"),
            ({"profile": "nonsense"}, 400, "INVALID_ID", "profile"),
            ({"profile": "f" + "0" * 16}, 404, "UNKNOWN_PROFILE", "profile"),
        ],
    )
    async def test_what_is_not_there(
        self, pool: Platform, fields: dict[str, str], status: int, code: str, field: str
    ) -> None:
        async with pool.nothing_stored():
            answer = await pool.orchestrator.post("/api/sessions", json={"phone": PHONE, **fields})
            refused(answer, status, code, field)
            assert "hidden" not in answer.text

    async def test_a_bad_one_is_refused(self, pool: Platform) -> None:
        await pool.orchestrator.post("/api/proxies/p1/bad", json={"reason": "slow"})
        answer = await pool.orchestrator.post("/api/sessions", json={"phone": PHONE, "proxy": "p1"})
        refused(answer, 409, "PROXY_BAD", "proxy")

    async def test_direct_when_asked_for(self, pool: Platform) -> None:
        made = (await pool.orchestrator.post("/api/sessions", json={"phone": PHONE, "proxy": "direct"})).json()
        assert (made["direct"], made["proxy"]) == (True, None)


class TestPast:
    async def test_events_come_in_pages_newest_first(self, platform: Platform) -> None:
        await platform.connect()
        for number in range(5):
            platform.clock.forward(number % 2)
            await platform.webhook("ERROR", {"n": number}, id_=f"e{number}")
        seen, cursor = [], ""
        while True:
            page = (await platform.orchestrator.get(f"{PATH}/events", params={"limit": 2, "cursor": cursor})).json()
            seen += [event["data"].get("n") for event in page["items"]]
            if not page["nextCursor"]:
                break
            cursor = page["nextCursor"]
        assert seen == [4, 3, 2, 1, 0, None]

    async def test_history_is_the_trail_page_by_page_also_of_a_removed_session(self, platform: Platform) -> None:
        await platform.connect()
        await act(platform, "pause")
        await remove(platform)
        assert (await platform.store.fleet.finish_removal(SESSION, now_ms=NOON)).code == "OK"

        async def here(call: Callable[[], Any]) -> Any:
            return call()

        db = AuditDb(platform.audit_path)
        follower = AuditFollower(platform.store, db, kept_days=1, in_thread=here)
        await follower.step(NOON)
        db.close()
        seen, cursor = [], ""
        while True:
            page = (await platform.orchestrator.get(f"{PATH}/history", params={"limit": 2, "cursor": cursor})).json()
            seen += [(row["kind"], row.get("action"), row.get("by")) for row in page["items"]]
            if not page["nextCursor"]:
                break
            cursor = page["nextCursor"]
        actions = [row for row in seen if row[0] == "OPERATOR"]
        who = "bootstrap"
        assert actions == [("OPERATOR", action, who) for action in ("remove", "pause", "create")]

    async def test_a_cursor_that_is_none(self, platform: Platform) -> None:
        await platform.register()
        refused(await platform.orchestrator.get(f"{PATH}/events?cursor=x"), 400, "INVALID_REQUEST", "cursor")
