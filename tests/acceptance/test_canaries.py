"""Nothing secret lies where it should not: a marked value in everything a caller or an operator gives, a day with
successes, failures, crashes and hostile input at the most talkative log level, and then a look at every log, every
answer, every command line and every file below the data directory.

`docs/reliability.md`, "What lies where", says the same in words.
"""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from .api import Client, people
from .checkers import _derived_secrets
from .platform import API_KEY, WEBHOOK_SECRET, Platform, wait_for
from .receiver import Receiver

PROXY = "http://canary-proxy-user:canary-proxy-password@127.0.0.1:9"
ORCHESTRATOR_KEY = "canary-orchestrator-key-71d0c2"
PLATFORM = {
    "sessions": 2,
    "env": {
        "LOG_LEVEL": "debug",
        "EVENT_INBOUND_TEXT": "true",
        "WEBHOOK_ALLOW_PRIVATE": "true",
        "ORCHESTRATOR_API_KEY": ORCHESTRATOR_KEY,
        "PROXY_URL": PROXY,
        "HTTP_PROXY": PROXY,
        "HTTPS_PROXY": PROXY,
    },
}

HOOK_SECRET = "whsec_" + base64.b64encode(b"canary-customer-secret-of-32-byt").decode()
WRONG_KEY = "canary-wrong-key-0d9a"
URL_PASSWORD = "canary-url-password-5c"
TEXT, VAR, CAPTION = "canary-text-4f1e", "canary-variable-88a2", "canary-caption-31b0"
REPLY = "canary-reply-of-a-person-62c7"
NAME, METADATA, TAG = "canary-file-name-0b6d.png", "canary-metadata-9e27", "canary-tag-c1c1"
REASON, CLIENT_REF, QUERY = "canary-reason-d470", "canary-client-ref-fd00", "canary-query-text-1a1a"
PICTURE = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDRcanary-pixels-7a7a" + b"x" * 2_000

SECRETS = (API_KEY, WEBHOOK_SECRET, ORCHESTRATOR_KEY, WRONG_KEY, URL_PASSWORD, "canary-proxy-password")
"""Nowhere at all, but in the environment of those who need them."""
WORDS = (TEXT, VAR, CAPTION, REPLY, NAME, METADATA, TAG, REASON, CLIENT_REF, QUERY)
"""What people write: in Redis, which needs it to send; what went out also in the ledger, which stands for WhatsApp."""


