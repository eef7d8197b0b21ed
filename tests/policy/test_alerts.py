"""Which incidents alert, what they say, and that a flood is a handful of alerts whose numbers add up."""

import re
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from paceline.policy.alert_delivery import TRIES_MAX, WAIT_MAX_MS, delivered, failed, next_for, text_for
from paceline.policy.alert_kinds import KINDS, Severity, host, shown
from paceline.policy.alerts import ALONE, NAMED_KEPT, TOLD_KEPT, WAITING_MAX, AlertRules, Memory, Seen, due_ms, step

T0 = 1_773_136_800_000
"""10:00 UTC."""
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
RULES = AlertRules()
PHONE = "972541234567"
CANARY = "canary-secret"


class Desk:
    """Virtual time: incidents go in, what a channel gets comes out."""

    def __init__(self, rules: AlertRules = RULES, channels: tuple[str, ...] = ("telegram",)) -> None:
        self.rules, self.channels = rules, channels
        self.memory, self.now = Memory(), T0
        self.got: list[str] = []
        self.at: list[int] = []

    def see(self, kind: str, **fields: Any) -> None:
        self.step(Seen(kind, self.now, fields))

    def step(self, *incidents: Seen) -> None:
        self.memory = step(self.memory, incidents, self.rules, self.channels, now_ms=self.now)
        # As it is kept: what does not survive JSON is forgotten.
        self.memory = msgspec.json.decode(msgspec.json.encode(self.memory), type=Memory)
        for channel in self.channels:
            while (alert := next_for(self.memory, channel, now_ms=self.now)) is not None:
                self.got.append(alert.text)
                self.at.append(self.now)
                self.memory = delivered(self.memory, alert, channel)

    def wait(self, ms: int, *, tick: int = SECOND) -> None:
        end = self.now + ms
        while self.now < end:
            self.now = min(end, self.now + tick)
            self.step()


SAYINGS = [
    pytest.param("SESSION_DOWN", {"sessionId": "s1", "phone": PHONE, "reason": "SILENT"},
                 "Session s1 (number …4567) is down: SILENT. It is restarted", id="session down"),
    pytest.param("SESSION_FAILED", {"sessionId": "S1", "phone": PHONE, "reason": "CRASH_LOOP"},
                 "Session S1 (number …4567) has failed and is not started again: CRASH_LOOP. Look", id="failed"),
    pytest.param("SESSION_WAITING", {"sessionId": "s1", "phone": PHONE, "reason": "NO_PROXY"},
                 "Session s1 (number …4567) cannot start yet: NO_PROXY. NO_PROXY: upload", id="waiting for a proxy"),
    pytest.param("PROXY_BAD", {"proxyId": "p1", "proxy": "10.0.0.1", "reason": "TIMEOUT"},
                 "Proxy 10.0.0.1 is bad: TIMEOUT. Its sessions move", id="proxy burned"),
    pytest.param("INVENTORY_LOW", {"what": "proxies", "available": 2},
                 "Few proxies are left: 2. Upload more.", id="few left"),
    pytest.param("INVENTORY_LOW", {"what": "profiles", "available": 0},
                 "No profiles are left: new sessions wait. Upload more.", id="none left"),
    pytest.param("MESSAGE_GIVEN_UP", {"taskId": "01JABCDEFGHJKMNPQRSTVWXYZ0:7", "phone": PHONE, "code": "NO_ACK"},
                 "A message of number …4567 was given up: NO_ACK (message 01JABCDEFGHJKMNPQRSTVWXYZ0:7). Look",
                 id="given up"),
    pytest.param("PHONE_COOLDOWN", {"phone": PHONE, "sessionId": "s1", "until": T0 + 30 * MINUTE, "code": "RATE_LIMIT"},
                 "Number …4567 is paused until 10 Mar 10:30 UTC, because it was sending too fast: RATE_LIMIT.",
                 id="cool-down"),
    pytest.param("PHONE_UNREADABLE", {"phone": PHONE, "error": "no JSON"},
                 "Number …4567 sends nothing: what is stored about it cannot be read: no JSON. Something else",
                 id="unreadable"),
    pytest.param("PHONE_RESTRICTED", {"phone": PHONE, "restriction": "TIME_LOCKED", "until": T0 + HOUR},
                 "WhatsApp restricted number …4567 until 10 Mar 11:00 UTC: TIME_LOCKED. It still", id="time lock"),
    pytest.param("SESSION_QUARANTINED", {"phone": PHONE, "sessionId": "s1", "reason": "BANNED"},
                 "Number …4567 is quarantined, because WhatsApp banned it or logged it out: BANNED.", id="ban"),
    pytest.param("FLEET_BREAKER", {"phones": [PHONE, "972541234568", "972541234569"]},
                 "All sending is paused: 3 numbers were restricted within an hour. Find out", id="breaker"),
    pytest.param("AUDIT_BROKEN", {"reason": "database or disk is full"},
                 "The audit trail takes nothing: database or disk is full. Facts wait in Redis.", id="audit"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "fields", "text"), SAYINGS)
