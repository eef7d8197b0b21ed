"""Ids: sortable jobs, tasks that parse back to exactly themselves, one message id per task."""

import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.domain.ids import is_job_id, new_ulid, parse_task_id, task_id, whatsapp_id

JOB = "01JAR7Z3V5W8Q2M4N6P8R0T2V4"
times = st.integers(0, 2**48 - 1)


@given(times, st.integers(0, 2**32))
def test_a_ulid_is_a_job_id_and_tells_its_time(now_ms, seed):
    """Every ULID has the shape we accept, and its first ten characters are the time it was made at."""
    ulid = new_ulid(now_ms, Random(seed))
    alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    assert is_job_id(ulid)
    assert sum(alphabet.index(char) << 5 * place for place, char in enumerate(reversed(ulid[:10]))) == now_ms


@given(times, times, st.integers(0, 2**32))
def test_ulids_sort_by_time(first, second, seed):
    """A job accepted in a later millisecond has the greater id, whatever the dice say."""
    rng = Random(seed)
    earlier, later = sorted((first, second))
    if earlier != later:
        assert new_ulid(earlier, rng) < new_ulid(later, rng)


def test_ulids_of_one_millisecond_differ():
    """Ten thousand jobs of the same millisecond get ten thousand ids."""
    rng = Random(7)
    assert len({new_ulid(1_763_222_400_000, rng) for _ in range(10_000)}) == 10_000


@given(st.integers(0, 99_999))
def test_a_task_id_parses_back(index):
    """What `task_id` writes, `parse_task_id` reads."""
    assert parse_task_id(task_id(JOB, index)) == (JOB, index)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param(JOB, id="no index"),
        pytest.param(f"{JOB}:", id="empty index"),
        pytest.param(f"{JOB}:-1", id="negative"),
        pytest.param(f"{JOB}:+1", id="plus sign"),
        pytest.param(f"{JOB}: 1", id="blank"),
        pytest.param(f"{JOB}:1\n", id="newline"),
        pytest.param(f"{JOB}:1_0", id="underscore"),
        pytest.param(f"{JOB}:1:2", id="two indexes"),
        pytest.param(f"{JOB}:1234567", id="index out of any job"),
        pytest.param(f"{JOB}:٣", id="arabic digit"),
        pytest.param(f"{JOB}:²", id="superscript"),
        pytest.param(f"{JOB}:007", id="leading zeros"),
        pytest.param(f"{JOB}:00", id="zero twice"),
        pytest.param(f"{JOB.lower()}:1", id="lower case"),
        pytest.param(f"{JOB[:-1]}:1", id="short job"),
        pytest.param(f"{JOB}0:1", id="long job"),
        pytest.param(f"{JOB[:-1]}U:1", id="letter outside Crockford's alphabet"),
        pytest.param(f"{JOB[:-1]}*:1", id="glob"),
        pytest.param(f"message:{JOB}:1", id="prefix"),
    ],
)
def test_junk_is_no_task_id(text):
    """What is not exactly a task id is refused, so it can never become part of a Redis key."""
    assert parse_task_id(text) is None


@given(st.one_of(st.text(), st.from_regex(rf"{JOB}:[0-9]{{1,8}}", fullmatch=True)))
def test_a_task_id_has_one_spelling(text):
    """Whatever parses is written back as the very same text: two spellings would be two keys for one message."""
    parsed = parse_task_id(text)
    assert parsed is None or task_id(*parsed) == text


def test_the_message_id_is_pinned_by_a_known_value():
    """A release that derives another id would send every message in flight twice."""
    assert whatsapp_id(f"{JOB}:0") == "3EB094773A396AE4D7AB31"


@given(st.integers(0, 99_999), st.integers(0, 99_999))
def test_a_message_id_belongs_to_one_task(one, other):
    """The id has the shape of WhatsApp's web client, and two tasks have two."""
    first, second = whatsapp_id(task_id(JOB, one)), whatsapp_id(task_id(JOB, other))
    assert re.fullmatch(r"3EB0[0-9A-F]{18}", first)
    assert (first == second) == (one == other)
