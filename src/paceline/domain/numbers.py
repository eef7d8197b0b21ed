"""Phone numbers: what a caller may write, the digits we keep, and the timezones a number may be in.

A number is refused when it is not *possible* (country code, length), not when a table calls it unlikely; only Mexico's
old 521 is mended. The same number may be written in several possible ways (`notations`): with its trunk 0 kept, or with
a mobile digit that WhatsApp's own ids have or lack; `identity` is the same for all of them. Full parsing by the library
costs about 40 µs a number, too much for 100,000 contacts in one request, so possibility is looked up in a table made
from the library's own metadata.
"""

from collections import Counter
from collections.abc import Sequence, Set
from functools import lru_cache
from operator import itemgetter

from phonenumbers import COUNTRY_CODE_TO_REGION_CODE, PhoneMetadata, PhoneNumber
from phonenumbers.timezone import UNKNOWN_TIMEZONE, time_zones_for_geographical_number

_DECORATION = str.maketrans("", "", " -().\u00a0\u202a\u202c\u2011")
_SUFFIXES = ("@s.whatsapp.net", "@c.us")
_MAX_RAW_LENGTH = 64
_NON_GEOGRAPHIC = "001"
_MEXICO, _ARGENTINA, _BRAZIL = 52, 54, 55
_MOBILE_DIGIT = {_MEXICO: (0, "1"), _ARGENTINA: (0, "9"), _BRAZIL: (2, "9")}
"""Where in the national number it stands, and which it is."""
_MOBILE_CODES = frozenset(map(str, _MOBILE_DIGIT))
_BRAZILS_MOBILES = "6789"
"""What the others begin with is a landline; only mobile numbers got the ninth digit."""
_COUNTRY_LENGTH = 3
"""A country code has at most so many digits; it and the length say whether a number is possible."""
_FIRST = itemgetter(slice(_COUNTRY_LENGTH))
_LONG = 11
"""Digits of a national number that has it."""


def canonical(raw: str) -> str | None:
    """The digits of a possible international number, or None."""
    if len(raw) > _MAX_RAW_LENGTH:
        return None
    if raw.isascii() and raw.isdigit():
        return raw if _is_possible(raw[:_COUNTRY_LENGTH], len(raw)) else _without_mexicos_one(raw)
    text = raw.strip()
    for suffix in _SUFFIXES:
        text = text.removesuffix(suffix)
    text = text.translate(_DECORATION)
    digits = text[1:] if text.startswith("+") else text
    if not digits.isascii() or not digits.isdigit():
        return None
    return digits if _is_possible(digits[:_COUNTRY_LENGTH], len(digits)) else _without_mexicos_one(digits)


def plainly_canonical(raws: Sequence[str]) -> list[str]:
    """`canonical` of a hundred thousand at once. Empty for one that it leaves open and that wants a look of its own."""
    if not raws:
        return []
    digits = _without_decoration(raws)
    lengths = set(map(len, digits))
    if len(lengths) == 1:
        kinds = {(first, min(lengths)) for first in beginnings(digits, _COUNTRY_LENGTH, lengths)}
    else:
        kinds = set(zip(map(_FIRST, digits), map(len, digits), strict=True))
    impossible = {kind for kind in kinds if not _is_possible(*kind)}
    if not impossible:
        return digits
    return ["" if (to[:_COUNTRY_LENGTH], len(to)) in impossible else to for to in digits]


def beginnings(numbers: Sequence[str], length: int, widths: Set[int] = frozenset()) -> Counter[str]:
    """How many begin with which digits. Most lists are of one country, which is told without a look at each. `widths`
    are the lengths of the numbers, for who knows them."""
    widths = widths or set(map(len, numbers))
    if len(widths) == 1 and min(widths) >= length:
        together, width, start = "".join(numbers), *widths, numbers[0][:length]
        columns = [together[place::width] for place in range(length)]
        if all(column.count(digit) == len(numbers) for column, digit in zip(columns, start, strict=True)):
            return Counter({start: len(numbers)})
    return Counter(map(itemgetter(slice(length)), numbers))


def _without_decoration(raws: Sequence[str]) -> list[str]:
    if _are_digits("".join(raws)):
        return list(raws)
    if max(map(len, raws)) > _MAX_RAW_LENGTH:
        raws = [raw if len(raw) <= _MAX_RAW_LENGTH else "" for raw in raws]
    lines = ("\n" + "\n".join(raws).translate(_DECORATION)).replace("\n+", "\n")
    found = lines.split("\n")[1:]
    if len(found) != len(raws):
        return ["" for _ in raws]  # A line break inside of one.
    return found if _are_digits("".join(found)) else [to if _are_digits(to) else "" for to in found]


def _are_digits(text: str) -> bool:
    return text.isascii() and text.encode().isdigit()  # Of bytes it is three times as fast.


def person(raw: str) -> str | None:
    """The digits of the person meant: canonical as written, or in the notation of the same number that is."""
    digits = canonical(raw)
    if digits is not None or len(raw) > _MAX_RAW_LENGTH:
        return digits
    text = raw.strip()
    for suffix in _SUFFIXES:
        text = text.removesuffix(suffix)
    text = text.translate(_DECORATION).removeprefix("+")
    if not text.isascii() or not text.isdigit():
        return None
    others = [other for other in _same_number(text) if canonical(other) == other]
    return min(others) if others else None


