"""Text: placeholders are filled once, and nothing a contact brings is read as a placeholder."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.domain.text import is_bare, is_blank, render, variables


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param("hello", set(), id="none"),
        pytest.param("hi {{name}}", {"name"}, id="one"),
        pytest.param("{{ name }}, {{first_name}} {{name}}", {"name", "first_name"}, id="blanks and repeats"),
        pytest.param("{{order.id}} {{a-b}}", {"order.id", "a-b"}, id="dots and dashes"),
        pytest.param("{name} {{}} {{1st}} {{a b}}", set(), id="not placeholders"),
        pytest.param("{{{name}}}", {"name"}, id="three braces hold one inside"),
        pytest.param("{{" + "a" * 64 + "}}", {"a" * 64}, id="longest name"),
        pytest.param("{{" + "a" * 65 + "}}", set(), id="name too long"),
    ],
)
def test_names_in_a_text(text, names):
    """The names a text needs are exactly those `render` will look up."""
    assert variables(text) == names


@pytest.mark.parametrize(
    ("text", "values", "rendered"),
    [
        pytest.param("hi {{name}}!", {"name": "Dana"}, "hi Dana!", id="plain"),
        pytest.param("{{a}}{{a}}", {"a": "x"}, "xx", id="twice"),
        pytest.param("{{a}}", {"a": ""}, "", id="empty value"),
        pytest.param("{{a}}", {"a": "{{b}}", "b": "no"}, "{{b}}", id="a value is not scanned again"),
        pytest.param("{{{a}}}", {"a": "x"}, "{x}", id="braces around stay"),
        pytest.param("{{a}}", {"a": r"\1 \g<0>"}, r"\1 \g<0>", id="no backslash magic"),
        pytest.param("שלום {{name}} 👋", {"name": "דנה"}, "שלום דנה 👋", id="not only latin"),
        pytest.param("no place", {"unused": "x"}, "no place", id="unused values do no harm"),
    ],
)
def test_rendered(text, values, rendered):
    """Each placeholder becomes its value, and everything else stays as it was."""
    assert render(text, values) == rendered


def test_a_missing_value_is_an_error():
    """A text is never sent with a hole in it."""
    with pytest.raises(KeyError):
        render("hi {{name}}", {})


@given(st.lists(st.one_of(st.text(), st.sampled_from(["{{a}}", "{{ b }}", "{{", "}}", "{"]))), st.text(), st.text())
def test_values_are_never_scanned_again(parts, a, b):
    """Rendering equals cutting the text at its placeholders and joining with the values, whatever they contain."""

    text = "".join(parts)
    values = {"a": a, "b": b}
    if variables(text) <= set(values):
        pieces = re.split(r"\{\{\s*([ab])\s*\}\}", text)
        assert render(text, values) == "".join(values[p] if i % 2 else p for i, p in enumerate(pieces))


@pytest.mark.parametrize(
    "text", ["", " ", "\n\t", "\u200b\ufeff", "\u00a0\u3000", "\u2800", "\u3164", "\u200e \u2060"], ids=ascii
)
def test_nothing_to_see(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize(
    "text",
    ["a", " . ", "\u200b\u05e9", "\u2764\ufe0f", "\U0001f468\u200d\U0001f467", "\u0301", "\U0001faea"],
    ids=ascii,
)
def test_something_to_see(text: str) -> None:
    """Also a sign that is newer than this Python."""
    assert not is_blank(text)


@pytest.mark.parametrize(
    ("text", "bare"), [("{{a}}", True), (" {{a}}\u200b{{b}}", True), ("{{a}}!", False), ("a", False)]
)
def test_nothing_but_variables(text: str, bare: bool) -> None:
    assert is_bare(text) is bare
