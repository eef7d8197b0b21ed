"""When a proxy is burned, when it comes back, and when nothing follows."""

from typing import Any

import pytest

from paceline.policy.proxy_health import CHECKER, Checked, Mark, ProxyRules, judge

RULES = ProxyRules(failures=3, successes=2, doubtful_share=0.5)


def checked(proxy_id: str = "p1", *, fails: bool = False, state: str = "OK", **facts: Any) -> Checked:
    return Checked(proxy_id=proxy_id, state=state, fault="no answer" if fails else "", **facts)


FINE = [checked(f"p{number}") for number in range(2, 6)]


@pytest.mark.parametrize(
    ("one", "marks"),
    [
        pytest.param(checked(), [], id="good"),
        pytest.param(checked(fails=True), [], id="once is nothing"),
        pytest.param(checked(fails=True, failures=1), [], id="nor is twice"),
        pytest.param(checked(fails=True, failures=2), [Mark("p1", "BAD", "no answer")], id="three times is bad"),
        pytest.param(checked(failures=2), [], id="an answer forgives"),
        pytest.param(checked(state="BAD", marked_by=CHECKER), [], id="one answer is not yet good"),
        pytest.param(
            checked(state="BAD", marked_by=CHECKER, successes=1), [Mark("p1", "OK", "answers again")], id="two are"
        ),
        pytest.param(checked(state="BAD", marked_by="an operator", successes=9), [], id="a person's word stays"),
        pytest.param(checked(fails=True, state="BAD", marked_by=CHECKER, failures=9), [], id="bad already"),
    ],
)
def test_one_of_many(one: Checked, marks: list[Mark]) -> None:
    assert judge([one, *FINE], RULES).marks == marks


def test_counts_go_on_and_start_again() -> None:
    found = judge([checked(fails=True, failures=1, successes=7), checked("p9", failures=2, successes=1), *FINE], RULES)
    assert [(one.failures, one.successes) for one in found.health[:2]] == [(2, 0), (0, 2)]


def test_when_most_fail_at_once_nobody_is_to_blame() -> None:
    failing = [checked(f"p{number}", fails=True, failures=2) for number in range(2)]
    found = judge([*failing, *FINE[:2]], RULES)
    assert (found.marks, found.is_doubtful) == ([], True)
    # Nor does it count for later.
    assert [one.failures for one in found.health] == [2, 2, 0, 0]
    assert judge([*failing, *FINE[:3]], RULES).is_doubtful is False


def test_the_only_proxy_there_is_can_be_bad() -> None:
    assert judge([checked(fails=True, failures=2)], RULES).marks == [Mark("p1", "BAD", "no answer")]
