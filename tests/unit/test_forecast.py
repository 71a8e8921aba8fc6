"""The estimate is a real one: it lands where a step-by-step run of the planner with mean delays lands."""

from dataclasses import replace
from itertools import islice
from random import Random
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from switchboard.domain import forecast as walk
from switchboard.domain.accounts import FOREVER, Account, Profile
from switchboard.domain.forecast import forecast
from switchboard.domain.hours import Hours, day_of
from switchboard.domain.messages import Waiting
from switchboard.domain.pacing import Policy, Verdict, earliest
from switchboard.domain.trust import Limits, TrustLevel, TrustTable
from tests.support.paced import (
    DAY,
    HOUR,
    JERUSALEM,
    MINUTE,
    PATIENT,
    MeanRandom,
    PacedAccount,
    account,
    moment,
    policy,
)

TEN = moment("2026-01-15 10:00")
COLD, WARM, HOT = account(TEN), account(TEN - 5 * DAY), account(TEN - 30 * DAY)
ALL_DAY = Hours.parse("00:00-24:00")
STANDARD_POLICY = policy()
PATIENTLY = settings(deadline=None)


def simulated(rules: Policy, known: Account, position: int, now: int) -> int:
    return next(islice(PacedAccount(rules, known, MeanRandom()).hand_overs(now), position - 1, None))


# By hand


def test_the_next_message_leaves_when_the_account_may_send() -> None:
    assert forecast(STANDARD_POLICY, HOT, 1, TEN) == Verdict(TEN, None)
    busy = replace(HOT, not_before=TEN + 1_500)
    assert forecast(STANDARD_POLICY, busy, 1, TEN) == Verdict(TEN + 1_500, Waiting.DELAY)


def test_those_behind_it_follow_at_the_mean_delay() -> None:
    assert forecast(STANDARD_POLICY, HOT, 11, TEN) == Verdict(TEN + 10 * 3_000, Waiting.DELAY)
    assert forecast(STANDARD_POLICY, WARM, 11, TEN) == Verdict(TEN + 10 * 4_000, Waiting.DELAY)


def test_a_full_minute_holds_the_next_one_until_the_first_is_a_minute_old() -> None:
    assert forecast(STANDARD_POLICY, COLD, 5, TEN) == Verdict(TEN + 4 * 6_500, Waiting.DELAY)
    assert forecast(STANDARD_POLICY, COLD, 6, TEN) == Verdict(TEN + MINUTE, Waiting.MINUTE_LIMIT)
    assert forecast(STANDARD_POLICY, COLD, 7, TEN) == Verdict(TEN + MINUTE + 6_500, Waiting.MINUTE_LIMIT)


def test_what_left_in_the_last_minute_counts() -> None:
    known = replace(COLD, recent=(TEN - 1_000, TEN - 2_000, TEN - 3_000, TEN - 4_000, TEN - 5_000))
    assert forecast(STANDARD_POLICY, known, 1, TEN) == Verdict(TEN + 55_000, Waiting.MINUTE_LIMIT)


def test_beyond_the_days_limit_it_is_tomorrow_and_the_limit_is_why() -> None:
    tomorrow = moment("2026-01-16 08:00")
    assert day_of(forecast(STANDARD_POLICY, WARM, 100, TEN).at or 0, JERUSALEM) == "2026-01-15"
    assert forecast(STANDARD_POLICY, WARM, 101, TEN) == Verdict(tomorrow, Waiting.DAILY_LIMIT)
    assert forecast(STANDARD_POLICY, WARM, 103, TEN) == Verdict(tomorrow + 8_000, Waiting.DAILY_LIMIT)


def test_what_was_sent_today_is_taken_off_the_allowance() -> None:
    known = replace(WARM, day_count=99, day_ends_at=moment("2026-01-16 00:00"))
    assert forecast(STANDARD_POLICY, known, 1, TEN).at == TEN
    assert forecast(STANDARD_POLICY, known, 2, TEN).at == moment("2026-01-16 08:00")


def test_what_does_not_fit_before_closing_time_leaves_at_the_next_opening_and_the_hours_are_why() -> None:
    closing = moment("2026-01-15 22:00")
    assert forecast(STANDARD_POLICY, WARM, 3, closing - 10_000) == Verdict(closing - 2_000, Waiting.DELAY)
    opening = moment("2026-01-16 08:00")
    assert forecast(STANDARD_POLICY, WARM, 4, closing - 10_000) == Verdict(opening, Waiting.HOURS)
    assert forecast(STANDARD_POLICY, WARM, 5, closing - 10_000) == Verdict(opening + 4_000, Waiting.HOURS)


