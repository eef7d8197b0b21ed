"""The worker's decisions as tables and properties, and the bounds on the orchestrator's clock."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.kits.rng import new_rng
from paceline.worker.book import Entry, Outcome, SendError
from paceline.worker.decisions import (
    SEND_BEFORE_MARGIN_MS,
    LookFirst,
    MaySend,
    NotSent,
    Sent,
    Verdict,
    answer_for_pending,
    backoff_ms,
    before_sending,
    lease_needs_extension,
    plan_sending,
    reconnects_after,
    window_open,
)
from paceline.worker.servertime import ServerTime

ERROR = SendError("RATE_LIMIT", "too many")


def entry(outcome: Outcome | None, *, reported: bool = False, in_doubt: bool = False) -> Entry:
    error = ERROR if outcome is Outcome.REFUSED else None
    return Entry("t", "id", "4477", 1, 0, in_doubt=in_doubt, outcome=outcome, error=error, reported=reported)


@pytest.mark.parametrize(
    ("known", "resend", "decision"),
    [
        (None, False, MaySend()),
        (None, True, MaySend()),
        (entry(Outcome.SENT), False, Sent()),
        (entry(Outcome.SENT), True, Sent()),
        (entry(Outcome.NOT_SENT), False, MaySend()),
        (entry(Outcome.REFUSED), False, MaySend()),
        (entry(None), False, LookFirst()),
        (entry(None), True, MaySend()),
        (entry(Outcome.UNKNOWN), False, LookFirst()),
        (entry(Outcome.UNKNOWN), True, MaySend()),
        (entry(Outcome.NOT_SENT, in_doubt=True), False, LookFirst()),
        (entry(Outcome.NOT_SENT, in_doubt=True), True, MaySend()),
    ],
)
def test_before_sending(known: Entry | None, resend: bool, decision: object) -> None:
    """Sent is never sent again; what may be out goes again only on the word `resend`."""
    assert before_sending(known, resend=resend) == decision


@pytest.mark.parametrize(
    ("known", "answer"),
    [
        (None, NotSent()),
        (entry(Outcome.SENT), Sent()),
        (entry(Outcome.SENT, reported=True), Sent()),
        (entry(Outcome.NOT_SENT), NotSent()),
        (entry(Outcome.REFUSED), NotSent(ERROR)),
        (entry(Outcome.REFUSED, reported=True), NotSent()),
        (entry(None), LookFirst()),
        (entry(Outcome.UNKNOWN), LookFirst()),
    ],
)
def test_the_answer_for_a_pending_task(known: Entry | None, answer: Verdict | LookFirst) -> None:
    """One row per state of the journal; a refusal is told once, for the attempt that it belongs to."""
    assert answer_for_pending(known) == answer


times = st.integers(0, 200_000)


@given(now=times, after=times, before=times, typing=st.integers(0, 5_000))
def test_a_plan_lies_in_the_window_and_types_first(now: int, after: int, before: int, typing: int) -> None:
    """Never early, never inside the margin before closing; typing is only cut short by the closing time."""
    plan = plan_sending(now, send_after_ms=after, send_before_ms=before, typing_ms=typing)
    last = before - SEND_BEFORE_MARGIN_MS - 1
    if plan is None:
        assert max(now, after) > last
        return
    assert max(now, after) <= plan.send_at_ms <= last
    assert now <= plan.type_at_ms <= plan.send_at_ms
    assert plan.send_at_ms - plan.type_at_ms == typing or plan.send_at_ms == last
    assert window_open(
        earliest_ms=plan.send_at_ms, latest_ms=plan.send_at_ms, send_after_ms=after, send_before_ms=before
    )


@pytest.mark.parametrize(
    ("earliest", "latest", "is_open"),
    [(999, 1_500, False), (1_000, 1_000, True), (1_000, 1_749, True), (1_000, 1_750, False), (2_000, 2_000, False)],
)
def test_the_window_is_open_only_if_it_surely_is(earliest: int, latest: int, is_open: bool) -> None:
    """Both bounds of the clock count, and the margin of 250 ms."""
    assert window_open(earliest_ms=earliest, latest_ms=latest, send_after_ms=1_000, send_before_ms=2_000) == is_open


@pytest.mark.parametrize(("left", "due"), [(120, False), (60, False), (59, True), (-5, True)])
def test_a_lease_is_extended_when_less_than_half_is_left(left: int, due: bool) -> None:
    """Half of the lease is the latest moment."""
    assert lease_needs_extension(latest_ms=1_000, lease_until_ms=1_000 + left, lease_ms=120) == due


@pytest.mark.parametrize(
    ("code", "again"),
    [(code, True) for code in (408, 428, 515)] + [(code, False) for code in (401, 402, 403, 406, 440)],
)
def test_which_ends_of_a_connection_are_final(code: int, again: bool) -> None:
    """Logged out, banned and replaced are not fought."""
    assert reconnects_after(code) == again


@given(failures=st.integers(0, 10_000), seed=st.integers())
def test_backoff_is_capped_and_never_zero(failures: int, seed: int) -> None:
    """Between 125 ms and 10 s, whatever happens."""
    assert 125 <= backoff_ms(failures, new_rng(seed)) <= 10_000


@given(
    offset=st.integers(-(10**9), 10**9),
    exchanges=st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 20_000), st.integers(0, 60_000)), min_size=1),
)
def test_the_bounds_hold_the_truth(offset: int, exchanges: list[tuple[int, int, int]]) -> None:
    """However slow requests and answers were, the server's time is never outside the two bounds."""
    server_time, now = ServerTime(), 0
    for request_ms, answer_ms, pause_ms in exchanges:
        server_time.observe(now + request_ms + offset, asked_ms=now, answered_ms=now + request_ms + answer_ms)
        now += request_ms + answer_ms + pause_ms
        assert server_time.earliest(now) <= now + offset <= server_time.latest(now)


def test_a_clock_that_was_set_is_believed_at_the_next_answer() -> None:
    """Bounds that contradict each other give way to the newest."""
    server_time = ServerTime()
    server_time.observe(1_000, asked_ms=1_000, answered_ms=1_010)
    server_time.observe(90_000, asked_ms=2_000, answered_ms=2_010)
    assert server_time.earliest(2_010) == 90_000
