"""Which column holds the numbers is told by its name alone."""

import pytest

from paceline.domain.columns import NUMBER_NAMES, NoNumberColumn, looks_like_number, number_column


@pytest.mark.parametrize("name", [*NUMBER_NAMES, "TO", "Phone", "Phone_Number", "phone-number", "Tel."])
def test_names_that_say_so(name: str) -> None:
    assert number_column(["id", name, "city"]) == 1


def test_to_itself_counts_before_the_others() -> None:
    assert number_column(["phone", "to"]) == 1


@pytest.mark.parametrize(
    ("names", "why"),
    [
        pytest.param(["id", "name"], "one of them must be the numbers'", id="none says so"),
        pytest.param([], "one of them must be", id="no names"),
        pytest.param(["phone\tnumber"], "one of them must be", id="two names with a tab between"),
        pytest.param(["Mobile", "447700900301"], "it has a phone number", id="a row of data"),
        pytest.param(["to", "+44 (7700) 900-301"], "it has a phone number", id="a number beside a good name"),
        pytest.param(["phone", "Mobile"], "two columns", id="two say so"),
    ],
)
def test_otherwise_it_is_refused(names: list[str], why: str) -> None:
    with pytest.raises(NoNumberColumn, match=why):
        number_column(names)


@pytest.mark.parametrize(
    ("cell", "looks"),
    [("447700900301", True), ("0541234567", True), ("447700900301@c.us", True), ("2026", False), ("Ada", False)],
)
def test_what_looks_like_a_number(cell: str, looks: bool) -> None:
    assert looks_like_number(cell) is looks
