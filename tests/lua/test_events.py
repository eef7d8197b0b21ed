"""What customers are told is written with what it tells of: each event exactly once, in its order, also by the hundred
thousand, also when Redis is full."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from paceline.domain.events import BYTE_EVENT, EVENT_TYPES, Entry, Event
from paceline.domain.reasons import Reason
from paceline.policy.dispatch import Step, Wait
from paceline.store import keys
from paceline.store.caller import Caller
from paceline.store.scripts import ScriptConfig, load

from .servers import LiveServer
from .stage import HOUR, PHONE, SESSION, T0, DirectLink, Stage, recipient, value_of


def entries(stage: Stage) -> list[Entry]:
    return [Entry(id_, fields) for id_, fields in stage.redis.xrange(keys.events())]  # type: ignore[union-attr]


def told(stage: Stage, of: str = "") -> list[tuple[str, str | None]]:
    """Every event there is: its type and its message (or job)."""
    events = [event for entry in entries(stage) for event in entry.events()]
    return [(event.type, event.message_id or event.job_id) for event in events if event.type.startswith(of)]


def messages(stage: Stage) -> list[str]:
    return [kind for kind, _ in told(stage, "message")]


@pytest.fixture(autouse=True)
def _room_again(server: LiveServer) -> Iterator[None]:
    yield
    server.client.config_set("maxmemory", 0)


def test_a_life_from_claim_to_read(stage: Stage) -> None:
    """Each step once and in order, however often its proof comes; the job's end after its last message's."""
    job, task, _ = stage.claimed()
    for proof in ("sent", "sent", "delivered", "sent", "delivered", "read", "read"):
        stage.sent(task, proof)
    assert told(stage)[1:] == [
        ("message.sent", task),
        ("job.done", job.job_id),
        ("message.delivered", task),
        ("message.read", task),
    ]
    done = next(entry for entry in entries(stage) if entry.type == "job.done")
    counts = {"total": "1", "sent": "1", "failed": "0", "expired": "0", "canceled": "0", "suppressed": "0"}
    assert done.fields == {"t": "job.done", "at": str(T0), "job": job.job_id, "state": "DONE", **counts}


@pytest.mark.parametrize(
    ("proofs", "expected"),
    [
        pytest.param(["read"], ["sent", "delivered", "read"], id="read first"),
        pytest.param(["delivered", "sent"], ["sent", "delivered"], id="delivered first"),
        pytest.param(["sent", "read", "delivered"], ["sent", "delivered", "read"], id="delivered is skipped"),
    ],
)
def test_a_proof_that_skips_a_step_tells_of_it_too(stage: Stage, proofs: list[str], expected: list[str]) -> None:
    _, task, _ = stage.claimed()
    for proof in proofs:
        stage.sent(task, proof)
    assert messages(stage) == [f"message.{step}" for step in expected]


def test_a_failure_that_turns_out_sent_is_corrected_once(stage: Stage) -> None:
    job, task, _ = stage.claimed()
    stage.fail(task)
    stage.fail(task)
    stage.sent(task)
    stage.sent(task)
    assert told(stage)[1:] == [
        ("message.failed", task),
        ("job.done", job.job_id),
        ("message.sent", task),
        ("job.corrected", task),
    ]


@pytest.mark.parametrize("outcome", ["returned", "retry", "unknown", "parked"])
def test_what_is_no_end_is_not_told(stage: Stage, outcome: str) -> None:
    _, task, _ = stage.claimed()
    stage.settle(task, outcome, from_="c", at=T0, code="c", message="m", reason="r", untilMs=T0 + 1, onWire=True)
    assert told(stage, "message") == told(stage, "job") == []


def test_expired_suppressed_and_failed_at_the_head_of_the_queue(stage: Stage) -> None:
    stage.connect()
    job = stage.routed(3)
    (facts,) = stage.look()
    steps = [
        Step(kind, head.entry, head.task, reason)
        for kind, head, reason in zip(
            ("expire", "suppress", "fail"),
            facts.heads,
            (Reason.EXPIRED, Reason.SUPPRESSED, Reason.NO_COMMON_HOURS),
            strict=True,
        )
    ]
    stage.apply(facts, Wait(stage.now + 1, Reason.IN_TURN), *steps)
    assert messages(stage) == ["message.expired", "message.suppressed", "message.failed"]
    assert told(stage, "job") == [("job.done", job.job_id)]


def test_a_canceled_job_is_one_entry_that_stands_for_all_its_messages(stage: Stage) -> None:
    """A hundred thousand entries in one script would hold up everybody; which tasks it is about is told exactly."""
    stage.connect()
    stage.hello()
    job = stage.routed(6)
    sent = stage.hand_off()
    stage.claim(sent)
    stage.sent(sent)
    stage.cancel(job)
    stage.cancel(job)
    bulk = [entry for entry in entries(stage) if entry.type == "message.canceled"]
    assert [entry.fields["ix"] for entry in bulk] == ["1-5"]
    assert told(stage, "message.canceled") == [("message.canceled", job.task_id(i)) for i in range(1, 6)]
    assert [event.id for event in bulk[0].events(after_index=3)] == [f"{bulk[0].id}_4", f"{bulk[0].id}_5"]


def test_a_hundred_thousand_at_once(stage: Stage) -> None:
    """With every other one sent already, the worst case for spans: few entries, none of them large."""
    job = stage.accept(100_000)
    stage.redis.set(keys.job_states(job.job_id), "qS" * 50_000)
    stage.redis.set(keys.job_open(job.job_id), 50_000)
    assert stage.cancel(job).canceled == 50_000
    bulk = [entry for entry in entries(stage) if entry.type == "message.canceled"]
    assert len(bulk) == 50
    assert max(len(entry.fields["ix"]) for entry in bulk) < 6_000
    assert told(stage, "message.canceled") == [("message.canceled", job.task_id(i)) for i in range(0, 100_000, 2)]
    assert told(stage)[-1] == ("job.done", job.job_id)


def test_a_job_that_cannot_be_read_tells_of_all_its_messages(stage: Stage) -> None:
    job = stage.accept(3)
    value_of(stage.store.jobs.fail(job.job_id, "MALFORMED", now_ms=T0))
    assert told(stage) == [*[("message.failed", job.task_id(i)) for i in range(3)], ("job.done", job.job_id)]


def test_a_pause_is_told_once(stage: Stage) -> None:
    job = stage.accept(3)
    for _ in range(2):
        stage.call("pause_job", job=job.job_id, now=T0)
    assert told(stage) == [("job.paused", job.job_id)]


def test_a_session_s_status_is_told_when_it_changes(stage: Stage) -> None:
    stage.register()
    for connection in ("SCAN_QR", "SCAN_QR", "CONNECTED", "CONNECTED", "RECONNECTING"):
        stage.now += 1
        stage.event(connection=connection)
    stage.event(connection="CONNECTED", at=T0)
    found = [entry.fields for entry in entries(stage)]
    assert [fields["connection"] for fields in found] == ["SCAN_QR", "CONNECTED", "RECONNECTING"]
    assert {(fields["t"], fields["s"], fields["phone"]) for fields in found} == {("session.status", SESSION, PHONE)}


def restrict(stage: Stage, kind: str, until: int | None = None) -> None:
    stage.now += 1
    value_of(stage.store.sessions.restriction(SESSION, kind, until, epoch=None, at_ms=stage.now, now_ms=stage.now))


def restrictions(stage: Stage) -> list[tuple[str, str | None]]:
    found = [entry.fields for entry in entries(stage) if entry.type == "session.restriction"]
    return [(fields["kind"], fields.get("until")) for fields in found]


def test_restrictions_are_told_when_they_change(stage: Stage) -> None:
    stage.connect()
    restrict(stage, "NONE")
    for until in (T0 + HOUR, T0 + HOUR, T0 + 2 * HOUR, T0 + HOUR):
        restrict(stage, "TIME_LOCKED", until)
    restrict(stage, "NONE")
    for _ in range(2):
        stage.event(connection="FAILED", quarantine="BANNED_403", at=stage.now)
    assert restrictions(stage) == [
        ("TIME_LOCKED", str(T0 + HOUR)),
        ("TIME_LOCKED", str(T0 + 2 * HOUR)),
        ("TIME_LOCKED", str(T0 + HOUR)),
        ("NONE", None),
        ("QUARANTINED", None),
    ]


def test_a_cool_down_and_its_early_end_are_told(stage: Stage) -> None:
    _, task, _ = stage.claimed()
    stage.retry(task, code="RATE_LIMIT", cooldownUntil=T0 + HOUR)
    stage.call("clear_cooldown", session=SESSION, by="k", now=T0)
    assert restrictions(stage) == [("COOLDOWN", str(T0 + HOUR)), ("NONE", None)]


def receive(stage: Stage, id_: str | None, text: str | None = None) -> Any:
    return value_of(
        stage.store.sessions.received(SESSION, recipient(1), at_ms=T0 - 5, now_ms=T0, whatsapp_id=id_, text=text)
    )


def test_a_received_message_is_told_once_and_without_its_text(stage: Stage) -> None:
    stage.register()
    for id_ in ("A", "A", "B", None):
        assert receive(stage, id_).code == "OK"
    assert [entry.fields["wa"] for entry in entries(stage)] == ["A", "B"]
    (first, _) = entries(stage)
    about = {"s": SESSION, "phone": PHONE, "from": recipient(1), "wa": "A", "sentAt": str(T0 - 5)}
    assert first.fields == {"t": "message.received", "at": str(T0), **about}
    assert stage.redis.ttl(keys.inbound(PHONE)) > 0
    receive(stage, "C", "hello")
    assert entries(stage)[-1].fields["text"] == "hello"


def test_the_stream_is_bounded(server: LiveServer) -> None:
    stage = Stage(server.client)
    stage.caller = Caller(DirectLink(server.client), ScriptConfig(events_kept=1_000))
    stage.register()
    for number in range(1_300):
        stage.call("chat_received", session=SESSION, **{"from": recipient(1)}, at=T0, now=T0, id=str(number))
    assert 1_000 <= stage.redis.xlen(keys.events()) <= 1_100
    assert stage.redis.zcard(keys.inbound(PHONE)) == 1_000


def fill(stage: Stage) -> None:
    stage.redis.config_set("maxmemory-policy", "noeviction")
    stage.redis.config_set("maxmemory", int(stage.redis.info("memory")["used_memory"]) - 1)


def test_on_a_full_redis_settling_works_and_is_told(stage: Stage) -> None:
    """The event is never a script's first write, so Redis takes it too."""
    job, task, _ = stage.claimed()
    fill(stage)
    assert stage.sent(task).code == "OK"
    assert told(stage)[1:] == [("message.sent", task), ("job.done", job.job_id)]


