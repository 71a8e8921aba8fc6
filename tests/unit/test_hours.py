"""Days and hours are what a clock on the wall shows, also on the days when it is moved."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchboard.domain.hours import ALWAYS, Hours, day_end, day_of, is_open, next_close, next_open
from tests.support.paced import DAY, HOUR, MINUTE, moment

JERUSALEM, BERLIN, NEW_YORK = ZoneInfo("Asia/Jerusalem"), ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York")
LORD_HOWE = ZoneInfo("Australia/Lord_Howe")  # moves its clocks by half an hour
KOLKATA = ZoneInfo("Asia/Kolkata")  # half an hour off, and never moves them
HAVANA = ZoneInfo("America/Havana")  # moves them at midnight
NUUK = ZoneInfo("America/Nuuk")  # skips the last hour of a Saturday
TROLL = ZoneInfo("Antarctica/Troll")  # moves them by two hours
PATIENTLY = settings(deadline=None)
UTC_ZONE = ZoneInfo("UTC")
ZONES = [JERUSALEM, BERLIN, NEW_YORK, LORD_HOWE, KOLKATA, HAVANA, NUUK, TROLL, UTC_ZONE] + [
    ZoneInfo(name)
    for name in ("Africa/Cairo", "Africa/Casablanca", "America/Santiago", "Asia/Beirut", "Pacific/Chatham")
]


def wall(at: int, zone: ZoneInfo) -> str:
    """What the clock on the wall shows, found without the code under test."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at)).astimezone(zone).isoformat()[:16]


def shows_open(at: int, hours: str, zone: ZoneInfo) -> bool:
    opens, closes = hours.split("-")
    time = wall(at, zone)[11:]
    return opens <= time < closes if opens < closes else time >= opens or time < closes


def opening(at: str, hours: str, zone: ZoneInfo) -> str:
    return wall(next_open(moment(at, zone), Hours.parse(hours), zone), zone)


@pytest.mark.parametrize("text", ["07:00-23:00", "22:00-06:00", "00:00-24:00", "09:30-24:00", "10:00-00:00"])
def test_hours_are_read_and_written_in_one_form(text: str) -> None:
    assert str(Hours.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        *("7-23", "07:00", "7:00-23:00", "07.00-23.00", "07:00–23:00", "07:60-23:00", "07:00-23:60"),
        *("24:00-07:00", "07:00-24:01", "09:00-09:00", "00:00-00:00", "24:00-24:00"),
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="hours"):
        Hours.parse(text)


def test_nothing_may_stand_around_them() -> None:
    for text in ("", " 07:00-23:00", "07:00-23:00 ", "07:00-23:00\n"):
        with pytest.raises(ValueError, match="hours"):
            Hours.parse(text)


def test_hours_include_their_opening_and_not_their_closing() -> None:
    hours = Hours.parse("09:00-21:00")
    for time, expected in [("08:59:59.999", False), ("09:00", True), ("20:59:59.999", True), ("21:00", False)]:
        assert is_open(moment(f"2026-01-15 {time}"), hours, JERUSALEM) is expected


def test_hours_may_run_over_midnight() -> None:
    hours = Hours.parse("22:00-06:00")
    for time, expected in [("21:59", False), ("22:00", True), ("00:00", True), ("05:59", True), ("06:00", False)]:
        assert is_open(moment(f"2026-01-15 {time}"), hours, JERUSALEM) is expected
    assert opening("2026-01-15 06:00", "22:00-06:00", JERUSALEM) == "2026-01-15T22:00"
    closes = next_close(moment("2026-01-15 23:00"), hours, JERUSALEM)
    assert closes == moment("2026-01-16 06:00")


def test_always_is_always_open_and_never_closes() -> None:
    at = moment("2026-01-15 00:00")
    assert Hours.parse("00:00-24:00") == ALWAYS
    assert next_open(at, ALWAYS, JERUSALEM) == at
    assert next_close(at, ALWAYS, JERUSALEM) is None


def test_outside_the_hours_the_next_opening_is_today_or_tomorrow() -> None:
    assert opening("2026-01-15 03:00", "09:00-21:00", JERUSALEM) == "2026-01-15T09:00"
    assert opening("2026-01-15 12:34", "09:00-21:00", JERUSALEM) == "2026-01-15T12:34"
    assert opening("2026-01-15 21:00", "09:00-21:00", JERUSALEM) == "2026-01-16T09:00"


@pytest.mark.parametrize(
    ("zone", "day", "length"),
    [
        (JERUSALEM, "2026-03-27", 23 * HOUR),
        (JERUSALEM, "2026-10-25", 25 * HOUR),
        (BERLIN, "2026-03-29", 23 * HOUR),
        (BERLIN, "2026-10-25", 25 * HOUR),
        (NEW_YORK, "2026-03-08", 23 * HOUR),
        (NEW_YORK, "2026-11-01", 25 * HOUR),
        (LORD_HOWE, "2026-10-04", 23 * HOUR + 30 * MINUTE),
        (LORD_HOWE, "2026-04-05", 24 * HOUR + 30 * MINUTE),
        (KOLKATA, "2026-03-29", 24 * HOUR),
        (HAVANA, "2026-03-08", 23 * HOUR),
        (HAVANA, "2026-11-01", 25 * HOUR),
        (TROLL, "2026-03-29", 22 * HOUR),
    ],
)
def test_a_day_is_as_long_as_the_clock_makes_it(zone: ZoneInfo, day: str, length: int) -> None:
    noon = moment(f"{day} 12:00", zone)
    end = day_end(noon, zone)
    start = day_end(noon - DAY, zone)
    assert day_of(start, zone) == day_of(end - 1, zone) == day
    assert day_end(start, zone) == day_end(end - 1, zone) == end
    assert end - start == length


