"""What the streams tell becomes rows: each fact once, whatever happens to the place, the file or a second writer."""

import sqlite3
import threading
import time
from pathlib import Path

from lua.stage import Stage
from paceline.domain.ids import whatsapp_id
from paceline.orchestrator.audit import BATCH, DAY_MS, RETRY_MS, AuditThread
from paceline.store import keys

from .trail import T0, Trail

RECIPIENT = "972541112233"


def pass_by(stage: Stage, place: str) -> None:
    """Waits until Redis' clock is past an entry: there are machines whose clock stands still for some milliseconds."""
    for _ in range(5_000):
        seconds, micros = stage.redis.time()
        if seconds * 1000 + micros // 1000 > int(place.split("-", maxsplit=1)[0]):
            return
        time.sleep(0.001)
    raise AssertionError("Redis' clock stands still")


def test_each_kind_of_fact_becomes_its_row(trail: Trail) -> None:
    trail.act(1, reason="OPERATOR", force=True)
    trail.act(2, kind="BINDING", proxy="10.0.0.1", profile="p1", status="BOUND", reason="PROXY_BAD", proxyId="7")
    task = trail.send(3)
    trail.follow()
    assert trail.rows(
        "SELECT bot_id, phone, proxy_ip, profile_id, status, action, reason, changed_by, details, changed_at,"
        " recorded_at FROM session_bindings"
    ) == [("s1", "972500000001", "10.0.0.1", "p1", "BOUND", "a2", "PROXY_BAD", "k1", '{"proxyId":"7"}', T0 + 2, T0)]
    assert trail.rows("SELECT action, session_id, done_by, reason, details, done_at FROM operator_actions") == [
        ("a1", "s1", "k1", "OPERATOR", '{"force":true}', T0 + 1)
    ]
    assert trail.rows("SELECT task_id, session_id, phone, whatsapp_id, sent_at FROM confirmed_sends") == [
        (task, "s1", "972500000001", whatsapp_id(task), T0 + 3)
    ]
    assert trail.waiting() == 0


def test_the_file_is_durable_and_knows_its_version(trail: Trail) -> None:
    trail.act(1)
    trail.follow()
    assert trail.rows("PRAGMA journal_mode") == [("wal",)]
    assert trail.rows("PRAGMA user_version") == [(1,)]
    assert trail.db._db is not None
    assert trail.db._db.execute("PRAGMA synchronous").fetchone() == (2,)
    assert trail.path.stat().st_mode & 0o077 == 0


def test_nobody_who_was_written_to_is_in_the_file(trail: Trail) -> None:
    """An erased person must not live on in a file that is kept for years."""
    trail.send(1)
    trail.follow()
    trail.db.close()
    assert RECIPIENT.encode() not in trail.path.read_bytes()


def test_a_message_that_is_gone_is_still_a_confirmed_send(trail: Trail) -> None:
    task = trail.send(1)
    trail.stage.redis.delete(keys.message(task))
    trail.follow()
    assert trail.rows("SELECT task_id, session_id, whatsapp_id FROM confirmed_sends") == [(task, "", whatsapp_id(task))]


def test_other_events_are_passed_over_and_not_looked_at_again(trail: Trail) -> None:
    trail.stage.redis.xadd(keys.events(), {"t": "message.read", "at": "1", "m": "x:0"})
    trail.follow()
    assert trail.sends() == []
    assert trail.rows("SELECT count(*) FROM cursors") == [(2,)]


def test_more_than_a_batch(trail: Trail) -> None:
    for number in range(BATCH * 2 + 3):
        trail.act(number)
        if number % 2:
            trail.send(number)
    trail.follow()
    assert trail.actions() == [f"a{number}" for number in range(BATCH * 2 + 3)]
    assert len(trail.sends()) == BATCH + 1
    seqs = [row[0] for row in trail.rows("SELECT seq FROM operator_actions UNION ALL SELECT seq FROM confirmed_sends")]
    assert len(set(seqs)) == len(seqs)


def test_a_lost_cursor_writes_nothing_twice(trail: Trail) -> None:
    """What is left in the streams is read again, and is known."""
    trail.send(1)
    trail.follow()
    with sqlite3.connect(trail.path) as db:
        db.execute("DELETE FROM cursors")
    trail.db.close()
    trail.send(2)
    again = Trail(trail.stage, trail.path)
    again.follow()
    assert len(again.sends()) == 2


def test_a_redis_that_was_restored_from_yesterday_writes_nothing_twice_and_goes_on(trail: Trail) -> None:
    trail.act(1)
    entry = trail.stage.redis.xrange(keys.audit())[0]
    trail.follow()
    trail.act(2)
    [(newest, _)] = trail.stage.redis.xrange(keys.audit())
    trail.follow()
    # Yesterday's copy: the first fact is there again, what came after it is not.
    trail.stage.redis.delete(keys.audit())
    trail.stage.redis.xadd(keys.audit(), entry[1], id=entry[0])
    trail.follow()
    assert trail.actions() == ["a1", "a2"]
    pass_by(trail.stage, newest)
    trail.act(3)
    trail.follow()
    assert trail.actions() == ["a1", "a2", "a3"]


def test_of_two_writers_one_waits_and_takes_over(trail: Trail) -> None:
    trail.act(1)
    trail.follow()
    second = Trail(trail.stage, trail.path)
    trail.act(2)
    assert second.step() == second.now + RETRY_MS
    assert trail.waiting() == 1
    trail.db.close()
    second.later()
    assert second.actions() == ["a1", "a2"]
    assert trail.incidents() == []


def test_strangers_in_the_stream_stop_nothing(trail: Trail) -> None:
    trail.stage.redis.xadd(keys.audit(), {"junk": "x"})
    trail.stage.redis.xadd(keys.audit(), {"k": "OPERATOR", "at": "1", "d": "[1]"})
    trail.act(1)
    trail.follow()
    assert (trail.actions(), trail.waiting()) == (["a1"], 0)


def test_a_kind_of_later_is_kept_as_an_action(trail: Trail) -> None:
    trail.act(1, kind="TOMORROW", colour="blue")
    trail.follow()
    assert trail.rows("SELECT action, details FROM operator_actions") == [("a1", '{"colour":"blue"}')]


def test_what_is_too_old_goes_once_a_day(trail: Trail) -> None:
    """Kept for 30 days from when it happened, to the millisecond the daily look finds."""
    trail.act(1)
    trail.send(1)
    trail.act(2)
    trail.follow()
    trail.later(30 * DAY_MS + 2)
    assert (trail.actions(), trail.sends()) == (["a2"], [])
    trail.later(DAY_MS - 1)
    assert trail.actions() == ["a2"]
    trail.later(1)
    assert trail.actions() == []


def test_events_that_were_dropped_before_they_were_copied_are_an_incident(stage: Stage, tmp_path: Path) -> None:
    trail = Trail(stage, tmp_path / "t.sqlite")
    trail.send(1)
    trail.follow()
    stage.store.events._kept = 3
    stage.redis.xtrim(keys.events(), maxlen=0)
    for number in range(2, 6):
        trail.send(number)
    trail.follow()
    trail.later()
    assert trail.incidents() == ["AUDIT_BEHIND"]
    assert len(trail.sends()) == 5


async def test_the_file_has_a_thread_of_its_own() -> None:
    """A disk that is slow must not hold up a claim; and calls of one file come one after the other."""
    in_thread = AuditThread()
    names = {await in_thread(lambda: threading.current_thread().name) for _ in range(3)}
    assert names == {"audit_0"}