def notations(digits: str) -> tuple[str, ...]:
    """Every possible way to write this number, the given one first. The same set for each of its members."""
    others = (other for other in sorted(_same_number(digits)) if other != digits and canonical(other) == other)
    return (digits, *others)


def identity(digits: str) -> str:
    """What all notations of a number have in common, and no other number has. Of most it is the digits themselves,
    which is told at once."""
    country, has_trunk_zero = _habits(digits[:_COUNTRY_LENGTH])
    length = len(country)
    # Of two zeros none is the trunk's.
    if has_trunk_zero and digits[length : length + 1] == "0" and digits[length + 1 : length + 2] != "0":
        digits = country + digits[length + 1 :]
    if country in _MOBILE_CODES:
        return country + _without_mobile_digit(int(country), digits[length:])
    return digits


def are_in_one_notation(numbers: Sequence[str]) -> bool:
    """Whether each of these is its own identity, and so no two of them are one number. How they begin tells it."""
    return all(
        identity(start) == start and _habits(start[:_COUNTRY_LENGTH])[0] not in _MOBILE_CODES
        for start in beginnings(numbers, _COUNTRY_LENGTH + 2)
    )


@lru_cache(maxsize=65_536)
def zones(digits: str) -> tuple[str, ...]:
    """Every timezone the number may be in; empty when nobody can tell."""
    parts = _split(digits) if digits.isdigit() else None
    if parts is None:
        return ()
    country, national = parts
    found = time_zones_for_geographical_number(PhoneNumber(country_code=country, national_number=int(national)))
    return tuple(zone for zone in found if zone != UNKNOWN_TIMEZONE)


@lru_cache(maxsize=16_384)
def _is_possible(beginning: str, length: int) -> bool:
    """Of a number that begins so and has so many digits."""
    return _split(beginning.ljust(length, "0")) is not None


def _split(digits: str) -> tuple[int, str] | None:
    parts = _country(digits)
    return parts if parts is not None and len(parts[1]) in _possible_lengths(parts[0]) else None


def _country(digits: str) -> tuple[int, str] | None:
    if digits.startswith("0"):
        return None  # No country code does. Without this, London's 020… would read as Egypt's 20.
    for length in (1, 2, 3):
        country = int(digits[:length] or 0)
        if country in COUNTRY_CODE_TO_REGION_CODE:
            return country, digits[length:]
    return None


@lru_cache(maxsize=1024)
def _habits(first: str) -> tuple[str, bool]:
    """Of the numbers that begin so: their country's code, and whether a trunk 0 may stand behind it."""
    parts = _country(first)
    return ("", False) if parts is None else (str(parts[0]), _has_trunk_zero(parts[0]))


def _without_mexicos_one(digits: str) -> str | None:
    """The 1 behind 52 is dialled no more, but people in Mexico know their WhatsApp number with it."""
    country = str(_MEXICO)
    long = f"{country}{_MOBILE_DIGIT[_MEXICO][1]}"
    return country + digits[len(long) :] if digits.startswith(long) and len(digits) == len(country) + _LONG else None


def _same_number(digits: str) -> set[str]:
    parts = _country(digits)
    if parts is None:
        return set()
    country, national = parts
    trunks = ("", "0") if _has_trunk_zero(country) and not national.startswith("00") else ("",)
    if len(trunks) > 1:
        national = national.removeprefix("0")
    return {f"{country}{trunk}{core}" for core in _with_or_without_mobile_digit(country, national) for trunk in trunks}


def _with_or_without_mobile_digit(country: int, national: str) -> set[str]:
    """Mexico's 1, Argentina's 9 and Brazil's ninth digit: WhatsApp's ids have one form, address books the other."""
    if country not in _MOBILE_DIGIT:
        return {national}
    short = _without_mobile_digit(country, national)
    if len(short) != _LONG - 1 or (country == _BRAZIL and short[2] not in _BRAZILS_MOBILES):
        return {national}
    at, digit = _MOBILE_DIGIT[country]
    return {short, short[:at] + digit + short[at:]}


def _without_mobile_digit(country: int, national: str) -> str:
    at, digit = _MOBILE_DIGIT[country]
    if len(national) != _LONG or national[at] != digit:
        return national
    if country == _BRAZIL and national[at + 1] not in _BRAZILS_MOBILES:
        return national
    return national[:at] + national[at + 1 :]


@lru_cache(maxsize=512)
def _has_trunk_zero(country: int) -> bool:
    region = COUNTRY_CODE_TO_REGION_CODE[country][0]
    metadata = None if region == _NON_GEOGRAPHIC else PhoneMetadata.metadata_for_region(region)
    return metadata is not None and metadata.national_prefix == "0"


@lru_cache(maxsize=512)
def _possible_lengths(country: int) -> frozenset[int]:
    lengths: set[int] = set()
    for region in COUNTRY_CODE_TO_REGION_CODE[country]:
        metadata = (
            PhoneMetadata.metadata_for_nongeo_region(country)
            if region == _NON_GEOGRAPHIC
            else PhoneMetadata.metadata_for_region(region)
        )
        if metadata is not None and metadata.general_desc is not None:
            lengths.update(metadata.general_desc.possible_length)
    return frozenset(lengths)