def test_what_an_alert_says(kind: str, fields: dict[str, Any], text: str) -> None:
    """Plain words, and what to do."""
    desk = Desk()
    desk.see(kind, **fields)
    assert len(desk.got) == 1
    assert desk.got[0].startswith(f"10:00 UTC: {text}"), desk.got[0]


@pytest.mark.parametrize("kind", ["SEND_FAILED", "SMART_GUARD_RPM_CHANGE", "PACER_CHANGED", "FLEET_PAUSED", "TOMORROW"])
def test_what_is_for_looking_only_alerts_nobody(kind: str) -> None:
    desk = Desk()
    desk.see(kind, phone=PHONE)
    desk.wait(HOUR, tick=MINUTE)
    assert desk.got == []


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="nothing known"),
        pytest.param(
            dict.fromkeys(
                (
                    "sessionId",
                    "phone",
                    "reason",
                    "proxy",
                    "proxyId",
                    "what",
                    "code",
                    "restriction",
                    "webhookId",
                    "taskId",
                ),
                f"972541234567 http://user:{CANARY}@10.0.0.1:80/\nline",
            )
            | {"until": "soon", "phones": 5, "available": [1]},
            id="rubbish",
        ),
    ],
)
def test_no_alert_has_a_number_or_a_credential_in_it_and_none_fails(kind: str, fields: dict[str, Any]) -> None:
    desk = Desk()
    for trouble in KINDS[kind].ends:
        desk.see(trouble, **fields)
    for _ in range(3):
        desk.see(kind, **fields)
    desk.wait(20 * MINUTE, tick=MINUTE)
    assert len(desk.got) >= 2
    for text in desk.got:
        assert CANARY not in text
        assert PHONE not in text
        assert "\n" not in text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("+972541234567", "+…4567", id="a number"),
        pytest.param("code 463 after 3 tries", "code 463 after 3 tries", id="small numbers stay"),
        pytest.param(f"http://u:{CANARY}@h:1", "http://h:1", id="credentials"),
        pytest.param("a\r\nb", "a b", id="one line"),
        pytest.param("x" * 300, "x" * 200, id="no novel"),
    ],
)
def test_values_as_they_may_be_shown(value: str, expected: str) -> None:
    assert shown(value) == expected


def test_a_proxy_is_its_host() -> None:
    assert host(f"socks5h://u:{CANARY}@[2001:db8::1]:1080/x") == "[2001:db8::1]"


def test_the_same_trouble_is_counted_not_repeated() -> None:
    desk = Desk()
    for _ in range(20):
        desk.see("SESSION_DOWN", sessionId="s1", phone=PHONE)
        desk.wait(10 * SECOND)
    assert len(desk.got) == 1
    desk.wait(10 * MINUTE)
    assert desk.got[1].startswith(
        "19 more times a session went down in the last 10 minutes, on 1 session: s1 (19). It is"
    )
    desk.wait(HOUR, tick=MINUTE)
    assert len(desk.got) == 2
    assert due_ms(desk.memory) is None, "a window that stayed empty is over"


def test_a_trouble_that_goes_on_is_told_less_and_less_often() -> None:
    desk = Desk()
    for _ in range(24 * 60):
        desk.see("SESSION_DOWN", sessionId="s1")
        desk.wait(MINUTE, tick=MINUTE)
    assert len(desk.got) < 30
    counted = 1 + sum(int(found[1]) for text in desk.got if (found := re.match(r"(\d+) more", text)))
    desk.wait(2 * HOUR, tick=MINUTE)
    counted = 1 + sum(int(found[1]) for text in desk.got if (found := re.match(r"(\d+) more", text)))
    assert counted == 24 * 60


def test_after_a_quiet_window_it_is_news_again() -> None:
    desk = Desk()
    desk.see("PROXY_BAD", proxyId="p1")
    desk.wait(11 * MINUTE)
    desk.see("PROXY_BAD", proxyId="p1")
    assert len(desk.got) == 2


def test_few_and_none_are_two_troubles() -> None:
    """That nothing is left must not be counted as one more "few"."""
    desk = Desk()
    desk.see("INVENTORY_LOW", what="proxies", available=2)
    desk.see("INVENTORY_LOW", what="proxies", available=0)
    assert [text.split(": ")[1][:3] for text in desk.got] == ["Few", "No "]


