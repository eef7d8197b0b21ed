"""Lists as people have them become what the gateway reads."""

import pytest

from paceline.dashboard.audience import SHOWN, Unreadable, fill, read_file, read_text


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        pytest.param("447700900301", ("447700900301",), id="one"),
        pytest.param(
            "+44 7700 900301\n\n  +44 (7700) 900-302 \r\n", ("+44 7700 900301", "+44 (7700) 900-302"), id="lines"
        ),
        pytest.param(
            "447700900301, 447700900302;447700900303", ("447700900301", "447700900302", "447700900303"), id="marks"
        ),
        pytest.param(
            "447700900301@c.us\nnobody", ("447700900301@c.us", "nobody"), id="a bad one is the gateway's to judge"
        ),
        pytest.param("\ufeff447700900301", ("447700900301",), id="with a BOM"),
    ],
)
def test_numbers(text: str, numbers: tuple[str, ...]) -> None:
    found = read_text(text)
    assert (found.numbers, found.count, found.csv, found.columns) == (numbers, len(numbers), "", ())
    assert [person.to for person in found.shown] == list(numbers)


def test_a_table_the_gateway_can_read_goes_as_it_is() -> None:
    text = 'to;name;clientRef\n447700900301;"Ada; Countess";c1\n\n447700900302;;\n'
    found = read_text(text)
    assert (found.csv, found.count, found.columns, found.number_column) == (text, 2, ("name",), "")
    assert found.shown[0].vars == {"name": "Ada; Countess"}
    assert found.shown[1].vars == {}, "an empty cell is no value"


@pytest.mark.parametrize(
    ("text", "csv", "column"),
    [
        pytest.param("Phone,name\n4477,Ada", "to,name\n4477,Ada\n", "Phone", id="by its name"),
        pytest.param("Phone number,name\n4477,Ada", "to,name\n4477,Ada\n", "Phone number", id="in two words"),
        pytest.param("to\tname\n4477\tAda", "to,name\n4477,Ada\n", "", id="tabs of a spreadsheet"),
        pytest.param("to,First name\n4477,Ada", "to,First_name\n4477,Ada\n", "", id="a name the text can use"),
        pytest.param("to,2nd\n4477,Ada", "to,\n4477,Ada\n", "", id="a name it cannot use"),
        pytest.param("To,Phone\n4477,4478", "to,Phone\n4477,4478\n", "To", id="`To`, too"),
        pytest.param("to,2023-2024\n4477,9", "to,\n4477,9\n", "", id="a season above a column"),
        pytest.param('"to","01/02/2026"\n4477,9', "to,\n4477,9\n", "", id="a date above a column"),
        pytest.param("Tel,to\n4477,Ada", "Tel,to\n4477,Ada", "", id="`to` counts before a likely name"),
    ],
)
def test_a_table_is_made_readable(text: str, csv: str, column: str) -> None:
    found = read_text(text)
    assert (found.csv, found.number_column) == (csv, column)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("", "nothing", id="empty"),
        pytest.param(" \n", "nothing", id="blank"),
        pytest.param("to,name\n", "no row below", id="only a header"),
        pytest.param("name,city\nAda,London\n", "must name the columns", id="no numbers"),
        pytest.param("name,id\nAda,447700900301\n", "must name the columns", id="numbers nobody named"),
        pytest.param("phone,mobile\n4477,4478\n", "two columns", id="two that may be it"),
        pytest.param("Mobile,447700900301\nAda,447700900302\n", "does not name", id="a firm called Mobile"),
        pytest.param("447700900301,Ada\n447700900302,Bo\n", "does not name", id="rows without a header"),
        pytest.param("447700900301,Ada\n", "does not name", id="a row without a header"),
        pytest.param("447700900301,100012345678\n447700900302,100012345679\n", "does not name", id="ids beside"),
        pytest.param("447700900301\n447700900302,100012345679\n", "does not name", id="ids beside the second"),
        pytest.param('to,name\n4477,"Ada\n', "as CSV", id="a quote left open"),
    ],
)
def test_what_cannot_be_read_says_why(text: str, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        read_text(text)


def test_a_file_of_one_row_has_no_header_either() -> None:
    """Pasted it is a list of numbers; a file with two columns is a table, as it is for the gateway."""
    assert read_text("447700900301,447700900302").count == 2
    with pytest.raises(Unreadable, match="does not name"):
        read_file(b"447700900301,100012345678\n")
    assert read_file(b"447700900301\n447700900302\n").count == 2


def test_a_file_in_another_encoding() -> None:
    assert read_file("to,name\n4477,Zoë".encode("utf-8-sig")).shown[0].vars == {"name": "Zoë"}
    with pytest.raises(Unreadable, match="CSV UTF-8"):
        read_file("to,name\n4477,Zoë".encode("latin-1"))


def test_only_the_first_are_kept_to_look_at() -> None:
    found = read_text("\n".join(str(447700900000 + i) for i in range(5_000)))
    assert (found.count, len(found.numbers), len(found.shown)) == (5_000, 5_000, SHOWN)


@pytest.mark.parametrize(
    ("text", "values", "filled", "missing"),
    [
        pytest.param("Hi {{name}}", {"name": "Ada"}, "Hi Ada", (), id="filled"),
        pytest.param("Hi {{ name }}, {{city}}", {"name": "Ada"}, "Hi Ada, {{city}}", ("city",), id="one is missing"),
        pytest.param("Hi {{name}}", {"name": ""}, "Hi {{name}}", ("name",), id="empty is missing"),
        pytest.param("Hi {{name}}", {"name": "{{x}}"}, "Hi {{x}}", (), id="a value is not filled again"),
        pytest.param("שלום {{name}}", {"name": "עדה"}, "שלום עדה", (), id="right to left"),
    ],
)
def test_the_text_as_somebody_gets_it(text: str, values: dict[str, str], filled: str, missing: tuple[str, ...]) -> None:
    found = fill(text, values)
    assert (found.text, found.missing) == (filled, missing)
