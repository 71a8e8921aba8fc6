"""People are written to at a decent hour of their own, and no more than three times a day by the whole fleet."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import phonenumbers
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchboard.domain.hours import Hours
from switchboard.domain.messages import Waiting
from switchboard.domain.phones import zones
from switchboard.domain.recipients import RecipientRules, day_end, earliest
from tests.support.paced import DAY, HOUR, JERUSALEM, MINUTE, moment

RULES = RecipientRules()
PATIENTLY = settings(deadline=None)
LONDON, TOKYO, NEW_YORK = ZoneInfo("Europe/London"), ZoneInfo("Asia/Tokyo"), ZoneInfo("America/New_York")
NOON = moment("2026-01-15 12:00")
MIDNIGHT = moment("2026-01-16 00:00")


def test_the_numbers() -> None:
    assert RecipientRules(daily_cap=3, hours=Hours.parse("08:00-22:00")) == RULES


@pytest.mark.parametrize(("time", "opens"), [("07:59", "08:00"), ("08:00", "08:00"), ("21:59", "21:59")])
def test_hours_are_eight_to_ten_in_the_recipients_zone(time: str, opens: str) -> None:
    at, expected = moment(f"2026-01-15 {time}", TOKYO), moment(f"2026-01-15 {opens}", TOKYO)
    reason = Waiting.RECIPIENT_HOURS if expected > at else None
    assert earliest(RULES, [TOKYO], 0, 0, at) == (expected, reason)


def test_after_ten_at_night_they_are_left_alone_until_the_morning() -> None:
    at, morning = moment("2026-01-15 22:00", TOKYO), moment("2026-01-16 08:00", TOKYO)
    assert earliest(RULES, [TOKYO], 0, 0, at) == (morning, Waiting.RECIPIENT_HOURS)


def test_after_three_messages_the_cap_holds_until_the_next_morning() -> None:
    assert earliest(RULES, [JERUSALEM], 2, MIDNIGHT, NOON) == (NOON, None)
    assert earliest(RULES, [JERUSALEM], 3, MIDNIGHT, NOON) == (MIDNIGHT + 8 * HOUR, Waiting.RECIPIENT_CAP)


def test_yesterdays_messages_do_not_count() -> None:
    assert earliest(RULES, [JERUSALEM], 3, NOON, NOON) == (NOON, None)


def test_at_night_it_is_the_hours_that_hold_and_not_the_cap() -> None:
    late = MIDNIGHT - HOUR
    assert earliest(RULES, [JERUSALEM], 3, MIDNIGHT, late) == (MIDNIGHT + 8 * HOUR, Waiting.RECIPIENT_HOURS)


def test_a_number_that_may_be_in_two_zones_is_written_to_when_both_are_awake() -> None:
    at = moment("2026-01-15 09:00", LONDON)
    both_awake = moment("2026-01-15 08:00", NEW_YORK)
    assert earliest(RULES, [LONDON, NEW_YORK], 0, 0, at) == (both_awake, Waiting.RECIPIENT_HOURS)


def test_where_no_hour_suits_every_zone_the_first_one_decides() -> None:
    apart = [TOKYO, ZoneInfo("America/Sao_Paulo")]  # twelve hours: 08:00-10:00 here is 20:00-22:00 there
    narrow = RecipientRules(hours=Hours.parse("09:00-17:00"))
    at = moment("2026-01-15 03:00", TOKYO)
    assert earliest(narrow, apart, 0, 0, at) == (moment("2026-01-15 09:00", TOKYO), Waiting.RECIPIENT_HOURS)


def test_a_number_whose_zone_nobody_knows_has_no_hours() -> None:
    assert earliest(RULES, [], 0, 0, MIDNIGHT) == (MIDNIGHT, None)


def test_the_day_of_a_recipient_ends_in_their_own_zone_or_else_in_the_accounts() -> None:
    assert day_end([TOKYO], JERUSALEM, NOON) == moment("2026-01-16 00:00", TOKYO)
    assert day_end([], JERUSALEM, NOON) == MIDNIGHT


def zones_of_every_country() -> list[tuple[ZoneInfo, ...]]:
    found = {zones(f"{code}912345678") for code in (1, 7, 44, 55, 61, 62)}
    for region in phonenumbers.SUPPORTED_REGIONS:
        if example := phonenumbers.example_number(region):
            found.add(zones(phonenumbers.format_number(example, phonenumbers.PhoneNumberFormat.E164)[1:]))
    return sorted(found, key=str)


@PATIENTLY
@given(st.sampled_from(zones_of_every_country()), st.integers(0, 400 * DAY))
def test_it_is_the_first_quarter_of_an_hour_that_suits_every_zone_if_any_does(
    where: tuple[ZoneInfo, ...], later: int
) -> None:
    at = NOON + later - later % (15 * MINUTE)
    quarters = range(at, at + 2 * DAY, 15 * MINUTE)
    suits = (quarter for quarter in quarters if all(is_a_decent_hour(quarter, zone) for zone in where))
    expected = next(suits, None) or earliest(RULES, where[:1], 0, 0, at)[0]
    assert earliest(RULES, where, 0, 0, at)[0] == expected


def is_a_decent_hour(at: int, zone: ZoneInfo) -> bool:
    return 8 <= datetime.fromtimestamp(at // 1000, UTC).astimezone(zone).hour < 22
