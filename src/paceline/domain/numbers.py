"""Phone numbers: what a caller may write, the digits we keep, and the timezones a number may be in.

A number is refused when it is not *possible* (country code, length), not when a table calls it unlikely. Full parsing
by the library costs about 40 µs a number, too much for 100,000 contacts in one request, so possibility is looked up in
a table made from the library's own metadata.
"""

from functools import lru_cache

from phonenumbers import COUNTRY_CODE_TO_REGION_CODE, PhoneMetadata, PhoneNumber
from phonenumbers.timezone import UNKNOWN_TIMEZONE, time_zones_for_geographical_number

_DECORATION = str.maketrans("", "", " -().\u00a0\u202a\u202c\u2011")
_SUFFIXES = ("@s.whatsapp.net", "@c.us")
_MAX_RAW_LENGTH = 64
_NON_GEOGRAPHIC = "001"


def canonical(raw: str) -> str | None:
    """The digits of a possible international number, or None."""
    if len(raw) > _MAX_RAW_LENGTH:
        return None
    text = raw.strip()
    for suffix in _SUFFIXES:
        text = text.removesuffix(suffix)
    text = text.translate(_DECORATION)
    digits = text[1:] if text.startswith("+") else text
    if not digits.isascii() or not digits.isdigit():
        return None
    return digits if _split(digits) else None


@lru_cache(maxsize=65_536)
def zones(digits: str) -> tuple[str, ...]:
    """Every timezone the number may be in; empty when nobody can tell."""
    parts = _split(digits)
    if parts is None:
        return ()
    country, national = parts
    found = time_zones_for_geographical_number(PhoneNumber(country_code=country, national_number=int(national)))
    return tuple(zone for zone in found if zone != UNKNOWN_TIMEZONE)


def _split(digits: str) -> tuple[int, str] | None:
    if digits.startswith("0"):
        return None  # No country code does. Without this, London's 020… would read as Egypt's 20.
    for length in (1, 2, 3):
        country = int(digits[:length] or 0)
        if country in COUNTRY_CODE_TO_REGION_CODE:
            national = digits[length:]
            return (country, national) if len(national) in _possible_lengths(country) else None
    return None


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