def test_a_burst_doubles_the_time_between_messages_until_it_is_spread() -> None:
    spread = replace(HOT, burst_until=TEN + 60_000)
    assert forecast(STANDARD_POLICY, spread, 11, TEN).at == TEN + 10 * 6_000
    assert forecast(STANDARD_POLICY, spread, 21, TEN).at == TEN + 10 * 6_000 + 10 * 3_000


def test_a_burst_lets_fewer_fit_before_closing_time() -> None:
    at = moment("2026-01-15 22:59")
    assert day_of(forecast(STANDARD_POLICY, HOT, 20, at).at or 0, JERUSALEM) == "2026-01-15"
    spread = replace(HOT, burst_until=at + HOUR)
    assert day_of(forecast(STANDARD_POLICY, spread, 11, at).at or 0, JERUSALEM) == "2026-01-16"


def test_an_account_that_grows_warm_on_the_way_sends_more_from_then_on() -> None:
    """Linked at ten: 20 a day for three days, 20 more on the fourth morning, and 80 from ten o'clock on."""
    days = {position: forecast(STANDARD_POLICY, COLD, position, TEN).at or 0 for position in (60, 61, 81, 160, 161)}
    assert day_of(days[60], JERUSALEM) == "2026-01-17"
    assert days[61] == moment("2026-01-18 09:00")
    assert days[81] == moment("2026-01-18 10:00")
    assert day_of(days[160], JERUSALEM) == "2026-01-18"
    assert days[161] == moment("2026-01-19 08:00")


def test_an_account_that_grows_hot_between_two_messages_goes_on_faster() -> None:
    known = account(TEN + 40_000 - 14 * DAY)
    assert forecast(STANDARD_POLICY, known, 11, TEN).at == TEN + 10 * 4_000
    assert forecast(STANDARD_POLICY, known, 21, TEN).at == TEN + 10 * 4_000 + 10 * 3_000


def test_a_message_whose_turn_would_come_at_closing_time_waits_for_the_opening() -> None:
    closing, opening = moment("2026-01-15 23:00"), moment("2026-01-16 07:00")
    for position in range(200, 300):
        started = closing - (position - 1) * 3_000
        assert forecast(STANDARD_POLICY, HOT, position, started) == Verdict(opening, Waiting.HOURS)
        assert forecast(STANDARD_POLICY, HOT, position - 1, started) == Verdict(closing - 3_000, Waiting.DELAY)


def test_a_pause_is_the_reason_for_all_that_wait_behind_it() -> None:
    paused = replace(HOT, paused_until=TEN + 30 * MINUTE)
    assert forecast(STANDARD_POLICY, paused, 5, TEN) == Verdict(TEN + 30 * MINUTE + 12_000, Waiting.PAUSED)


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        (replace(HOT, connected=()), Waiting.DISCONNECTED),
        (replace(HOT, paused_until=FOREVER), Waiting.PAUSED),
        (replace(HOT, restricted_until=FOREVER), Waiting.RESTRICTED),
    ],
)
def test_nobody_can_tell_when_it_depends_on_a_person_or_a_worker(known: Account, reason: Waiting) -> None:
    assert forecast(STANDARD_POLICY, known, 5, TEN) == Verdict(None, reason)


def test_a_message_that_is_many_years_off_has_no_honest_estimate() -> None:
    once_a_day = policy(Limits(1, 1, 0, 0, ALL_DAY))
    assert forecast(once_a_day, HOT, 365, TEN).at is not None
    assert forecast(once_a_day, HOT, 100_000, TEN) == Verdict(None, Waiting.DAILY_LIMIT)


# Cost


def test_the_walk_goes_by_days_and_not_by_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []

    def counted(rules: Policy, known: Account, now: int) -> Verdict:
        looks.append(now)
        return earliest(rules, known, now)

    monkeypatch.setattr(walk, "earliest", counted)
    leaves = forecast(STANDARD_POLICY, COLD, 1_000, TEN).at
    assert leaves is not None
    assert len(looks) <= (leaves - TEN) // DAY + 4


def test_within_a_day_it_leaps_over_as_many_messages_as_there_are() -> None:
    a_day = 24 * 60 * 500
    midnight = moment("2026-01-15 00:00")
    fast = policy(Limits(10**9, 500, 1, 0, ALL_DAY))
    assert forecast(fast, HOT, 1 + 300 * a_day, midnight).at == midnight + 300 * DAY


# Against the planner itself


