"""Hostile input against real processes over real sockets: every answer is a 4xx in our one shape that says what is
wrong, nothing is stored, nothing hangs, no service takes it for a fault of its own, and memory stays flat.

The routes are read off the services' own documents, so a new one that takes a body is included by itself.
"""

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from .hostile import (
    BIG,
    CSV,
    CSV_ATTACKS,
    FILE_ATTACKS,
    FORM,
    FORM_ATTACKS,
    FORM_TYPE,
    HEAVY_JOB_ATTACKS,
    JOB_ATTACKS,
    JSON,
    JSON_ATTACKS,
    LARGEST,
    MEGABYTE,
    NONSENSE,
    THERE_IS_NONE,
    Attack,
    Route,
    file_of,
    routes,
)
from .platform import API_KEY, Platform, wait_for
from .raw import Answer, exchange, forget_peak, head, memory_of

PIECE_SECONDS = 3
PLATFORM = {
    "sessions": 1,
    "env": {"KEY_RATE_PER_MINUTE": "0", "RATE_PER_MINUTE": "0", "BODY_TIMEOUT_SECONDS": str(PIECE_SECONDS)},
}
SERVICES = ("gateway", "orchestrator", "dispatcher")
ROUNDS = 300
GROWTH = 50 * MEGABYTE
"""What a process may keep after hundreds of hostile requests: allocators do not give back every page."""
ROOM = 64 * MEGABYTE
"""BODIES_AT_ONCE_MB, the default."""
WORST = 15
"""A body that was made to hurt takes so many times its size while it is decoded, and one is decoded at a time."""


@pytest.fixture(scope="module")
def all_routes(platform: Platform) -> list[Route]:
    found = routes(platform)
    assert len(found) > 20, "an empty walk would prove nothing"
    assert {route.url for route in found} == {platform.gateway, platform.orchestrator, platform.dispatcher}
    return found


@pytest.fixture
def job_routes(all_routes: list[Route]) -> list[Route]:
    """Those that take a job: the largest bodies, and metadata that may be anything."""
    return [route for route in all_routes if route.path.startswith("/v1/jobs")]


@pytest.fixture
def upload_routes(all_routes: list[Route]) -> list[Route]:
    """Those that take a list of proxies or profiles as a file."""
    return [route for route in all_routes if route.path.startswith("/upload/")]


@pytest.fixture(autouse=True)
def nothing_stored(platform: Platform) -> Iterator[None]:
    """Neither in Redis nor on the disk; and nothing that a service logs as a fault of its own."""
    platform.pid("worker-sim-1")
    before, faults_before = stored(platform), faults(platform)
    yield
    # A session that is registered and connected has all its keys; what it changes has their names.
    wait_for("nothing to be stored", lambda: stored(platform) <= before)
    assert faults(platform) == faults_before


def faults(platform: Platform) -> list[str]:
    """What a service has logged as a fault of its own."""
    return [
        line
        for service in SERVICES
        for line in platform.logs()[f"{service}.log"].splitlines()
        if line.startswith("{") and json.loads(line).get("level") in ("error", "critical")
    ]


def stored(platform: Platform) -> set[str]:
    files = {str(path) for path in (platform.data / "media").rglob("*") if path.is_file()}
    return files | set(platform.redis.keys("*"))


def refused(answer: Answer, *codes: str) -> None:
    assert 400 <= answer.status < 500, answer
    assert answer.error["code"] in codes, answer.error
    assert "x-request-id" in answer.headers


def strike_all(attacks: list[Attack], targets: list[Route], kind: str) -> None:
    for attack in attacks:
        for route in targets:
            answer = attack.strike(route)
            others = ("UNSUPPORTED_MEDIA_TYPE", "UNSUPPORTED_ENCODING", "MEDIA_TYPE", "BODY_TOO_LARGE")
            # Where its type is taken it is refused for what is wrong inside; elsewhere for its type or size.
            codes = attack.codes if kind in route.takes else others
            refused(answer, *codes, *THERE_IS_NONE)


def test_bad_json_is_refused_by_every_route(all_routes: list[Route]) -> None:
    strike_all(JSON_ATTACKS, all_routes, JSON)


def test_bad_forms_are_refused_by_every_route(all_routes: list[Route]) -> None:
    strike_all(FORM_ATTACKS, all_routes, FORM)


def test_bad_csv_is_refused_by_every_route(all_routes: list[Route]) -> None:
    strike_all(CSV_ATTACKS, [route for route in all_routes if not route.stores_files], CSV)


def test_bad_files_are_refused_by_both_uploads(upload_routes: list[Route]) -> None:
    assert len(upload_routes) == 2
    strike_all(FILE_ATTACKS, upload_routes, FORM)


