"""Phone numbers as E.164 digits without `+`, possible for their country, and the zones they may be in."""

import re
from functools import lru_cache
from zoneinfo import ZoneInfo

import phonenumbers
from phonenumbers import PhoneMetadata, PhoneNumber, ValidationResult
from phonenumbers import timezone as phone_timezone
from phonenumbers.tzdata import TIMEZONE_DATA


class PhoneError(ValueError):
    """Says in one sentence why a text is not a number one can write to."""


def normalise(text: str, default_country: str | None = None) -> str:
    """`+972 50-987-6543`, or `050-987-6543` with a default country, becomes `972509876543`."""
    if text.isascii() and text.isdigit() and _plainly_possible(text):
        return text
    number = _parse(_bare(text), default_country)
    verdict = phonenumbers.is_possible_number_with_reason(number)
    if verdict != ValidationResult.IS_POSSIBLE:
        raise PhoneError(_REASONS.get(verdict, "is not a possible number of its country"))
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)[1:]


# What people put between digits, and the invisible marks that copying from right-to-left text brings along.
_BETWEEN = re.compile(r"[\s().\-/\u2010-\u2015\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069]+")
_NOT_A_NUMBER = "is not a phone number; write it with its country code, like 972509876543"


def _bare(text: str) -> str:
    """Only the digits and a leading `+`. A letter is refused: the parser would dial it as on a keypad."""
    bare = _BETWEEN.sub("", text)
    if not re.fullmatch(r"\+?\d+", bare):
        raise PhoneError(_NOT_A_NUMBER)
    return "+" + bare[2:] if bare.startswith("00") else bare


def _parse(bare: str, default_country: str | None) -> PhoneNumber:
    national = [(bare, default_country)] if default_country and not bare.startswith("+") else []
    abroad = [] if national and bare.startswith("0") else [("+" + bare.removeprefix("+"), None)]
    found: PhoneNumber | None = None
    for digits, country in [*abroad, *national]:
        try:
            found = phonenumbers.parse(digits, country)
        except phonenumbers.NumberParseException:
            continue
        if phonenumbers.is_possible_number_with_reason(found) == ValidationResult.IS_POSSIBLE:
            break
    if found is None:
        raise PhoneError(_NOT_A_NUMBER)
    return found


_REASONS = {
    ValidationResult.TOO_SHORT: "is too short for its country",
    ValidationResult.TOO_LONG: "is too long for its country",
    ValidationResult.INVALID_LENGTH: "has a length that its country does not use",
    ValidationResult.INVALID_COUNTRY_CODE: "starts with a country code that does not exist",
    ValidationResult.IS_POSSIBLE_LOCAL_ONLY: "lacks its area code",
}


def _plainly_possible(digits: str) -> bool:
    """The common case without the library's parser (15 µs): a country code, then a length it uses.

    A national part that starts with 0 may hold a trunk prefix, which only the parser can tell.
    """
    for size in (1, 2, 3):
        lengths = _possible_lengths(digits[:size])
        if lengths:
            return digits[size : size + 1] != "0" and len(digits) - size in lengths
    return False


@lru_cache(maxsize=1024)
def _possible_lengths(country_code: str) -> frozenset[int]:
    """The lengths of national numbers under a country code, where one main region settles them."""
    regions = phonenumbers.COUNTRY_CODE_TO_REGION_CODE.get(int(country_code or 0))
    if not regions or country_code.startswith("0") or regions[0] == "001":
        return frozenset()
    metadata = PhoneMetadata.metadata_for_region(regions[0])
    # A country with a national prefix other than 0 (the Americas' 1, Russia's 8) goes to the parser.
    if metadata is None or (metadata.national_prefix_for_parsing or "0") not in {"0", "1"}:
        return frozenset()
    if metadata.national_prefix_for_parsing == "1" and country_code != "1":
        return frozenset()
    return frozenset(metadata.general_desc.possible_length if metadata.general_desc else ())


def zones(phone: str) -> tuple[ZoneInfo, ...]:
    """The time zones a number may be in; empty when nobody can tell."""
    for size in (1, 2, 3):
        of_country = _country_zones(phone[:size])
        if of_country:
            return of_country if len(of_country) == 1 else _zones_by_number(phone)
    return _zones_by_number(phone)


@lru_cache(maxsize=1024)
def _country_zones(country_code: str) -> tuple[ZoneInfo, ...]:
    """Of a country with one zone there is nothing to parse."""
    if int(country_code or 0) not in phonenumbers.COUNTRY_CODE_TO_REGION_CODE:
        return ()
    return tuple(ZoneInfo(name) for name in TIMEZONE_DATA.get(country_code, ()))


@lru_cache(maxsize=65536)
def _zones_by_number(phone: str) -> tuple[ZoneInfo, ...]:
    names = phone_timezone.time_zones_for_number(phonenumbers.parse("+" + phone))
    return tuple(ZoneInfo(name) for name in names if name != phone_timezone.UNKNOWN_TIMEZONE)
