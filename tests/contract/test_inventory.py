"""Uploads, /status, /api/proxies and /api/profiles, as an operator and a dashboard see them."""

import asyncio
import io
import logging
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import structlog

from paceline.kits.logging import configure_logging
from paceline.orchestrator.uploading import MAX_LINES, REJECTED_SHOWN
from paceline.store import keys
from paceline.store.fleet import AllocationLimits

from .platform import NOON, OTHER_PHONE, PHONE, READ_KEY, SESSION, Platform, refused

USER, PASSWORD = "canary-user-name", "canary-pass-word"
PAYLOAD = "canary-payload-of-a-profile"


def url(number: int) -> str:
    return f"http://{USER}{number}:{PASSWORD}@h{number}.example:8080"


async def upload(platform: Platform, data: bytes | str, what: str = "proxies", **options: Any) -> httpx.Response:
    body = data.encode() if isinstance(data, str) else data
    files = {"file": ("list.txt", body, "text/plain")}
    return await platform.orchestrator.post(f"/upload/{what}", files=files, **options)


async def stocked(platform: Platform, count: int = 2) -> None:
    answer = await upload(platform, "\n".join(url(number) for number in range(1, count + 1)))
    assert answer.status_code == 200, answer.text


async def running(platform: Platform, session: str = SESSION, phone: str = PHONE) -> None:
    """A session with a worker that holds a proxy."""
    body = {"sessionId": session, "phone": phone, "proxy": "p1"}
    answer = await platform.orchestrator.post("/api/sessions", json=body)
    assert answer.status_code == 201, answer.text
    begun = await platform.store.fleet.begin_start(
        session, generation=1, instance=f"i-{session}", limits=AllocationLimits(), now_ms=NOON
    )
    assert begun.code == "OK"


