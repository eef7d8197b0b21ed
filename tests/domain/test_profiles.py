"""Profiles as people write them, and the lines of a file they come in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.domain.lines import NotText, numbered, read_text
from paceline.domain.profiles import Profile, is_profile_id, read_profile
from paceline.domain.proxies import Refused
from paceline.policy.hours import is_zone

NOW = 1_773_136_800_000


def read(line: str) -> Profile | Refused:
    return read_profile(line, is_zone=is_zone, now_ms=NOW)


def profile(line: str) -> Profile:
    found = read(line)
    assert isinstance(found, Profile), found
    return found


def test_an_object_holds_settings_and_whatever_else_stays_in_the_line() -> None:
    found = profile(
        '{"tags": ["vip"], "displayName": "עדה", "timezone": "Asia/Jerusalem", "createdAt": 1700000000000, '
        '"x": {"y": 1}}'
    )
    assert (found.display_name, found.timezone, found.tags, found.created_at) == (
        "עדה", "Asia/Jerusalem", ["vip"], 1_700_000_000_000,
    )  # fmt: skip
    assert found.is_object
    assert '"x":{"y":1}' in found.line
    assert is_profile_id(found.profile_id)


def test_a_time_may_be_written_as_a_date() -> None:
    assert profile('{"createdAt": "2023-11-14T22:13:20+00:00"}').created_at == 1_700_000_000_000


@pytest.mark.parametrize("line", ["just words", "a,b,c", "[1, 2]", '"text"', "5", "null", "a\tb"])
def test_other_text_is_a_payload(line: str) -> None:
    found = profile(line)
    assert (found.line, found.is_object, found.tags) == (line, False, None)


def test_the_same_settings_in_another_order_are_the_same_profile() -> None:
    assert profile('{"a":1,"b":{"d":1,"c":2}}') == profile(' {"b" : {"c":2, "d":1}, "a": 1} ')
    assert profile('{"a":1}').profile_id != profile('{"a":2}').profile_id


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        pytest.param('{"a": 1', "is none", id="cut off"),
        pytest.param("{a: 1}", "is none", id="no JSON"),
        pytest.param('{"a": NaN}', "is none", id="no number"),
        pytest.param('{"a": 1} x', "is none", id="something behind it"),
        pytest.param('{"a":' * 900 + "1" + "}" * 900, "longer", id="long and deep"),
        pytest.param('{"a":[' + "[" * 2_000 + "]" * 2_000 + "]}", "is none", id="nested deeply"),
        pytest.param('{"timezone": "Mars/Olympus"}', "timezone", id="unknown zone"),
        pytest.param('{"timezone": "../../etc/passwd"}', "timezone", id="a zone that climbs"),
        pytest.param('{"timezone": 5}', "timezone", id="zone no text"),
        pytest.param('{"tags": "a"}', "tags", id="tags no list"),
        pytest.param('{"tags": [1]}', "tags", id="tag no text"),
        pytest.param('{"tags": [""]}', "tags", id="empty tag"),
        pytest.param('{"displayName": ""}', "displayName", id="empty name"),
        pytest.param('{"displayName": "a\\u0007b"}', "displayName", id="name with a bell"),
        pytest.param('{"displayName": "' + "a" * 101 + '"}', "displayName", id="name too long"),
        pytest.param('{"createdAt": 1}', "createdAt", id="in 1970"),
        pytest.param(f'{{"createdAt": {NOW + 1}}}', "createdAt", id="in the future"),
        pytest.param('{"createdAt": "long ago"}', "createdAt", id="a time that is none"),
        pytest.param('{"createdAt": true}', "createdAt", id="true"),
        pytest.param('{"createdAt": 1.5}', "createdAt", id="a fraction"),
        pytest.param("a\x07b", "control characters", id="bell"),
        pytest.param("a" * 4_097, "longer than 4,096", id="too long"),
    ],
)
def test_refusals_say_why(line: str, reason: str) -> None:
    found = read(line)
    assert isinstance(found, Refused), found
    assert reason in found.reason


@given(st.one_of(st.text(max_size=80), st.text(max_size=80).map(lambda text: "{" + text)))
def test_no_line_raises(line: str) -> None:
    found = read(line)
    if isinstance(found, Profile):
        assert read(found.line) == found


class TestLines:
    def test_blanks_comments_marks_and_line_ends_are_nobodys_mistake(self) -> None:
        data = b"\xef\xbb\xbfone\r\n\r\n# two\n  \n\tthree \rfour"
        text = read_text(data)
        assert isinstance(text, str)
        assert list(numbered(text)) == [(1, "one"), (5, "three"), (6, "four")]

    def test_other_separators_of_unicode_end_no_line(self) -> None:
        assert list(numbered("a\u2028b\x0bc\x85d")) == [(1, "a\u2028b\x0bc\x85d")]

    @pytest.mark.parametrize(
        ("data", "line", "reason"),
        [
            pytest.param(b"a\nb\x00c\n", 2, "NUL", id="NUL"),
            pytest.param(b"a\r\nb\r\n\xff", 3, "UTF-8", id="no UTF-8"),
            pytest.param(b"a\r\xc3\x28", 2, "UTF-8", id="half a character"),
            pytest.param(b"\xff\n\x00", 1, "UTF-8", id="both: the first"),
            pytest.param("a\nb".encode("utf-16"), 1, "UTF-16", id="UTF-16"),
            pytest.param(b"\x89PNG\r\n\x1a\n\x00\x00", 1, "UTF-8", id="a picture"),
            pytest.param(b"PK\x03\x04\x14\x00", 1, "NUL", id="an archive"),
        ],
    )
    def test_what_is_no_text_is_named_by_its_line(self, data: bytes, line: int, reason: str) -> None:
        found = read_text(data)
        assert isinstance(found, NotText)
        assert found.line == line
        assert reason in found.reason

    @given(st.binary(max_size=200))
    def test_no_bytes_raise(self, data: bytes) -> None:
        found = read_text(data)
        assert isinstance(found, NotText) or "\r" not in found