PLACES = [
    (JERUSALEM, "2026-03-26"),
    (ZoneInfo("America/New_York"), "2026-10-31"),
    (ZoneInfo("Australia/Lord_Howe"), "2026-04-04"),
    (ZoneInfo("America/Havana"), "2026-03-07"),
    (ZoneInfo("Asia/Kolkata"), "2026-06-01"),
]
"""Places, and the day before their clocks are moved."""


@st.composite
def some_limits(draw: st.DrawFn) -> Limits:
    opens, closes = draw(st.sampled_from([(0, 24), (9, 21), (7, 23), (22, 6), (0, 1), (2, 3)]))
    return Limits(
        daily=draw(st.integers(1, 20) | st.integers(50, 5_000)),
        per_minute=draw(st.integers(1, 30)),
        base_delay_ms=draw(st.integers(0, 20_000)),
        jitter_ms=draw(st.integers(0, 10_000)),
        hours=Hours(opens * 60, closes * 60),
        centred=draw(st.booleans()),
    )


@st.composite
def some_accounts(draw: st.DrawFn) -> tuple[Policy, Account, int]:
    """Limits at random for each level, and an account in the middle of its day that may be about to grow."""
    zone, eve = draw(st.sampled_from(PLACES))
    start = moment(f"{eve} 00:00", zone) + draw(st.integers(0, 2 * DAY))
    age = draw(st.sampled_from([0, 3 * DAY, 14 * DAY, 30 * DAY])) - draw(st.integers(0, 30 * HOUR))
    table = TrustTable({level: draw(some_limits()) for level in TrustLevel})
    fresh = Account(
        Profile("972501234567", 1, start - age, zone),
        connected=("worker_1",),
        paused_until=draw(st.just(0) | st.integers(start, start + 2 * HOUR)),
        burst_until=draw(st.just(0) | st.integers(start, start + 2 * HOUR)),
    )
    rules = Policy(table, PATIENT)
    paced = PacedAccount(rules, fresh, MeanRandom())
    sent_before = draw(st.integers(0, 40))
    now = next(islice(paced.hand_overs(start), sent_before, None)) + draw(st.integers(0, 30_000))
    return rules, paced.account, now


@PATIENTLY
@given(some_accounts(), st.integers(1, 250))
def test_it_lands_exactly_where_a_run_of_the_planner_lands(drawn: tuple[Policy, Account, int], position: int) -> None:
    rules, known, now = drawn
    assert forecast(rules, known, position, now).at == simulated(rules, known, position, now)


@pytest.mark.parametrize(("known", "position"), [(COLD, 20), (WARM, 100), (HOT, 500)])
@pytest.mark.parametrize("seed", range(5))
def test_a_real_day_with_random_delays_ends_close_to_the_estimate(known: Account, position: int, seed: int) -> None:
    expected = forecast(STANDARD_POLICY, known, position, TEN).at
    paced = PacedAccount(STANDARD_POLICY, known, Random(seed))
    actual = next(islice(paced.hand_overs(TEN), position - 1, None))
    assert expected is not None
    assert abs(actual - expected) < 0.05 * (actual - TEN) + MINUTE


@PATIENTLY
@given(some_accounts(), st.integers(1, 1_000), st.integers(1, 100))
def test_a_later_position_never_leaves_earlier(drawn: tuple[Policy, Account, int], position: int, behind: int) -> None:
    rules, known, now = drawn
    sooner, later = (forecast(rules, known, place, now).at for place in (position, position + behind))
    assume(later is not None)
    assert sooner is not None
    assert later is not None
    assert now <= sooner <= later


@PATIENTLY
@given(some_accounts(), st.integers(1, 1_000))
def test_it_is_never_earlier_than_the_account_may_send(drawn: tuple[Policy, Account, int], position: int) -> None:
    rules, known, now = drawn
    first, expected = earliest(rules, known, now).at, forecast(rules, known, position, now).at
    assert first is not None
    assert expected is None or expected >= first


@PATIENTLY
@given(st.sampled_from([COLD, WARM, HOT]), st.integers(2, 2_000), st.integers(0, 3 * DAY))
def test_whoever_leaves_on_a_later_day_is_held_by_the_days_limit_or_the_hours(
    known: Account, position: int, later: int
) -> None:
    now = TEN + later
    verdict = forecast(STANDARD_POLICY, known, position, now)
    assert verdict.at is not None
    today = day_of(verdict.at, JERUSALEM) == day_of(now, JERUSALEM)
    assert today or verdict.reason in {Waiting.DAILY_LIMIT, Waiting.HOURS}
