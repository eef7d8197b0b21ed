"""One number in several notations: each of them names all of them, so a list that has one has the person."""

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from paceline.domain.numbers import are_in_one_notation, canonical, identity, notations, person


@pytest.mark.parametrize(
    "group",
    [
        pytest.param({"972541234567", "9720541234567"}, id="a trunk 0 that was kept"),
        pytest.param({"4915112345678", "49015112345678"}, id="German trunk 0"),
        pytest.param({"5511987654321", "551187654321", "5501187654321"}, id="Brazil's ninth digit"),
        pytest.param({"5491123456789", "541123456789", "5401123456789"}, id="Argentina's 9"),
        pytest.param({"525512345678"}, id="Mexico, whose 1 is no possible number any more"),
        pytest.param({"447911123456"}, id="a length that allows no trunk 0"),
        pytest.param({"390612345678"}, id="Italy, where the 0 belongs to the number"),
        pytest.param({"551133334444", "5501133334444"}, id="a Brazilian landline"),
        pytest.param({"12025550123"}, id="a country without a trunk 0"),
    ],
)
def test_each_notation_names_all_of_them(group: set[str]) -> None:
    for digits in group:
        found = notations(digits)
        assert found[0] == digits
        assert set(found) == group
        assert all(canonical(other) == other for other in found)
    assert len({identity(digits) for digits in group}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("5511987654321", "5511987654322", id="another digit"),
        pytest.param("551133334444", "5511933334444", id="a landline and a mobile"),
        pytest.param("541123456789", "541123456780", id="Argentina"),
        pytest.param("390612345678", "39612345678", id="Italy, where the 0 belongs to the number"),
    ],
)
def test_two_numbers_are_two_people(one: str, other: str) -> None:
    assert identity(one) != identity(other)


@example("6400000000")
@example("46001234567")
@given(st.integers(10**9, 10**13).map(str))
def test_a_number_has_the_identity_of_all_its_notations_and_of_nobody_else(digits: str) -> None:
    assume(canonical(digits) == digits)
    assert {identity(same) for same in notations(digits)} == {identity(digits)}
    neighbour = str(int(digits) + 1)
    if canonical(neighbour) == neighbour and neighbour not in notations(digits):
        assert identity(neighbour) != identity(digits)


@pytest.mark.parametrize(
    ("numbers", "is_so"),
    [
        pytest.param([], True, id="nobody"),
        pytest.param(["972541234567", "4915112345678", "12025550123"], True, id="one way to write each"),
        pytest.param(["972541234567", "9720541234567"], False, id="a trunk 0"),
        pytest.param(["390612345678"], True, id="a 0 that belongs to the number"),
        pytest.param(["6400000000"], True, id="two zeros, of which none is the trunk's"),
        pytest.param(["525512345678"], False, id="a country with a digit for mobiles"),
    ],
)
def test_whether_a_list_may_name_somebody_twice(numbers: list[str], is_so: bool) -> None:
    assert are_in_one_notation(numbers) is is_so


@given(st.lists(st.integers(10**9, 10**13).map(str).filter(lambda digits: canonical(digits) == digits), max_size=20))
def test_where_no_number_may_be_written_otherwise_each_is_its_identity(numbers: list[str]) -> None:
    if are_in_one_notation(numbers):
        assert [identity(digits) for digits in numbers] == numbers


@pytest.mark.parametrize(
    ("raw", "digits"),
    [
        ("+972 54-123-4567", "972541234567"),
        ("+44 (0) 7911 123456", "447911123456"),
        ("5215512345678@s.whatsapp.net", "525512345678"),
        ("551187654321@s.whatsapp.net", "551187654321"),
        ("0541234567", None),
        ("120363041234567890@g.us", None),
        ("", None),
        ("x" * 100, None),
        ("44" + "0" * 30, None),
    ],
)
def test_whom_somebody_means(raw: str, digits: str | None) -> None:
    """What is not possible as written may be the person's number in another notation."""
    assert person(raw) == digits