def test_an_event_that_cannot_be_written_holds_up_nothing(stage: Stage) -> None:
    job, task, _ = stage.claimed()
    stage.redis.delete(keys.events())
    stage.redis.set(keys.events(), "not a stream")
    assert stage.sent(task).code == "OK"
    stage.adds_up(job)


def test_every_type_of_event_is_one_that_scripts_write() -> None:
    """The list is closed from both sides."""
    sources = "\n".join(script.source for script in load(ScriptConfig()).values())
    written = set(re.findall(r"tell\('([a-z.]+)'", sources)) | set(BYTE_EVENT.values())
    assert written == set(EVENT_TYPES)


def everything(stage: Stage, limit: int) -> list[Event]:
    place, found = "0-0", []
    while True:
        part = value_of(stage.store.events.after(place, limit=limit, wants=lambda kind: kind != "job.done"))
        found += part.events
        place = part.place
        if not part.more:
            return found


@pytest.mark.parametrize("limit", [1, 3, 7, 100])
def test_readers_see_every_event_once_whatever_they_take_at_a_time(stage: Stage, limit: int) -> None:
    """Also where an entry that stands for many ends in the middle of a stretch."""
    jobs = [stage.accept(5), stage.accept(1), stage.accept(8)]
    for job in jobs:
        stage.cancel(job)
    expected = [job.task_id(i) for job in jobs for i in range(job.total)]
    found = everything(stage, limit)
    assert [event.message_id for event in found] == expected
    assert len({event.id for event in found}) == len(expected)
    middle = found[6]
    rest = value_of(stage.store.events.after(middle.id, limit=100, wants=lambda kind: kind != "job.done"))
    assert [event.message_id for event in rest.events] == expected[7:]
    assert rest.place == value_of(stage.store.events.newest())