@pytest.mark.parametrize(
    ("zone", "eve"),
    [
        (JERUSALEM, "2026-03-26"),
        (JERUSALEM, "2026-10-24"),
        (BERLIN, "2026-03-28"),
        (BERLIN, "2026-10-24"),
        (NEW_YORK, "2026-03-07"),
        (NEW_YORK, "2026-10-31"),
        (LORD_HOWE, "2026-10-03"),
        (LORD_HOWE, "2026-04-04"),
    ],
)
def test_the_opening_stays_at_nine_on_the_wall_when_clocks_are_moved(zone: ZoneInfo, eve: str) -> None:
    opens_at = next_open(moment(f"{eve} 21:00", zone), Hours.parse("09:00-21:00"), zone)
    assert wall(opens_at, zone)[11:] == "09:00"
    assert opens_at - moment(f"{eve} 21:00", zone) != 12 * HOUR


def test_hours_that_open_in_a_skipped_hour_open_when_it_is_over() -> None:
    assert opening("2026-03-29 01:00", "02:30-20:00", BERLIN) == "2026-03-29T03:00"


def test_hours_that_lie_in_a_skipped_hour_are_skipped_that_day() -> None:
    assert opening("2026-03-29 01:00", "02:15-02:45", BERLIN) == "2026-03-30T02:15"


def test_hours_in_an_hour_that_is_shown_twice_open_twice() -> None:
    hours = Hours.parse("02:15-02:45")
    first = next_open(moment("2026-10-25 01:00", BERLIN), hours, BERLIN)
    assert next_close(first, hours, BERLIN) == first + 30 * MINUTE
    assert next_open(first + 30 * MINUTE, hours, BERLIN) == first + HOUR


def test_a_day_that_a_country_skipped_is_skipped() -> None:
    apia = ZoneInfo("Pacific/Apia")
    end = day_end(moment("2011-12-29 12:00", apia), apia)
    assert day_of(end, apia) == "2011-12-31"


def test_a_clock_that_went_back_past_midnight_still_has_its_midnight_ahead() -> None:
    st_johns = ZoneInfo("America/St_Johns")  # until 2011, a minute after midnight
    again = moment("2010-11-06 23:30", st_johns) + HOUR
    assert wall(again, st_johns) == "2010-11-06T23:30"
    assert day_end(again, st_johns) == again + 30 * MINUTE


@cache
def clock_changes(zone: ZoneInfo) -> list[int]:
    def found() -> Iterator[int]:
        start = datetime(2024, 1, 1, tzinfo=UTC)
        for hour in range(0, 4 * 365 * 24, 6):
            low, high = start + timedelta(hours=hour), start + timedelta(hours=hour + 6)
            if low.astimezone(zone).utcoffset() != high.astimezone(zone).utcoffset():
                yield round(high.timestamp() * 1000) - 3 * HOUR

    return list(found())


@st.composite
def places_and_moments(draw: st.DrawFn) -> tuple[ZoneInfo, int]:
    """Anywhere, any time; half of the time close to a change of the clocks."""
    zone = draw(st.sampled_from(ZONES))
    anchors = clock_changes(zone) if draw(st.booleans()) else []
    anchor = draw(st.sampled_from(anchors)) if anchors else moment("2026-01-01", UTC_ZONE)
    reach = 2 * DAY if anchors else 3650 * DAY
    return zone, anchor + draw(st.integers(-reach, reach) | st.integers(-48, 48).map(lambda n: n * 30 * MINUTE))


@st.composite
def spans(draw: st.DrawFn) -> str:
    minutes = st.integers(0, 1439) | st.integers(0, 47).map(lambda n: n * 30)
    opens, closes = draw(st.tuples(minutes, minutes | st.just(1440)).filter(lambda span: span[0] != span[1]))
    return str(Hours(opens, closes))


def minutes_between(start: int, end: int) -> Iterator[int]:
    return iter(range(start - start % MINUTE + MINUTE, end, MINUTE))


@PATIENTLY
@given(places_and_moments(), spans())
def test_open_is_what_the_wall_clock_says(where: tuple[ZoneInfo, int], hours: str) -> None:
    zone, at = where
    assert is_open(at, Hours.parse(hours), zone) is shows_open(at, hours, zone)


@PATIENTLY
@given(places_and_moments(), spans())
def test_the_next_opening_is_open_and_nothing_before_it_is(where: tuple[ZoneInfo, int], hours: str) -> None:
    zone, at = where
    opens_at = next_open(at, Hours.parse(hours), zone)
    assert opens_at >= at
    assert shows_open(opens_at, hours, zone)
    if opens_at > at:
        closed = [at, opens_at - 1, *minutes_between(at, opens_at)]
        assert not any(shows_open(before, hours, zone) for before in closed)


@PATIENTLY
@given(places_and_moments(), spans())
def test_the_next_closing_is_closed_and_everything_before_it_is_open(where: tuple[ZoneInfo, int], hours: str) -> None:
    zone, at = where
    at = next_open(at, Hours.parse(hours), zone)
    closes_at = next_close(at, Hours.parse(hours), zone)
    if closes_at is None:
        assert hours == "00:00-24:00"
        return
    assert closes_at > at
    assert not shows_open(closes_at, hours, zone)
    assert all(shows_open(before, hours, zone) for before in [closes_at - 1, *minutes_between(at, closes_at)])


@PATIENTLY
@given(places_and_moments())
def test_a_day_ends_when_the_date_on_the_wall_changes(where: tuple[ZoneInfo, int]) -> None:
    zone, at = where
    end = day_end(at, zone)
    assert end > at
    assert day_of(at, zone) == wall(at, zone)[:10]
    assert wall(end - 1, zone)[:10] == wall(at, zone)[:10] < wall(end, zone)[:10]
