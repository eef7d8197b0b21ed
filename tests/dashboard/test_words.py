"""What the fleet's pages say: every status and incident has its words, and numbers read as people do."""

import re
from pathlib import Path

import pytest

import paceline.store
from paceline.client.answers_fleet import Minute, Overview, RosterRow, Standing, Totals
from paceline.client.answers_fleet_sessions import AuditRow, SessionEvent
from paceline.client.answers_jobs import Backlog
from paceline.dashboard.pages.fleet_figures import said_pace, tiles_of
from paceline.dashboard.pages.fleet_table import row_of
from paceline.dashboard.pages.session_past import event_item, history_item
from paceline.dashboard.parts import incidents, words
from paceline.domain.sessions import Status

NOON = 1_773_136_800_000
LUA = Path(paceline.store.__file__).parent / "lua"
SOURCES = Path(paceline.store.__file__).parents[1]


def written_kinds() -> set[str]:
    """Every incident that any script or service writes."""
    lua = "".join(path.read_text() for path in LUA.rglob("*.lua"))
    python = "".join(path.read_text() for path in SOURCES.rglob("*.py"))
    noted = re.findall(r"\bnote\(\s*\"([A-Z_]+)\"", python)
    return set(re.findall(r"incident\('([A-Z_]+[A-Z])'", lua)) | set(noted) | {"PROXY_BAD", "PROXY_OK"}


def test_every_status_has_its_words() -> None:
    assert words.STATUSES.keys() == set(Status)


def test_every_incident_that_is_written_has_its_sentence() -> None:
    assert len(written_kinds()) > 20
    assert written_kinds() - incidents._KINDS.keys() == set()


@pytest.mark.parametrize("kind", sorted(incidents._KINDS))
def test_an_incident_with_nothing_but_its_kind_is_still_said(kind: str) -> None:
    item = incidents.incident({"kind": kind, "at": NOON})
    assert item["text"]
    assert item["tone"] in ("good", "busy", "warn", "bad", "plain")


def test_an_incident_of_a_newer_platform_is_spelled_out() -> None:
    item = incidents.incident({"kind": "MOON_FULL", "at": NOON, "reason": "it is that time", "sessionId": "a/b"})
    assert item["text"] == "Moon full: it is that time"
    assert item["href"] == "/sessions/a%2Fb"


def test_an_incident_leads_to_its_job() -> None:
    item = incidents.incident(
        {"kind": "SEND_FAILED", "at": NOON, "taskId": "01K:7", "phone": "447700900001", "code": "X"}
    )
    assert (item["text"], item["href"]) == ("A message of +44 7700 900001 failed: X", "/jobs/01K")


@pytest.mark.parametrize(
    ("statuses", "said"),
    [
        ({"WORKING": 5}, ""),
        ({"SCAN_QR": 1}, "1 number needs a scan"),
        ({"SCAN_QR": 3, "FAILED": 1}, "3 numbers need a scan, 1 number has failed"),
    ],
)
def test_what_waits_for_a_person_is_said_in_one_line(statuses: dict[str, int], said: str) -> None:
    assert words.needs(statuses) == said


@pytest.mark.parametrize(
    ("digits", "said"), [("447700900001", "+44 7700 900001"), ("972541234567", "+972 54-123-4567"), ("1", "+1")]
)
def test_a_number_is_written_as_people_write_it(digits: str, said: str) -> None:
    assert words.phone(digits) == said


@pytest.mark.parametrize(("ms", "said"), [(80, "0.1 s"), (1_500, "1.5 s"), (4_000, "4 s"), (150_000, "2.5 min")])
def test_a_span_is_said_shortly(ms: int, said: str) -> None:
    assert words.span(ms) == said


def overview(**changed: object) -> Overview:
    known = {
        "sessions": 3, "connected": 2, "sending": 1, "statuses": {"WORKING": 2, "SCAN_QR": 1}, "since": NOON,
        "totals": Totals(sent=200, delivered=150, read=50, failed=0), "minutes": [],
    }  # fmt: skip
    return Overview(**{**known, **changed})  # type: ignore[arg-type]


def backlog(**changed: object) -> Backlog:
    known = {"waiting": 0, "sending": 0, "scheduled_until": None, "estimated_completion": None}
    return Backlog(**{**known, **changed})  # type: ignore[arg-type]


def tile(label: str, seen: Overview, waits: Backlog | None, unknown: str = "") -> dict[str, object]:
    return dict(next(one for one in tiles_of(seen, waits, unknown=unknown) if one["label"] == label))


def test_figures_say_what_needs_a_person_and_lead_there() -> None:
    found = tile("Connected", overview(), backlog())
    assert (found["value"], found["of"], found["note"]) == (2, 3, "1 number needs a scan")
    assert found["href"] == "/?status=SCAN_QR"