class TestUpload:
    async def test_good_lines_are_stored_bad_ones_named_and_the_same_again_adds_nothing(
        self, platform: Platform
    ) -> None:
        file = f"\ufeff# my proxies\r\n{url(1)}\r\n\r\nsocks5://a:b@c:1\r\n{url(1)}/\r\n{url(2)}\r\nnonsense\r\n"
        answer = await upload(platform, file)
        assert answer.status_code == 200
        body = answer.json()
        assert (body["status"], body["added"], body["duplicates"], body["rejectedTotal"]) == ("ok", 2, 1, 2)
        assert body["rejected"] == [
            {"line": 4, "reason": "names would be resolved here; use socks5h://"},
            {"line": 7, "reason": "is no URL; write it as http://user:password@host:port"},
        ]
        before = await platform.snapshot()
        again = (await upload(platform, file)).json()
        assert (again["added"], again["duplicates"], again["rejectedTotal"]) == (0, 3, 2)
        assert await platform.snapshot() == before

    async def test_profiles(self, platform: Platform) -> None:
        file = '{"displayName": "Ada", "timezone": "Asia/Jerusalem"}\n{"timezone": "Mars"}\n' + PAYLOAD + "\n" + PAYLOAD
        body = (await upload(platform, file, "profiles")).json()
        assert (body["added"], body["duplicates"], [bad["line"] for bad in body["rejected"]]) == (2, 1, [2])

    async def test_two_at_once_store_each_line_once(self, platform: Platform) -> None:
        file = "\n".join(url(number) for number in range(50))
        answers = await asyncio.gather(*[upload(platform, file) for _ in range(4)])
        assert sum(answer.json()["added"] for answer in answers) == 50
        status = (await platform.orchestrator.get("/status")).json()
        assert status["inventory"]["proxies"] == {"available": 50, "total": 50, "bad": 0}

    async def test_of_many_bad_lines_the_first_are_listed_and_all_counted(self, platform: Platform) -> None:
        body = (await upload(platform, "x\n" * 2_500 + url(1))).json()
        assert (body["added"], body["rejectedTotal"], len(body["rejected"])) == (1, 2_500, REJECTED_SHOWN)
        assert body["rejected"][-1]["line"] == REJECTED_SHOWN

    async def test_several_pieces_keep_their_line_numbers(self, platform: Platform) -> None:
        lines = [url(number) for number in range(2_200)]
        lines[1_500] = "bad"
        body = (await upload(platform, "\n".join(lines))).json()
        assert (body["added"], body["rejected"][0]["line"]) == (2_199, 1_501)

    @pytest.mark.parametrize("what", ["proxies", "profiles"])
    @pytest.mark.parametrize(
        ("data", "line"),
        [
            pytest.param(b"a\nb\x00c", 2, id="NUL"),
            pytest.param(b"a\n\xff\xfe", 2, id="no UTF-8"),
            pytest.param(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 50, 1, id="a picture"),
            pytest.param("http://a:b@c:1".encode("utf-16"), 1, id="UTF-16"),
        ],
    )
    async def test_binary_junk_is_refused_whole_and_names_the_line(
        self, platform: Platform, what: str, data: bytes, line: int
    ) -> None:
        async with platform.nothing_stored():
            error = refused(await upload(platform, data, what), 400, "INVALID_FILE", "file")
        assert error["details"]["line"] == line

    @pytest.mark.parametrize("data", ["", "\n\n# nothing\n", "\ufeff"], ids=["empty", "comments", "a mark"])
    async def test_a_file_without_lines_is_refused(self, platform: Platform, data: str) -> None:
        refused(await upload(platform, data), 400, "INVALID_FILE", "file")

    async def test_too_many_lines(self, platform: Platform) -> None:
        async with platform.nothing_stored():
            error = refused(await upload(platform, "x\n" * (MAX_LINES + 1)), 413, "TOO_MANY_LINES", "file")
        assert error["details"]["limit"] == MAX_LINES

    @pytest.mark.parametrize("size", [5 * 1_048_576 + 1, 50 * 1_048_576], ids=["a byte too large", "50 MB"])
    async def test_too_large(self, platform: Platform, size: int) -> None:
        async with platform.nothing_stored():
            refused(await upload(platform, b"a" * size), 413, "BODY_TOO_LARGE")

    async def test_5_mb_are_read_and_a_line_of_5_mb_is_a_bad_line(self, platform: Platform) -> None:
        body = (await upload(platform, b"a" * (5 * 1_048_576))).json()
        assert body["rejected"] == [{"line": 1, "reason": "longer than 1,024 characters"}]

    @pytest.mark.parametrize(
        ("options", "status", "code", "field"),
        [
            pytest.param({"json": {"file": "x"}}, 415, "UNSUPPORTED_MEDIA_TYPE", None, id="JSON"),
            pytest.param({"content": b"http://a:b@c:1"}, 415, "UNSUPPORTED_MEDIA_TYPE", None, id="raw"),
            pytest.param({"files": {"files": ("a", b"x")}}, 400, "INVALID_REQUEST", "files", id="another field"),
            pytest.param({"data": {"file": "x"}, "files": {}}, 415, "UNSUPPORTED_MEDIA_TYPE", None, id="urlencoded"),
            pytest.param(
                {"files": [("file", ("a", b"x")), ("file", ("b", b"x"))]}, 400, "INVALID_REQUEST", "file", id="two"
            ),
            pytest.param({"files": {"file": (None, b"x")}}, 400, "INVALID_REQUEST", "file", id="no file name"),
        ],
    )
    async def test_another_form(
        self, platform: Platform, options: dict[str, Any], status: int, code: str, field: str | None
    ) -> None:
        async with platform.nothing_stored():
            refused(await platform.orchestrator.post("/upload/proxies", **options), status, code, field)

    async def test_a_form_without_a_file(self, platform: Platform) -> None:
        headers = {"Content-Type": "multipart/form-data; boundary=x"}
        answer = await platform.orchestrator.post("/upload/proxies", content=b"--x--\r\n", headers=headers)
        refused(answer, 400, "INVALID_REQUEST", "file")

    async def test_without_redis_it_may_be_repeated(self, platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
        """Redis goes away between two pieces: 503, and the same file again stores what was missing."""
        add, calls = platform.store.inventory.add_proxies, 0

        async def once(*given: Any, **fields: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == 5:
                await platform.link.read(("CONFIG", "SET", "maxmemory", 1))
            return await add(*given, **fields)

        monkeypatch.setattr(platform.store.inventory, "add_proxies", once)
        file = "\n".join(url(number) for number in range(1_500))
        refused(await upload(platform, file), 503, "UNAVAILABLE")
        await platform.link.read(("CONFIG", "SET", "maxmemory", 0))
        body = (await upload(platform, file)).json()
        assert (body["added"], body["duplicates"]) == (500, 1_000)


class TestLooking:
    async def test_status_has_the_shape_of_the_specification(self, platform: Platform) -> None:
        await stocked(platform, 3)
        await upload(platform, "a\nb", "profiles")
        await running(platform)
        await platform.register("s2", OTHER_PHONE)
        await platform.orchestrator.post("/api/proxies/p3/bad")
        assert (await platform.orchestrator.get("/status")).json() == {
            "status": "ok",
            "inventory": {
                "profiles": {"available": 1, "used": 1},
                "proxies": {"available": 2, "total": 3, "bad": 1},
            },
            "rules": {"maxSessionsPerProxy": 4, "maxSessionsPerPhone": 4},
            "sessions": {"STARTING": 2},
        }

    async def test_proxies_in_pages_with_load_health_and_holders(self, platform: Platform) -> None:
        await stocked(platform, 5)
        await running(platform)
        await platform.orchestrator.post("/api/proxies/p2/bad", json={"reason": "slow"})
        seen, cursor = [], "0"
        for _ in range(3):
            page = (await platform.orchestrator.get("/api/proxies", params={"cursor": cursor, "limit": 2})).json()
            seen += page["items"]
            cursor = page["nextCursor"]
        assert cursor is None
        assert [item["proxyId"] for item in seen] == ["p1", "p2", "p3", "p4", "p5"]
        held, bad = seen[0], seen[1]
        assert (held["proxy"], held["load"], held["limit"], held["sessions"]) == (
            "http://***@h1.example:8080", 1, 4, [SESSION],
        )  # fmt: skip
        assert (held["state"], held["addedAt"], held["reason"]) == ("OK", NOON, None)
        assert (bad["state"], bad["reason"], bad["by"], bad["since"]) == ("BAD", "slow", "bootstrap", NOON)

    async def test_profiles_with_their_settings_and_who_has_them(self, platform: Platform) -> None:
        line = '{"displayName": "Ada", "timezone": "Asia/Jerusalem", "tags": ["vip"], "createdAt": 1700000000000}'
        await upload(platform, f"{line}\n{PAYLOAD}", "profiles")
        page = (await platform.orchestrator.get("/api/profiles")).json()
        first, second = page["items"]
        assert page["nextCursor"] is None
        assert (first["kind"], first["displayName"], first["timezone"], first["tags"], first["createdAt"]) == (
            "settings", "Ada", "Asia/Jerusalem", ["vip"], 1_700_000_000_000,
        )  # fmt: skip
        assert (second["kind"], second["size"], second["tags"], second["sessionId"]) == (
            "payload",
            len(PAYLOAD),
            [],
            None,
        )
        body = {"sessionId": SESSION, "phone": PHONE, "profile": first["profileId"]}
        assert (await platform.orchestrator.post("/api/sessions", json=body)).status_code == 201
        page = (await platform.orchestrator.get("/api/profiles", params={"limit": 1})).json()
        assert (page["items"][0]["sessionId"], page["nextCursor"]) == (SESSION, "1")

    @pytest.mark.parametrize("path", ["/api/proxies", "/api/profiles"])
    @pytest.mark.parametrize(
        "params",
        [{"limit": 0}, {"limit": 1_001}, {"limit": "x"}, {"cursor": "x"}, {"cursor": -1}, {"cursor": 10**16}],
        ids=str,
    )
    async def test_a_bad_page_is_named(self, platform: Platform, path: str, params: dict[str, Any]) -> None:
        (field,) = params
        refused(await platform.orchestrator.get(path, params=params), 400, "INVALID_REQUEST", field)

    async def test_an_empty_inventory(self, platform: Platform) -> None:
        for path in ("/api/proxies", "/api/profiles"):
            assert (await platform.orchestrator.get(path)).json() == {"items": [], "nextCursor": None}


class TestDeciding:
    async def test_bad_moves_its_sessions_and_ok_brings_it_back(self, platform: Platform) -> None:
        await stocked(platform)
        await running(platform)
        body = (await platform.orchestrator.post("/api/proxies/p1/bad", json={"reason": "timed out"})).json()
        assert (body["changed"], body["moved"], body["kept"], body["proxy"]["state"]) == (True, [SESSION], [], "BAD")
        again = (await platform.orchestrator.post("/api/proxies/p1/bad", json={"reason": "again"})).json()
        assert (again["changed"], again["moved"], again["proxy"]["reason"]) == (False, [], "timed out")
        back = (await platform.orchestrator.post("/api/proxies/p1/ok")).json()
        assert (back["changed"], back["proxy"]["state"], back["proxy"]["reason"]) == (True, "OK", "OPERATOR")

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            pytest.param({"reason": ""}, "reason", id="empty"),
            pytest.param({"reason": "x" * 201}, "reason", id="too long"),
            pytest.param({"reason": "a\nb"}, "reason", id="control characters"),
            pytest.param({"reason": 5}, "reason", id="no text"),
            pytest.param({"why": "x"}, "why", id="unknown field"),
        ],
    )
    async def test_a_bad_reason_is_named(self, platform: Platform, body: dict[str, Any], field: str) -> None:
        await stocked(platform)
        async with platform.nothing_stored():
            refused(await platform.orchestrator.post("/api/proxies/p1/bad", json=body), 400, "INVALID_REQUEST", field)

    @pytest.mark.parametrize(
        ("method", "path", "code"),
        [
            ("POST", "/api/proxies/p9/bad", "UNKNOWN_PROXY"),
            ("POST", "/api/proxies/p9/ok", "UNKNOWN_PROXY"),
            ("POST", "/api/proxies/x/ok", "UNKNOWN_PROXY"),
            ("POST", "/api/proxies/p99999999999999999999/ok", "UNKNOWN_PROXY"),
            ("DELETE", "/api/proxies/p9", "UNKNOWN_PROXY"),
            ("DELETE", "/api/proxies/*", "UNKNOWN_PROXY"),
            ("DELETE", "/api/profiles/f0123456789abcdef", "UNKNOWN_PROFILE"),
            ("DELETE", "/api/profiles/x", "UNKNOWN_PROFILE"),
        ],
    )
    async def test_what_nobody_knows_is_a_404(self, platform: Platform, method: str, path: str, code: str) -> None:
        async with platform.nothing_stored():
            refused(await platform.orchestrator.request(method, path), 404, code)

    async def test_what_is_used_stays_and_what_is_not_can_go(self, platform: Platform) -> None:
        await stocked(platform)
        await upload(platform, "a\nb", "profiles")
        await running(platform)
        error = refused(await platform.orchestrator.delete("/api/proxies/p1"), 409, "PROXY_IN_USE")
        assert error["details"]["sessions"] == [SESSION]
        assert (await platform.orchestrator.delete("/api/proxies/p2")).status_code == 204
        profiles = (await platform.orchestrator.get("/api/profiles")).json()["items"]
        for profile in profiles:
            answer = await platform.orchestrator.delete(f"/api/profiles/{profile['profileId']}")
            assert answer.status_code == (409 if profile["sessionId"] else 204)

    async def test_a_reading_key_decides_nothing(self, platform: Platform) -> None:
        """The walk over all routes proves it for each; here for what would hurt most."""
        await stocked(platform)
        headers = {"X-API-KEY": READ_KEY}
        async with platform.nothing_stored():
            refused(await upload(platform, url(9), headers=headers), 403, "FORBIDDEN")
            refused(await platform.orchestrator.post("/api/proxies/p1/bad", headers=headers), 403, "FORBIDDEN")


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Everything that is logged, at the most talkative level."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    configure_logging("contract", "debug", stream=stream)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