def test_files_full_of_nonsense_are_read_to_the_end_and_leave_the_memory_flat(
    platform: Platform, upload_routes: list[Route]
) -> None:
    pid = platform.pid("orchestrator")

    def upload_all() -> None:
        for name, content in NONSENSE.items():
            for route in upload_routes:
                answer = route.post(file_of(content), FORM_TYPE)
                assert answer.status == 200, f"{name}: {answer}"
                told = json.loads(answer.body)
                assert (told["added"], told["duplicates"]) == (0, 0), f"{name}: {told['added']}"
                assert told["rejectedTotal"] == len(content.splitlines()), name

    upload_all()
    before, _ = memory_of(pid)
    forget_peak(pid)
    for _ in range(3):
        upload_all()
    now, peak = memory_of(pid)
    print(f"\nfiles: {before // MEGABYTE} MB before, {now // MEGABYTE} MB after, {peak // MEGABYTE} MB at most")
    assert now - before <= GROWTH
    assert peak - before <= WORST * 5 * MEGABYTE


def test_what_is_wrong_deep_inside_a_job_is_refused(job_routes: list[Route]) -> None:
    assert len(job_routes) == 2
    strike_all(JOB_ATTACKS, job_routes, JSON)
    strike_all(HEAVY_JOB_ATTACKS, job_routes[:1], JSON)  # both are read by the same code; these take a while


def test_a_job_packed_into_a_body_of_another_route_is_too_large_there(all_routes: list[Route]) -> None:
    """40 MB, announced: refused before any of it is read."""
    for route in all_routes:
        headers = {"Content-Type": route.own_type, "Content-Length": str(BIG)}
        refused(route.send([b" " * 1_000], headers), "BODY_TOO_LARGE", *THERE_IS_NONE)


def test_40_mb_without_a_length_end_at_the_limit_of_every_route(all_routes: list[Route]) -> None:
    for route in all_routes:
        answer = route.pour(b" " * MEGABYTE, BIG // MEGABYTE)
        too_large = ("BODY_TOO_LARGE", "MEDIA_TOO_LARGE")
        # Spaces are neither a form nor a file, which may be seen before they are too many.
        refused(answer, *too_large, *(() if JSON in route.takes else ("INVALID_REQUEST", "MEDIA_TYPE")), *THERE_IS_NONE)


@pytest.mark.parametrize("announced", [True, False], ids=["announced", "chunked"])
def test_a_body_that_never_comes_is_a_408_and_its_connection_ends(all_routes: list[Route], announced: bool) -> None:
    length = {"Content-Length": "100"} if announced else {"Transfer-Encoding": "chunked"}
    begun = [b'{"to":"'] if announced else [b'7\r\n{"to":"\r\n']

    def wait(route: Route) -> Answer:
        return route.send(begun, {"Content-Type": route.own_type, **length})

    with ThreadPoolExecutor(len(all_routes)) as pool:
        for answer in pool.map(wait, all_routes):
            refused(answer, "BODY_TIMEOUT", *THERE_IS_NONE)
            assert answer.status != 408 or answer.headers["connection"] == "close"


def test_a_body_that_is_cut_off_is_no_fault_of_ours(platform: Platform, all_routes: list[Route]) -> None:
    """The caller is gone, so there is no answer to judge; the service lives and says nothing."""
    for route in all_routes:
        parts = urlsplit(route.url)
        with socket.create_connection((parts.hostname or "", parts.port or 0)) as connection:
            headers = {"X-API-KEY": API_KEY, "Content-Type": route.own_type, "Content-Length": "1000"}
            connection.sendall(head(route.method, route.target, headers) + b'{"to":')
    for url in (platform.gateway, platform.orchestrator, platform.dispatcher):
        assert exchange(url, [head("GET", "/health", {})]).status == 200


POST = b"POST /v1/jobs HTTP/1.1\r\nHost: a\r\n"
JSON_POST = POST + f"Content-Type: {JSON}\r\nX-API-KEY: {API_KEY}\r\n".encode()


def get(target: bytes, headers: bytes = b"") -> bytes:
    return b"GET %b HTTP/1.1\r\nHost: a\r\n%b\r\n" % (target, headers)


HEADS = [
    pytest.param(get(b"/" + b"a" * 200_000), "HEADERS_TOO_LARGE", id="a long path"),
    pytest.param(get(b"/v1/jobs?a=" + b"a" * 66_000), "HEADERS_TOO_LARGE", id="a long query"),
    pytest.param(get(b"/", b"X: " + b"a" * 200_000 + b"\r\n"), "HEADERS_TOO_LARGE", id="a long header"),
    pytest.param(get(b"/", b"X: a\r\n" * 20_000), "HEADERS_TOO_LARGE", id="20,000 headers"),
    pytest.param(get(b"/", b"X: a\r\n" * 5_000), "NOT_FOUND", id="5,000 headers are just many"),
    pytest.param(get(b"/", b"X: a\x00b\r\n"), "INVALID_HTTP", id="NUL in a header"),
    pytest.param(get(b"/%00/%ff%fe/%u"), "NOT_FOUND", id="odd escapes in a path"),
    pytest.param(get(b"/../../etc/passwd"), "NOT_FOUND", id="dots in a path"),
    pytest.param(get(b"/\xff"), "INVALID_HTTP", id="no ASCII in a path"),
    pytest.param(b"GET / HTTP/1.1\r\n\r\n", "INVALID_HTTP", id="no host"),
    pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 500, "INVALID_HTTP", id="TLS"),
    pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "INVALID_HTTP", id="SSH"),
    pytest.param(POST + b"Content-Length: -5\r\n\r\n", "INVALID_HTTP", id="a length below nothing"),
    pytest.param(POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", "INVALID_HTTP", id="two lengths"),
    pytest.param(POST + b"Transfer-Encoding: gzip\r\n\r\n", "INVALID_HTTP", id="another transfer encoding"),
    pytest.param(JSON_POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "INVALID_HTTP", id="a chunk of no length"),
]