class Day:
    """What was done, with every answer and every person in it."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.client = Client(platform)
        self.answers: list[httpx.Response] = []
        self.people: list[str] = []
        self.made_key = ""

    def person(self) -> str:
        [to] = people(1)
        self.people.append(to)
        return to

    def ask(self, method: str, url: str, *statuses: int, **more: Any) -> Any:
        answer = self.client.request(method, url, **more)
        assert answer.status_code in statuses, (url, answer.status_code, answer.text)
        self.answers.append(answer)
        return answer.json()


@pytest.fixture(scope="module")
def day(platform: Platform) -> Iterator[Day]:
    lived, receiver = Day(platform), Receiver()
    lived.client.wait_connected("sim-1", "sim-2")
    good_things(lived, receiver)
    bad_things(lived)
    yield lived
    lived.client.close()
    receiver.close()


def good_things(day: Day, receiver: Receiver) -> None:
    """Keys, files, a webhook; jobs that are sent, answered and refused."""
    client, absent = day.client, day.person()
    day.platform.simulate(
        {"read_ratio": 1.0, "read_delay_ms": [10, 50], "reply_ratio": 1.0, "reply_text": REPLY}
        | {"not_on_whatsapp": [absent]}
    )
    made = day.ask("POST", "/v1/keys", 201, json={"name": "crm", "scopes": ["send", "read"]})
    day.made_key = made["key"]
    hook = {"url": receiver.url, "events": ["*"], "secret": HOOK_SECRET}
    receiver.secret = day.ask("POST", "/v1/webhooks", 201, json=hook)["secret"]
    ref = day.ask("POST", "/v1/media", 201, files={"file": (NAME, PICTURE, "image/png")})["mediaRef"]
    contacts = [{"to": day.person(), "vars": {"name": VAR}, "clientRef": CLIENT_REF} for _ in range(3)]
    job = {"metadata": {"note": METADATA}, "tags": [], "contacts": contacts}
    text = day.ask("POST", "/v1/jobs", 202, json={**job, "text": f"{TEXT} {{{{name}}}}"})
    image = day.ask("POST", "/v1/jobs", 202, json={**job, "text": CAPTION, "mode": "image", "mediaRef": ref})
    headers = {"Content-Type": "text/csv", "X-API-KEY": day.made_key}
    query = day.ask("POST", f"/v1/jobs?text={QUERY}", 202, content=f"to\n{day.person()}\n", headers=headers)
    lost = day.ask("POST", "/v1/jobs", 202, json={"text": TEXT, "contacts": [absent]})
    for accepted in (text, image, query, lost):
        wait_for("the end", lambda url=accepted["statusUrl"]: client.ask("GET", url)["closedAt"])  # type: ignore[misc]
    wait_for("what people answered", lambda: REPLY in str(receiver.events))
    letters = day.ask("GET", "/v1/dead-letters", 200)["items"]
    assert {letter["to"] for letter in letters} == {absent}
    for url in (text["statusUrl"], f"{text['statusUrl']}/messages", "/v1/jobs", "/v1/keys", "/v1/webhooks"):
        day.ask("GET", url, 200)
    for url in (f"/api/v1/messages/{text['jobId']}:0/status", f"/v1/messages?to={contacts[0]['to']}"):
        day.ask("GET", url, 200)
    day.ask("GET", f"{day.platform.orchestrator}/api/sessions", 200)
    day.ask("POST", "/v1/suppressions", 200, json={"to": day.person(), "reason": REASON})


def bad_things(day: Day) -> None:
    """Everything refused, with something marked in it; and services that are killed in the middle."""
    to, json_type = day.person(), {"Content-Type": "application/json"}
    for headers in ({"X-API-KEY": WRONG_KEY}, {"X-API-KEY": "", "Authorization": f"Bearer {WRONG_KEY}"}):
        day.ask("POST", "/v1/jobs", 401, json={"text": TEXT, "contacts": [to]}, headers=headers)
    for body in (f'{{"text":"{TEXT}"', f'{{"text":"{TEXT}","text":"{TEXT}"}}', f'["{TEXT}"]', f'"{API_KEY}"'):
        day.ask("POST", "/v1/jobs", 400, content=body, headers=json_type)
    for url in (
        f"http://user:{URL_PASSWORD}@example.com/a.png",
        f"ftp://{URL_PASSWORD}/",
        f"http://127.0.0.1/{URL_PASSWORD}",
    ):
        job = {"text": CAPTION, "mode": "image", "mediaUrl": url, "contacts": [to]}
        day.ask("POST", "/v1/jobs", 400, json=job)
        day.ask("POST", "/v1/webhooks", 400, 201, json={"url": url.replace("127.0.0.1", "u:p@a"), "events": ["*"]})
    day.ask("POST", "/v1/media", 400, files={"file": (NAME, b"no picture", "image/png")})
    day.ask("POST", "/v1/suppressions", 400, content=f'to,reason\n{to},"{REASON}', headers={"Content-Type": "text/csv"})
    day.ask("POST", "/v1/jobs", 415, content=TEXT, headers={"Content-Type": "text/plain", "Content-Encoding": "gzip"})
    day.ask("GET", f"/v1/messages?to={to}&cursor={TEXT}", 400, 200)
    worker = f"{day.platform.orchestrator}/api/worker/sessions/sim-1/hello"
    day.ask("POST", worker, 401, json={"instanceId": TEXT}, headers={"X-Webhook-Secret": WRONG_KEY})
    for service in ("worker-sim-1", "orchestrator", "redis"):
        day.platform.kill(service)
    day.client.wait_connected("sim-1", "sim-2")


def found_in(place: str, content: bytes, marks: list[str]) -> list[str]:
    return [f"{mark[:24]}… in {place}" for mark in marks if mark.encode() in content]


def files(platform: Platform) -> dict[str, bytes]:
    roots = {platform.data, platform.folder}
    paths = {path for root in roots for path in root.rglob("*") if path.is_file()}
    return {str(path.relative_to(platform.folder)): path.read_bytes() for path in sorted(paths)}


def test_no_log_holds_a_secret_a_word_or_a_whole_number(platform: Platform, day: Day) -> None:
    """At debug level, of every process; the platform's own numbers neither."""
    own = [session["phone"] for session in day.ask("GET", f"{platform.orchestrator}/api/sessions", 200)["items"]]
    marks = [*SECRETS, *WORDS, HOOK_SECRET, day.made_key, *_derived_secrets(platform), *day.people, *own]
    logs = {name: content for name, content in files(platform).items() if "/log/" in name or name == "up.stderr"}
    assert len(logs) >= 7, "an empty look would prove nothing"
    assert any(b"debug" in content for content in logs.values())
    assert [what for name, content in logs.items() for what in found_in(name, content, marks)] == []


