"""simulated.toml: overrides, live changes, and faults that are named and change nothing."""

import os
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from paceline.domain.errors import ConfigError
from paceline.worker.drivers.config import Behaviour, BehaviourFile, behaviour_for


def test_a_session_table_lies_over_the_common_one() -> None:
    """Common keys hold for all, a session's own come on top."""
    table = {"read_ratio": 0.1, "lost_ack": 0.2, "sessions": {"s1": {"lost_ack": 0.5, "ack_delay_ms": [1, 2]}}}
    assert behaviour_for("s1", table) == Behaviour(read_ratio=0.1, lost_ack=0.5, ack_delay_ms=(1, 2))
    assert behaviour_for("s2", table) == Behaviour(read_ratio=0.1, lost_ack=0.2)


def test_every_key_can_be_set() -> None:
    """`qr_ms` could not: its limits contradicted each other, and the worker that read the file died of it."""
    everything = msgspec.to_builtins(Behaviour())
    assert behaviour_for("s1", everything) == Behaviour()


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ({"read_ration": 0.5}, "read_ration: unknown key (did you mean read_ratio?)"),
        ({"lost_ack": 1.5}, "lost_ack"),
        ({"lost_ack": "often"}, "lost_ack"),
        ({"dedupe": 1}, "dedupe"),
        ({"ack_delay_ms": [1]}, "ack_delay_ms"),
        ({"ack_delay_ms": [200, 50]}, "ack_delay_ms: the first number"),
        ({"read_delay_ms": [-1, 5]}, "read_delay_ms"),
        ({"not_on_whatsapp": [4477]}, "not_on_whatsapp"),
        ({"lose_ack_every": -1}, "lose_ack_every"),
        ({"new_chats": 2.5}, "new_chats"),
        ({"time_lock_ms": -1}, "time_lock_ms"),
        ({"time_lock": 0.6, "ban": 0.6}, "together 1.2"),
        ({"sessions": {"other": {"bann": 1.0}}}, "sessions.other.bann: unknown key (did you mean ban?)"),
        ({"sessions": {"other": 5}}, "sessions.other: must be a table"),
        ({"sessions": 5}, "sessions: must be tables"),
        ({"lost_ack": 0.7, "rate_limit": 0.7}, "together 1.4"),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value.split(":")[0],
)
def test_a_bad_key_is_named(table: dict[str, object], named: str) -> None:
    """Every kind of fault says which key it is in, whichever session's table holds it."""
    with pytest.raises(ConfigError) as caught:
        behaviour_for("s1", table)
    assert named in str(caught.value)


def test_all_faults_are_told_at_once() -> None:
    """Three slips, three names."""
    with pytest.raises(ConfigError) as caught:
        behaviour_for("s1", {"a": 1, "ban": 2, "sessions": {"x": {"b": 1}}})
    assert len(caught.value.faults) == 3


def test_a_changed_file_counts_at_once_and_a_bad_one_changes_nothing(tmp_path: Path) -> None:
    """No file, a good one, a bad one (told once), a good one again, gone."""
    path = tmp_path / "simulated.toml"
    behaviour = BehaviourFile(path, "s1")
    assert behaviour.current() == Behaviour()
    path.write_text("offline = true\n")
    assert behaviour.current().offline
    for number, bad in enumerate(("offline = maybe\n", "ofline = true\n", "\x00")):
        path.write_text(bad)
        os.utime(path, ns=(number, number))
        with capture_logs() as logs:
            assert behaviour.current().offline
            assert behaviour.current().offline
        assert [entry["log_level"] for entry in logs] == ["error"]
    path.write_text("[sessions.s1]\noffline = false\nread_ratio = 0\n")
    assert behaviour.current() == Behaviour(read_ratio=0)
    path.unlink()
    assert behaviour.current() == Behaviour()