def test_a_thousand_failures_in_a_minute_are_a_handful_of_alerts_that_add_up() -> None:
    desk = Desk()
    rng = Random(3)
    phones = [f"97254000{number:04d}" for number in range(5)]
    for number in range(1_000):
        desk.now = T0 + number * 60
        desk.see("SEND_FAILED", phone=rng.choice(phones))
        desk.see("MESSAGE_GIVEN_UP", phone=rng.choice(phones), code="NO_ACK", taskId=f"01J:{number}")
    desk.wait(2 * HOUR)
    assert len(desk.got) == 2
    assert "was given up" in desk.got[0]
    assert desk.got[1].startswith("999 more messages were given up in the last 10 minutes, on 5 numbers: …")
    assert sum(map(int, re.findall(r"\((\d+)\)", desk.got[1]))) == 999


def test_everything_at_once_stays_within_the_rate_and_nothing_is_forgotten() -> None:
    """Sessions, proxies and messages all fail in one minute: never more than the rate in any minute, all of it told."""
    desk = Desk(AlertRules(per_minute=6))
    for number in range(300):
        desk.now = T0 + number * 200
        desk.see("SESSION_DOWN", sessionId=f"s{number % 60}")
        desk.see("SESSION_FAILED", sessionId=f"s{number % 60}")
        desk.see("PROXY_BAD", proxyId=f"p{number % 30}", proxy=f"10.0.0.{number % 30}")
        desk.see("PHONE_COOLDOWN", phone=f"97254000{number % 40:04d}")
        desk.see("MESSAGE_GIVEN_UP", phone=f"97254000{number % 40:04d}")
    desk.wait(6 * HOUR, tick=5 * SECOND)
    for start in desk.at:
        assert sum(start <= at < start + MINUTE for at in desk.at) <= 6
    told = sum(int(found[1]) if (found := re.match(r"(\d+) more", text)) else 1 for text in desk.got)
    assert told == 5 * 300
    assert len(desk.got) < 60


def test_the_critical_comes_through_a_flood_of_warnings() -> None:
    desk = Desk()
    for number in range(40):
        desk.see("SESSION_DOWN", sessionId=f"s{number}")
        desk.see("PROXY_BAD", proxyId=f"p{number}")
    before = len(desk.got)
    desk.see("FLEET_BREAKER", phones=[PHONE])
    assert len(desk.got) == before + 1
    assert "All sending is paused" in desk.got[-1]


def test_many_subjects_are_told_one_by_one_up_to_a_limit() -> None:
    desk = Desk(AlertRules(per_minute=60))
    for number in range(20):
        desk.see("SESSION_FAILED", sessionId=f"s{number}")
    assert len(desk.got) == ALONE
    desk.wait(MINUTE)
    assert desk.got[-1].startswith("15 more sessions failed in the last minute, on 15 sessions: s10 (1)")
    assert ", …" in desk.got[-1]


@pytest.mark.parametrize(
    ("trouble", "end", "fields"),
    [
        pytest.param("SESSION_DOWN", "SESSION_UP", {"sessionId": "s1"}, id="session"),
        pytest.param("PROXY_BAD", "PROXY_OK", {"proxyId": "p1"}, id="proxy"),
        pytest.param("INVENTORY_LOW", "INVENTORY_OK", {"what": "proxies", "available": 0}, id="inventory"),
        pytest.param("FLEET_BREAKER", "FLEET_RESUMED", {}, id="breaker"),
        pytest.param("AUDIT_BROKEN", "AUDIT_RECOVERED", {}, id="audit"),
        pytest.param("SESSION_QUARANTINED", "QUEUE_REQUEUED", {"phone": PHONE}, id="quarantine"),
    ],
)
def test_that_it_is_well_again_is_told_to_whom_the_trouble_was(trouble: str, end: str, fields: dict[str, Any]) -> None:
    desk = Desk()
    desk.see(end, **fields)
    assert desk.got == []
    desk.see(trouble, **fields)
    desk.wait(3 * HOUR, tick=MINUTE)
    desk.see(end, **fields)
    desk.see(end, **fields)
    assert len(desk.got) == 2
    desk.see(trouble, **fields)
    assert len(desk.got) == 3, "and it may be told again"


@pytest.mark.parametrize(
    ("level", "kinds"),
    [
        (Severity.INFO, ["SESSION_PAUSED", "SESSION_DOWN", "SESSION_FAILED"]),
        (Severity.WARNING, ["SESSION_DOWN", "SESSION_FAILED"]),
        (Severity.CRITICAL, ["SESSION_FAILED"]),
    ],
)
def test_what_is_below_the_level_is_not_sent(level: Severity, kinds: list[str]) -> None:
    desk = Desk(AlertRules(level=level))
    for kind in ("SESSION_PAUSED", "SESSION_DOWN", "SESSION_FAILED"):
        desk.see(kind, sessionId=kind)
    assert len(desk.got) == len(kinds)


