"""A number is taken however people write it, and refused with the reason when its country has none like it."""

import re
from zoneinfo import ZoneInfo

import phonenumbers
import pytest
from hypothesis import given
from hypothesis import strategies as st
from phonenumbers import timezone as phone_timezone
from phonenumbers.tzdata import TIMEZONE_DATA

from switchboard.domain.phones import PhoneError, normalise, zones


@pytest.mark.parametrize(
    "text",
    """
    972509876543|+972509876543|+972 50-987-6543|+972 (50) 987 6543|972-50-987-6543|972.50.987.6543|00972509876543
    |  +972 50 987 6543  |+972 (0)50-987-6543|9720509876543|+972/50/9876543|+972–50–987–6543|٩٧٢٥٠٩٨٧٦٥٤٣
    """.strip().split("|"),
)
def test_a_full_number_is_taken_however_it_is_written(text: str) -> None:
    assert normalise(text) == "972509876543"
    assert normalise(text, "US") == "972509876543"


def test_marks_that_came_along_from_a_right_to_left_text_are_dropped() -> None:
    assert normalise("\u202a+972 50\u2011987\u20116543\u202c") == "972509876543"
    assert normalise("\u200e050-987-6543\u200f", "IL") == "972509876543"


@pytest.mark.parametrize(
    ("text", "country", "digits"),
    [
        ("050-987-6543", "IL", "972509876543"),
        ("(050) 987-6543", "IL", "972509876543"),
        ("50-987-6543", "IL", "972509876543"),
        ("1 (202) 555-0123", "US", "12025550123"),
        ("8 916 123-45-67", "RU", "79161234567"),
        ("030 123456", "DE", "4930123456"),
        ("06 1234 5678", "IT", "390612345678"),
    ],
)
def test_a_national_number_is_taken_with_a_default_country(text: str, country: str, digits: str) -> None:
    assert normalise(text, country) == digits


def test_a_number_with_its_country_code_is_not_taken_for_a_national_one() -> None:
    assert normalise("4915112345678", "IL") == "4915112345678"
    assert normalise("+1 202 555 0123", "IL") == "12025550123"


def test_without_a_default_country_a_national_number_is_refused() -> None:
    with pytest.raises(PhoneError, match="country code"):
        normalise("050-987-6543")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("97250", "is too short for its country"),
        ("+1 202 555 01234", "is too long for its country"),
        ("99912345678", "is not a phone number"),
        ("+999 1234 5678", "is not a phone number"),
        ("+1 555 0123", "lacks its area code"),
        ("", "is not a phone number"),
        ("+", "is not a phone number"),
        ("hello", "is not a phone number"),
        ("1" * 300, "is not a phone number"),
        ("972509876543@s.whatsapp.net", "is not a phone number"),
        ("972509876543, 972501234567", "is not a phone number"),
        ("+972+509876543", "is not a phone number"),
    ],
)
def test_what_is_no_possible_number_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(PhoneError, match=re.escape(reason)):
        normalise(text)


@pytest.mark.parametrize("text", ["972509876543abc", "1-800-FLOWERS", "972509876543 ext 5", "972509876543x5"])
def test_a_letter_is_never_dialled(text: str) -> None:
    with pytest.raises(PhoneError, match="is not a phone number"):
        normalise(text)


def by_the_library(digits: str) -> str | None:
    try:
        number = phonenumbers.parse("+" + digits)
    except phonenumbers.NumberParseException:
        return None
    if phonenumbers.is_possible_number_with_reason(number) != phonenumbers.ValidationResult.IS_POSSIBLE:
        return None
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)[1:]


def by_us(digits: str) -> str | None:
    try:
        return normalise(digits)
    except PhoneError:
        return None


def numbers_of(country_code: int) -> list[str]:
    """Every length under a country code, with national parts that start with each digit, or look like it."""
    parts = [f"{first}{'2345678901234567'}" for first in (0, 1, 2, 5, 8, 9)] + [
        f"{first}{country_code}5678901234567" for first in ("", "0", "1", "8", "9", "15")
    ]
    return [f"{country_code}{part[:length]}" for part in parts for length in range(3, 16)]


def test_the_short_way_agrees_with_the_library_in_every_country() -> None:
    for country_code in phonenumbers.COUNTRY_CODE_TO_REGION_CODE:
        for digits in numbers_of(country_code):
            assert by_us(digits) == by_the_library(digits), digits


COUNTRY_CODES = st.sampled_from(sorted(phonenumbers.COUNTRY_CODE_TO_REGION_CODE))


@given(COUNTRY_CODES, st.text("0123456789", min_size=1, max_size=15))
def test_the_short_way_agrees_with_the_library_on_any_digits(country_code: int, national: str) -> None:
    digits = f"{country_code}{national}"
    assert by_us(digits) == by_the_library(digits)


@given(st.text("123456789", min_size=1, max_size=1), st.text("0123456789", max_size=16))
def test_the_short_way_agrees_with_the_library_on_no_country_at_all(first: str, rest: str) -> None:
    assert by_us(first + rest) == by_the_library(first + rest)


@given(st.text(max_size=20), st.sampled_from([None, "IL", "US"]))
def test_any_text_gives_digits_or_a_reason(text: str, country: str | None) -> None:
    try:
        outcome = normalise(text, country)
    except PhoneError as error:
        outcome = str(error)
    assert re.fullmatch("[0-9]+|(is|has|lacks|starts) .+", outcome)


@pytest.mark.parametrize(
    ("phone", "names"),
    [
        ("972509876543", ["Asia/Jerusalem"]),
        ("12125550123", ["America/New_York"]),
        ("61412345678", ["Australia/Adelaide", "Australia/Brisbane"]),
    ],
)
def test_the_zones_a_number_may_be_in(phone: str, names: list[str]) -> None:
    found = zones(phone)
    assert all(ZoneInfo(name) in found for name in names)


def test_a_number_of_the_whole_world_has_no_zone_that_is_unknown() -> None:
    assert all(zone.key != "Etc/Unknown" for zone in zones("80012345678"))


def test_the_zones_are_those_the_library_knows_for_every_prefix() -> None:
    for prefix in TIMEZONE_DATA:
        digits = f"{prefix}{'5' * 12}"[:11]
        expected = phone_timezone.time_zones_for_number(phonenumbers.parse("+" + digits))
        if expected != (phone_timezone.UNKNOWN_TIMEZONE,):
            assert tuple(zone.key for zone in zones(digits)) == expected, digits


def test_the_zones_of_every_country_are_known_here() -> None:
    for region in phonenumbers.SUPPORTED_REGIONS:
        example = phonenumbers.example_number(region)
        assert example is not None
        assert zones(phonenumbers.format_number(example, phonenumbers.PhoneNumberFormat.E164)[1:]), region