def proven(stage: Stage, *words: tuple[str, str, int]) -> list[str]:
    """Proofs in one call: task, outcome, and how many milliseconds from now."""
    orders = [
        {"task": task, "outcome": outcome, "whatsappId": "x", "statsDay": "d", "now": stage.now + later}
        for task, outcome, later in words
    ]
    return value_of(stage.caller.rows("prove_sent", orders=orders))


def test_what_is_proven_together_is_told_in_one_entry(stage: Stage) -> None:
    """In the order of their indexes, whatever order they came in: a reader that stopped inside goes on behind it."""
    job = stage.accept(5)
    proven(stage, *[(job.task_id(index), "sent", 0) for index in (3, 0, 4)], (job.task_id(1), "sent", 1))
    first, second = [entry for entry in entries(stage) if entry.type == "message.sent"]
    assert (first.fields["ix"], second.fields["m"]) == ("0,3,4", job.task_id(1))
    assert [event.at for entry in (first, second) for event in entry.events()] == [T0, T0, T0, T0 + 1]
    assert told(stage, "message.sent") == [("message.sent", job.task_id(index)) for index in (0, 3, 4, 1)]


def test_each_step_is_told_before_the_next_one_and_the_end_of_the_job_last(stage: Stage) -> None:
    job = stage.accept(2)
    one, other = job.task_id(0), job.task_id(1)
    proven(stage, (one, "sent", 0))
    proven(stage, (one, "delivered", 1), (other, "sent", 1), (other, "read", 2))
    assert told(stage) == [
        ("message.sent", one), ("message.sent", other), ("message.delivered", one), ("message.delivered", other),
        ("message.read", other), ("job.done", job.job_id),
    ]  # fmt: skip


def test_a_correction_among_others_is_told_in_its_place(stage: Stage) -> None:
    """That it went out comes before that its job was corrected."""
    _, task, _ = stage.claimed()
    stage.fail(task)
    more = stage.accept(2, first=50)
    proven(stage, (more.task_id(0), "sent", 0), (task, "sent", 0), (more.task_id(1), "sent", 0))
    seen = told(stage)
    assert seen.index(("message.sent", task)) < seen.index(("job.corrected", task))
    assert ("message.sent", more.task_id(1)) in seen
