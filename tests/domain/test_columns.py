"""Which column holds the numbers is told by its name alone."""

import pytest

from paceline.domain.columns import NUMBER_NAMES, NoNumberColumn, looks_like_number, number_column

ODD_NAMES = ("Tel.", "Tel:", "Phone\u00a0Number")


@pytest.mark.parametrize("name", [*NUMBER_NAMES, "TO", "Phone", "Phone_Number", "phone-number", *ODD_NAMES])
def test_names_that_say_so(name: str) -> None:
    assert number_column(["id", name, "city"]) == 1


@pytest.mark.parametrize(
    "names", [["phone", "to"], ["phone", "To"], ["phone", "To:"], ["To", "to"]], ids=["to", "To", "To:", "To and to"]
)
def test_to_itself_counts_before_the_others(names: list[str]) -> None:
    """`To,Phone` was refused with the advice to call the right one `to`."""
    assert number_column(names) == 1


@pytest.mark.parametrize("name", ["2023-2024", "01/02/2026", "+44 (7700) 900-301"])
def test_a_row_with_to_in_it_names_columns_whatever_they_look_like(name: str) -> None:
    """A table with a season or a date above a column was refused for having a number in its first row."""
    assert number_column([name, "to"]) == 1


@pytest.mark.parametrize(
    ("names", "why"),
    [
        pytest.param(["id", "name"], "one of them must be the numbers'", id="none says so"),
        pytest.param([], "one of them must be", id="no names"),
        pytest.param(["phone\tnumber"], "one of them must be", id="two names with a tab between"),
        pytest.param(["Mobile", "447700900301"], "it has a phone number", id="a row of data"),
        pytest.param(["phone;number"], "one of them must be", id="two names with a semicolon between"),
        pytest.param(["TO", "+44 (7700) 900-301"], "it has a phone number", id="a row of data from Tocantins"),
        pytest.param(["phone", "Mobile"], "two columns", id="two say so"),
        pytest.param(["To", "TO"], "two columns", id="two are almost it"),
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