@pytest.mark.parametrize(
    ("waits", "expected"),
    [
        pytest.param(backlog(), {"value": "–", "note": "nothing waits"}, id="nothing"),
        pytest.param(backlog(waiting=5), {"value": "–", "note": "no number can send now"}, id="nobody can"),
        pytest.param(backlog(waiting=5, estimated_completion=NOON), {"at": NOON}, id="a time"),
        pytest.param(None, {"value": "–", "note": "the gateway is away"}, id="unknown"),
    ],
)
def test_when_all_is_sent(waits: Backlog | None, expected: dict[str, object]) -> None:
    found = tile("All sent by", overview(), waits, "the gateway is away")
    assert expected.items() <= found.items()


def test_shares_of_nothing_are_not_said() -> None:
    nothing = overview(totals=Totals(sent=0, delivered=0, read=0, failed=0))
    assert tile("Delivered", nothing, backlog())["note"] == ""
    assert tile("Delivered", overview(), backlog())["note"] == "75 %"


def test_the_pace_is_that_of_the_last_minute_that_is_over() -> None:
    minutes = [Minute(at=NOON, sent=7, failed=0), Minute(at=NOON + 60_000, sent=1, failed=0)]
    assert said_pace(minutes) == "7 in the last full minute"
    assert said_pace([]) == ""


def number(**changed: object) -> RosterRow:
    known: dict[str, object] = {
        "session_id": "s 1", "phone": "447700900001", "display_name": "Support", "driver": "simulated",
        "status": "WORKING", "connection": "CONNECTED", "tags": ["crm"], "proxy": None, "direct": True,
        "restriction": Standing(kind="NONE", until=None), "trust_level": "hot", "rpm": 20, "rpm_default": 20,
        "rpm_override": None, "rpm_source": None, "effective_rpm": 6.82, "next_slot_at": NOON, "queue_len": 0,
        "parked": 0, "sent_today": 450, "daily_cap": 500, "sent_last60s": 0, "failed_last60s": 0, "unsettled": None,
        "waiting": None,
    }  # fmt: skip
    return RosterRow(**{**known, **changed})  # type: ignore[arg-type]


def test_a_row_names_the_number_and_leads_to_it() -> None:
    row = row_of(number())
    assert row["session"] == {
        "text": "+44 7700 900001", "href": "/sessions/s%201", "note": "Support · s 1 · crm",
    }  # fmt: skip
    assert row["proxy"] == "direct"


@pytest.mark.parametrize(
    ("changed", "text", "tone"),
    [
        pytest.param({}, "Connected", "good", id="at rest"),
        pytest.param({"sent_last60s": 3}, "Sending", "busy", id="sending"),
        pytest.param({"unsettled": "01K:0"}, "Sending", "busy", id="busy"),
        pytest.param({"status": "PAUSED", "sent_last60s": 3}, "Paused", "plain", id="paused meanwhile"),
        pytest.param(
            {"status": "RESTRICTED", "restriction": Standing(kind="TIME_LOCKED", until=NOON)}, "Time-locked", "warn",
            id="restricted",
        ),
        pytest.param({"status": "DANCING"}, "Dancing", "plain", id="newer than this page"),
    ],
)  # fmt: skip
def test_a_rows_status(changed: dict[str, object], text: str, tone: str) -> None:
    found = row_of(number(**changed))["status"]
    assert (found["text"], found["tone"]) == (text, tone)


@pytest.mark.parametrize(
    ("sent", "cap", "tone"), [(10, 500, "plain"), (450, 500, "warn"), (500, 500, "bad"), (10, None, None)]
)
def test_a_rows_budget(sent: int, cap: int | None, tone: str | None) -> None:
    assert row_of(number(sent_today=sent, daily_cap=cap))["budget"].get("tone") == tone


def test_a_slot_is_shown_only_where_something_waits_for_it() -> None:
    assert row_of(number())["nextSlot"] is None
    assert row_of(number(queue_len=1))["nextSlot"] == NOON


def test_an_override_says_whose_it_is() -> None:
    assert row_of(number(rpm=5, rpm_override=5, rpm_source="smartguard"))["rpm"]["note"] == "SmartGuard"
    assert row_of(number(rpm=5, rpm_override=5, rpm_source="manual"))["rpm"]["note"] == "override"


def test_events_and_history_read_as_sentences() -> None:
    sent = SessionEvent(event="MESSAGE_SENT", at=NOON, received_at=NOON, event_id="e", data={"to": "447700900002"})
    assert event_item(sent)["text"] == "Sent · +44 7700 900002"
    failed = SessionEvent(
        event="MESSAGE_FAILED", at=NOON, received_at=NOON, event_id="f", data={"error": {"code": "X", "message": "no"}}
    )
    assert (event_item(failed)["note"], event_item(failed)["tone"]) == ("no", "bad")
    paused = AuditRow(id=1, kind="OPERATOR", at=NOON, action="PAUSE", by="k1", reason="lunch")
    assert (history_item(paused)["text"], history_item(paused)["note"]) == ("Pause", "by key k1 · lunch")
    bound = AuditRow(id=2, kind="BINDING", at=NOON, status="BOUND", proxy_ip="10.0.0.1")
    assert history_item(bound)["text"] == "Bound: proxy 10.0.0.1"
    out = AuditRow(id=3, kind="SENT", at=NOON, message_id="01K:0")
    assert history_item(out)["text"] == "Sent 01K:0"