async def test_credentials_and_payloads_are_in_no_answer_log_incident_event_or_audit(
    platform: Platform, log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy's whole life, and everything that can go wrong with it."""
    ask, answers = platform.orchestrator, []
    bad = [
        f"ftp://{USER}:{PASSWORD}@h:1",
        f"http://{USER}:{PASSWORD}@h",
        f"{USER}:{PASSWORD}@h:1",
        f"h:1:{USER}:{PASSWORD}",
    ]
    answers.append(await upload(platform, "\n".join([url(1), url(2), *bad])))
    answers.append(await upload(platform, "\n".join([url(1), *bad]).encode() + b"\x00"))
    answers.append(
        await upload(platform, f'{PAYLOAD}\n{{"displayName": 5, "x": "{PAYLOAD}"}}\n{{{PAYLOAD}', "profiles")
    )
    await running(platform)
    for path in ("/status", "/api/proxies", "/api/profiles", "/api/sessions", f"/api/sessions/{SESSION}"):
        answers.append(await ask.get(path))
    reason = {"reason": f"the request to {url(1)} timed out"}
    answers.append(await ask.post("/api/proxies/p1/bad", json=reason))
    answers.append(await ask.delete("/api/proxies/p1"))
    await platform.store.fleet.begin_start(SESSION, generation=2, instance="i2", limits=AllocationLimits(), now_ms=NOON)
    await platform.store.fleet.release(SESSION, now_ms=NOON)
    answers.append(await ask.post("/api/proxies/p1/ok", json=reason))
    answers.append(await ask.delete("/api/proxies/p1"))
    answers.append(await ask.get(f"/api/sessions/{SESSION}/events"))
    answers.append(await ask.get(f"/api/sessions/{SESSION}/history"))

    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError(url(1))

    monkeypatch.setattr(platform.store.inventory, "add_proxies", fail)
    answers.append(await upload(platform, url(3)))
    assert answers[-1].status_code == 500
    told = [await platform.link.read(("LRANGE", keys.incidents(), 0, -1))]
    told += [
        await platform.link.read(("XRANGE", key(), "-", "+")) for key in (keys.audit, keys.incident_stream, keys.events)
    ]
    assert "PROXY_BAD" in str(told)
    assert "request failed" in log.getvalue()
    for secret in (USER, PASSWORD, PAYLOAD):
        for answer in answers:
            assert secret not in answer.text, answer.request.url
        assert secret not in log.getvalue()
        assert secret not in str(told)
