"""Jobs and contacts: what is written is what is read, and when each task of a job is due."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.domain.jobs import Contact, Job, decode_contact, decode_job, encode_contact, encode_job

JOB_ID = "01JAR7Z3V5W8Q2M4N6P8R0T2V4"
NOW = 1_763_222_400_000

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
digits = st.text("0123456789", min_size=7, max_size=15)
contacts = st.builds(
    Contact,
    to=digits,
    vars=st.dictionaries(words, words, max_size=3),
    client_ref=st.none() | words,
    timezone=st.none() | st.sampled_from(["Europe/London", "Asia/Kolkata"]),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
jobs = st.builds(
    Job,
    job_id=st.just(JOB_ID),
    total=st.integers(1, 100_000),
    text=words,
    accepted_at=st.integers(0, 2**48),
    accepted_by=words,
    priority=st.integers(1, 3),
    phone=st.none() | digits,
    session_id=st.none() | words,
    send_at=st.none() | st.integers(1, 2**48),
    spread_minutes=st.integers(0, 10_000),
    validity_seconds=st.integers(1, 10**8),
    on_unknown=st.sampled_from(["resend", "hold"]),
    single=st.booleans(),
    tags=st.lists(words, max_size=3),
    metadata=st.dictionaries(words, json_values, max_size=3),
)


def job(**changes) -> Job:
    base = {"job_id": JOB_ID, "total": 4, "text": "hi", "accepted_at": NOW, "accepted_by": "k", "validity_seconds": 60}
    return Job(**{**base, **changes})


@given(jobs)
def test_a_job_comes_back(job):
    """Encoding and decoding a job loses nothing, and its names on the wire are camelCase."""
    raw = encode_job(job)
    assert decode_job(raw) == decode_job(raw.encode()) == job
    assert not [name for name in json.loads(raw) if "_" in name]


@given(contacts)
def test_a_contact_comes_back(contact):
    """Encoding and decoding a contact loses nothing."""
    assert decode_contact(encode_contact(contact)) == contact


def test_a_plain_contact_costs_its_digits():
    """Nearly all contacts are a number and nothing else; they take no JSON around it."""
    assert encode_contact(Contact("972541234567")) == "972541234567"


@pytest.mark.parametrize(
    ("changes", "index", "scheduled"),
    [
        pytest.param({}, 3, NOW, id="at once"),
        pytest.param({"send_at": NOW + 5}, 3, NOW + 5, id="at its time"),
        pytest.param({"spread_minutes": 4}, 0, NOW, id="spread: the first at once"),
        pytest.param({"spread_minutes": 4}, 3, NOW + 180_000, id="spread: the i-th after i x spread / n"),
        pytest.param({"spread_minutes": 4, "send_at": NOW + 5}, 1, NOW + 60_005, id="spread from its time"),
        pytest.param({"spread_minutes": 1, "total": 7}, 1, NOW + 8_571, id="whole milliseconds"),
    ],
)
def test_when_a_task_is_due(changes, index, scheduled):
    """A task is due at the job's time plus its share of the spread, and valid from there on."""
    assert job(**changes).scheduled_at(index) == scheduled
    assert job(**changes).expires_at(index) == scheduled + 60_000


@given(jobs, st.data())
def test_the_spread_is_even_and_within_bounds(job, data):
    """Due times rise with the index and stay below the spread's end."""
    index = data.draw(st.integers(0, job.total - 1))
    start = job.scheduled_at(0)
    assert start <= job.scheduled_at(index) <= job.scheduled_at(min(index + 1, job.total - 1))
    assert job.scheduled_at(index) - start <= job.spread_minutes * 60_000