class TestDelivery:
    def waiting(self, count: int = 1, channels: tuple[str, ...] = ("a", "b")) -> Memory:
        seen = [Seen("SESSION_FAILED", T0, {"sessionId": f"s{number}"}) for number in range(count)]
        return step(Memory(), seen, AlertRules(per_minute=60), channels, now_ms=T0)

    def test_each_channel_has_its_own_line(self) -> None:
        memory = self.waiting(2)
        first = next_for(memory, "a", now_ms=T0)
        assert first is not None
        memory = failed(memory, first, "a", retry_after_ms=None, now_ms=T0)
        assert next_for(memory, "a", now_ms=T0) is None
        assert next_for(memory, "b", now_ms=T0) == first
        memory = delivered(memory, first, "b")
        second = next_for(memory, "b", now_ms=T0)
        assert second is not None
        assert second.id == first.id + 1
        again = next_for(memory, "a", now_ms=T0 + 5 * SECOND)
        assert again is not None
        assert again.id == first.id

    def test_waits_grow_to_a_cap_and_then_it_is_given_up_and_told(self) -> None:
        memory = self.waiting(2, ("a",))
        waits, now = [], T0
        for _ in range(TRIES_MAX):
            alert = next_for(memory, "a", now_ms=now)
            assert alert is not None
            assert alert.id == 1
            memory = failed(memory, alert, "a", retry_after_ms=None, now_ms=now)
            waits.append(memory.channels["a"].not_before_ms - now)
            now = memory.channels["a"].not_before_ms
        assert waits[:4] == [5_000, 10_000, 20_000, 40_000]
        assert max(waits) == WAIT_MAX_MS
        alert = next_for(memory, "a", now_ms=now)
        assert alert is not None
        assert alert.id == 2
        assert "1 earlier alerts did not reach you" in text_for(memory, alert, "a", RULES)
        assert delivered(memory, alert, "a").channels["a"].missed == 0

    @pytest.mark.parametrize(
        ("asked", "waits"),
        [(30_000, 30_000), (0, 1_000), (86_400_000, HOUR)],
        ids=["obeyed", "not at once", "an hour at most"],
    )
    def test_what_the_service_asks_for_comes_first(self, asked: int, waits: int) -> None:
        memory = self.waiting()
        alert = next_for(memory, "a", now_ms=T0)
        assert alert is not None
        memory = failed(memory, alert, "a", retry_after_ms=asked, now_ms=T0)
        assert memory.channels["a"].not_before_ms == T0 + waits

    def test_a_channel_that_never_answers_keeps_the_newest_and_counts_the_rest(self) -> None:
        memory = Memory()
        for number in range(WAITING_MAX + 20):
            seen = [Seen("SESSION_FAILED", T0, {"sessionId": f"s{number}"})]
            memory = step(memory, seen, RULES, ["a"], now_ms=T0 + number * HOUR)
        assert len(memory.outbox) == WAITING_MAX
        assert memory.channels["a"].missed == 20
        assert memory.outbox[-1].id == WAITING_MAX + 20

    def test_a_channel_that_was_removed_is_waited_for_no_longer(self) -> None:
        memory = step(self.waiting(), [], RULES, ["b"], now_ms=T0)
        assert [alert.left for alert in memory.outbox] == [["b"]]
        assert step(memory, [], RULES, [], now_ms=T0).outbox == []


def test_the_memory_is_bounded() -> None:
    """A year of trouble on ten thousand subjects is kept in some hundred kilobytes."""
    desk = Desk(AlertRules(per_minute=60))
    for burst in range(40):
        seen = [Seen("SESSION_DOWN", desk.now, {"sessionId": f"s{burst}-{number}"}) for number in range(250)]
        desk.step(*seen)
        desk.wait(2 * HOUR, tick=10 * MINUTE)
    assert len(desk.memory.told) <= TOLD_KEPT
    assert all(len(window.named) <= NAMED_KEPT for window in desk.memory.windows.values())
    assert len(msgspec.json.encode(desk.memory)) < 300_000
    assert any("on more than 200 sessions" in text for text in desk.got)


def test_a_step_changes_nothing_it_was_given() -> None:
    memory = Memory()
    before = msgspec.json.encode(memory)
    step(memory, [Seen("SESSION_FAILED", T0, {"sessionId": "s1"})], RULES, ["a"], now_ms=T0)
    assert msgspec.json.encode(memory) == before


def test_the_page_on_alerts_lists_every_kind_with_its_severity() -> None:
    page = (Path(__file__).parents[2] / "docs" / "alerts.md").read_text()
    for name, kind in KINDS.items():
        row = next(line for line in page.splitlines() if line.startswith("|") and f"`{name}`" in line)
        assert str(kind.severity) in row