@pytest.mark.parametrize(("sent", "code"), HEADS)
def test_what_is_no_request_is_refused_in_our_shape_too(platform: Platform, sent: bytes, code: str) -> None:
    refused(exchange(platform.gateway, [sent]), code)


def test_large_bodies_have_room_for_so_many_and_small_ones_always(platform: Platform, job_routes: list[Route]) -> None:
    """Two of the largest fill the room; a third is told to come again, and small ones are served meanwhile."""
    [job, *_] = job_routes
    announced = {"X-API-KEY": API_KEY, "Content-Type": JSON, "Content-Length": str(LARGEST)}
    parts = urlsplit(job.url)
    held = [socket.create_connection((parts.hostname or "", parts.port or 0)) for _ in range(2)]
    try:
        for connection in held:
            connection.sendall(head("POST", job.target, announced) + b"[" + b" " * 200_000)
        # They are being read as soon as another one is refused.
        third = wait_for("the room to be full", lambda: _full(job.send([b" " * 1_000], announced)))
        assert third.error["code"] == "BODIES_FULL"
        assert int(third.headers["retry-after"]) == third.error["retryAfterSeconds"] > 0
        refused(job.post(b"[]", JSON), "INVALID_REQUEST")
        assert exchange(platform.gateway, [head("GET", "/health", {})]).status == 200
    finally:
        for connection in held:
            connection.close()
    # What they held is given back.
    wait_for("room again", lambda: job.post(b" " * LARGEST, JSON).status == 400)


def _full(answer: Answer) -> Answer | None:
    return answer if answer.status == 503 else None


def test_a_storm_of_the_largest_bodies_costs_what_the_room_allows(platform: Platform, job_routes: list[Route]) -> None:
    """24 at once, three quarters of a gigabyte: what does not fit is refused, and what is held has a limit."""
    pid = platform.pid("gateway")
    piece = b'{"contacts":["' + b"9" * (MEGABYTE - 14)

    def pour(number: int) -> Answer:
        return job_routes[number % 2].pour(piece, LARGEST // MEGABYTE)

    forget_peak(pid)
    before, _ = memory_of(pid)
    with ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(pour, range(24)))
    _, peak = memory_of(pid)
    for answer in answers:
        if answer.status == 503:
            assert answer.error["code"] == "BODIES_FULL"
        else:
            refused(answer, "INVALID_JSON", "INVALID_REQUEST")
    print(f"\na storm: {before // MEGABYTE} MB before, {peak // MEGABYTE} MB at most")
    # In pieces and put together.
    assert peak - before <= 3 * ROOM


def test_hundreds_of_rounds_leave_the_memory_flat(
    platform: Platform, all_routes: list[Route], job_routes: list[Route]
) -> None:
    """Everything has run once before this, so what is measured is growth and no warm-up."""
    pids = {service: platform.pid(service) for service in SERVICES}
    strike_all(HEAVY_JOB_ATTACKS, job_routes[:1], JSON)
    before = {service: memory_of(pid)[0] for service, pid in pids.items()}
    for pid in pids.values():
        forget_peak(pid)
    struck = 0
    while struck < ROUNDS:
        strike_all(JSON_ATTACKS[struck % 7 :: 7], all_routes, JSON)
        strike_all(JOB_ATTACKS, job_routes, JSON)
        struck += len(all_routes) * len(JSON_ATTACKS[struck % 7 :: 7])
    strike_all(HEAVY_JOB_ATTACKS, job_routes[:1], JSON)
    for service, pid in pids.items():
        now, peak = memory_of(pid)
        shown = [f"{value // MEGABYTE} MB" for value in (before[service], now, peak)]
        print(f"\n{service}: {shown[0]} before, {shown[1]} after, {shown[2]} at most")
        assert now - before[service] <= GROWTH, service
        assert peak - before[service] <= WORST * LARGEST, service