def test_no_file_holds_a_secret_and_words_lie_in_redis_and_in_what_went_out_alone(platform: Platform, day: Day) -> None:
    everywhere = [*SECRETS, day.made_key, *_derived_secrets(platform)]
    found: list[str] = []
    for name, content in files(platform).items():
        found += found_in(name, content, everywhere)
        allowed = name.startswith(("data/redis/", "data/ledger/", "data/simulated"))
        found += [] if allowed else found_in(name, content, [*WORDS, HOOK_SECRET])
        if "/redis/" not in name:
            found += found_in(name, content, [HOOK_SECRET])
        if "/media/" not in name:
            found += found_in(name, content, ["canary-pixels"])
    assert found == []
    # And the look sees: what must lie there does.
    redis = b"".join(content for name, content in files(platform).items() if "/redis/" in name)
    assert len(found_in("redis", redis, [TEXT, VAR, METADATA, REPLY, HOOK_SECRET])) == 5


def test_no_answer_holds_a_secret(platform: Platform, day: Day) -> None:
    """A new key and a webhook's secret are told once, to whoever asked for them."""
    told_once = {"/v1/keys": day.made_key, "/v1/webhooks": HOOK_SECRET}
    marks = [*SECRETS, day.made_key, HOOK_SECRET, *_derived_secrets(platform)]
    found = [
        f"{what} ({answer.request.method})"
        for answer in day.answers
        for what in found_in(answer.request.url.path, answer.content, marks)
        if answer.status_code != 201 or told_once.get(answer.request.url.path, "?")[:24] not in what
    ]
    assert found == []
    wrong = [answer for answer in day.answers if answer.status_code >= 400]
    assert len(wrong) > 10
    # A field that a caller misnamed is named back; what stands in it is not.
    assert [what for answer in wrong for what in found_in("an error", answer.content, [*WORDS])] == []


def test_no_command_line_holds_a_secret(platform: Platform, day: Day) -> None:
    """They come by the environment, which other users of the machine cannot read."""
    pids = platform.processes()
    assert len(pids) >= 7
    marks = [*SECRETS, *_derived_secrets(platform), day.made_key]
    lines = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids}
    assert [what for pid, line in lines.items() for what in found_in(f"process {pid}", line, marks)] == []
    assert (platform.data.stat().st_mode & 0o077) == 0


def test_a_worker_has_no_key_of_the_platform_in_its_environment(platform: Platform, day: Day) -> None:
    """Its own secret is all it needs; who takes a worker over takes one number over and no more."""
    for name, pid in platform.pids().items():
        if name.startswith("worker-"):
            environment = Path(f"/proc/{pid}/environ").read_bytes()
            assert found_in(name, environment, [API_KEY, WEBHOOK_SECRET, ORCHESTRATOR_KEY]) == []
            journal = platform.data / "sessions" / name.removeprefix("worker-") / "journal.jsonl"
            assert all(json.loads(line) for line in journal.read_text().splitlines())
