"""Phone numbers: which spellings are one number, what is refused, and how far we agree with Google's library."""

import phonenumbers
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from phonenumbers import COUNTRY_CODE_TO_REGION_CODE, NumberParseException, ValidationResult
from phonenumbers.tzdata import TIMEZONE_DATA

from paceline.domain.numbers import canonical, zones
from paceline.policy.hours import is_zone

ISRAEL = "972541234567"


@pytest.mark.parametrize(
    ("raw", "digits"),
    [
        pytest.param("972541234567", ISRAEL, id="digits"),
        pytest.param("+972541234567", ISRAEL, id="plus"),
        pytest.param("+972 54 123 4567", ISRAEL, id="spaces"),
        pytest.param("+972-54-123-4567", ISRAEL, id="dashes"),
        pytest.param("+972 (54) 123.4567", ISRAEL, id="brackets and dots"),
        pytest.param("+972\u00a054\u2011123\u20114567", ISRAEL, id="no-break space and hyphen"),
        pytest.param("\u202a+972541234567\u202c", ISRAEL, id="direction marks of a pasted number"),
        pytest.param("  +972541234567\n", ISRAEL, id="blank around"),
        pytest.param("972541234567@c.us", ISRAEL, id="c.us"),
        pytest.param("972541234567@s.whatsapp.net", ISRAEL, id="s.whatsapp.net"),
        pytest.param("+1 (212) 555-0100", "12125550100", id="one-digit country"),
        pytest.param("+39 06 698 12345", "390669812345", id="Italian zero belongs to the number"),
        pytest.param("+54 9 11 1234-5678", "5491112345678", id="Argentine mobile"),
        pytest.param("+52 1 55 1234 5678", "525512345678", id="Mexico with the 1 of WhatsApp's ids"),
        pytest.param("5215512345678@s.whatsapp.net", "525512345678", id="a Mexican id"),
        pytest.param("+52 55 1234 5678", "525512345678", id="Mexico without it"),
        pytest.param("+49 1512 3456789", "4915123456789", id="Germany"),
        pytest.param("+800 1234 5678", "80012345678", id="no country: international freephone"),
        pytest.param("+1 999 555 0100", "19995550100", id="unlikely but possible"),
    ],
)
def test_spellings_of_a_number(raw, digits):
    """Every accepted spelling gives the same digits, and those are canonical themselves."""
    assert canonical(raw) == digits
    assert canonical(digits) == digits


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param("", id="empty"),
        pytest.param("+", id="plus alone"),
        pytest.param("   ", id="blank"),
        pytest.param("hello", id="word"),
        pytest.param("97254123456x", id="letter"),
        pytest.param("++972541234567", id="two plus"),
        pytest.param("972+541234567", id="plus inside"),
        pytest.param("٩٧٢٥٤١٢٣٤٥٦٧", id="arabic digits"),
        pytest.param("97254²234567", id="superscript"),
        pytest.param("972541234567@g.us", id="a group"),
        pytest.param("972541234567@evil.example", id="another host"),
        pytest.param("972541234567\x00", id="NUL"),
        pytest.param("972\n541234567", id="newline inside"),
        pytest.param("97254123", id="too short"),
        pytest.param("52155123456", id="Mexico, a digit too few for the 1"),
        pytest.param("52155123456789", id="Mexico, a digit too many for the 1"),
        pytest.param("5225512345678", id="Mexico, another digit than the 1"),
        pytest.param("9725412345678901", id="too long"),
        pytest.param("999123456789", id="no such country"),
        pytest.param("1" * 65, id="longer than any number"),
        pytest.param("0541234567", id="national, Israel"),
        pytest.param("07911123456", id="national, a British mobile"),
        pytest.param("02079460000", id="national, London: 020 is not Egypt"),
        pytest.param("0012125550100", id="00 instead of +"),
        pytest.param("012125550100", id="0 before the country"),
        pytest.param("00972541234567", id="00 instead of +, Israel"),
        pytest.param("+44 (0)20 7946 0000", id="trunk zero after the country: another string of digits"),
    ],
)
def test_what_is_no_number(raw):
    """What cannot be dialled from abroad as written is refused, never guessed at."""
    assert canonical(raw) is None


@given(st.text(max_size=80))
def test_any_text_is_refused_or_made_digits(raw):
    """Whatever a caller writes, what comes out is digits that a second look leaves alone."""
    digits = canonical(raw)
    assert digits is None or (digits.isascii() and digits.isdigit() and canonical(digits) == digits)


COUNTRIES = sorted(COUNTRY_CODE_TO_REGION_CODE)
numbers = st.builds(
    lambda country, national: f"{country}{national}",
    st.sampled_from(COUNTRIES),
    st.text("0123456789", min_size=1, max_size=16),
)


@settings(max_examples=1500)
@given(numbers)
def test_agrees_with_the_library(digits):
    """We call possible what the library does, but for two kinds of spelling that nobody can dial from abroad.

    The differences are ours on purpose: a length the library knows as local only (a number without its area), and a
    national trunk prefix behind the country code, which the library silently removes: the digits are the recipient's
    WhatsApp address, so we refuse rather than repair.
    """
    ours = canonical(f"+{digits}") == digits
    try:
        number = phonenumbers.parse(f"+{digits}")
    except NumberParseException:
        assert not ours
        return
    reason = phonenumbers.is_possible_number_with_reason(number)
    repaired = f"{number.country_code}{phonenumbers.national_significant_number(number)}" != digits
    if ours:
        assert phonenumbers.is_possible_number(number)
    elif not repaired:
        assert reason != ValidationResult.IS_POSSIBLE


@pytest.mark.parametrize("country", COUNTRIES)
def test_every_country_has_a_number(country):
    """An example number of every calling code is accepted, with and without decoration."""
    region = COUNTRY_CODE_TO_REGION_CODE[country][0]
    example = (
        phonenumbers.example_number_for_non_geo_entity(country)
        if region == "001"
        else phonenumbers.example_number_for_type(region, phonenumbers.PhoneNumberType.MOBILE)
        or phonenumbers.example_number(region)
    )
    digits = phonenumbers.format_number(example, phonenumbers.PhoneNumberFormat.E164)[1:]
    assert canonical(phonenumbers.format_number(example, phonenumbers.PhoneNumberFormat.INTERNATIONAL)) == digits


@pytest.mark.parametrize(
    ("digits", "expected"),
    [
        pytest.param("972541234567", ("Asia/Jerusalem",), id="one zone"),
        pytest.param("14155550100", ("America/Los_Angeles",), id="by area code"),
        pytest.param("351912345678", ("Atlantic/Azores", "Europe/Lisbon"), id="a mobile may be on the islands"),
        pytest.param("919876543210", ("Asia/Calcutta",), id="half-hour zone, under its old name"),
        pytest.param("80012345678", (), id="nobody can tell"),
        pytest.param("123", (), id="no number"),
    ],
)
def test_zones_of_a_number(digits, expected):
    """A number tells every zone it may be in, or none."""
    assert zones(digits) == expected


def test_every_zone_of_the_library_is_known_here():
    """The library's table and our timezone data use the same names, so no number can make a decision fail."""
    names = {name for found in TIMEZONE_DATA.values() for name in found} - {"Etc/Unknown"}
    assert [name for name in sorted(names) if not is_zone(name)] == []
