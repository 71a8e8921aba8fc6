"""A plan of a day is what the planner would do that day, hour by hour; so are the answers to "what if"."""

from collections import Counter
from dataclasses import replace
from itertools import accumulate, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchboard.domain.accounts import FOREVER
from switchboard.domain.day_plan import DayPlan, day_plan, finish, with_overrides
from switchboard.domain.forecast import forecast
from switchboard.domain.hours import ALWAYS, Hours, day_end, day_of, local
from switchboard.domain.messages import Waiting
from switchboard.domain.pacing import Verdict
from switchboard.domain.trust import STANDARD, Limits, Overrides, TrustLevel
from tests.support.paced import DAY, HOUR, JERUSALEM, MINUTE, MeanRandom, PacedAccount, account, moment, policy

MIDNIGHT = moment("2026-01-15 00:00")
HOT = STANDARD[TrustLevel.HOT]
ENDLESS = replace(HOT, daily=10**9)
LORD_HOWE = ZoneInfo("Australia/Lord_Howe")
HAVANA = ZoneInfo("America/Havana")


def handed_over(plan: DayPlan, zone: ZoneInfo = JERUSALEM) -> dict[str, int]:
    """The hours in which anything leaves, as the clock there shows them."""
    shown = [f"{local(start, zone):%H:%M}" for start in plan.hour_starts]
    return {hour: count for hour, count in zip(shown, plan.by_hour, strict=True) if count}


# By hand


@pytest.mark.parametrize(("level", "opens", "daily"), [("cold", 9, 20), ("warm", 8, 100), ("hot", 7, 500)])
def test_a_standard_day_is_spent_in_its_first_hour(level: str, opens: int, daily: int) -> None:
    plan = day_plan(STANDARD[TrustLevel(level)], JERUSALEM, MIDNIGHT)
    assert handed_over(plan) == {f"{opens:02}:00": daily}
    assert plan.first_at == MIDNIGHT + opens * HOUR
    assert (plan.total, plan.limited_by) == (daily, "daily")


def test_without_a_daily_limit_the_delay_sets_the_pace_while_it_is_open() -> None:
    plan = day_plan(replace(ENDLESS, hours=Hours.parse("07:00-09:30")), JERUSALEM, MIDNIGHT)
    assert handed_over(plan) == {"07:00": 1_200, "08:00": 1_200, "09:00": 600}
    assert (plan.total, plan.limited_by) == (3_000, "pace")
    assert plan.last_at == moment("2026-01-15 09:30") - 3_000


def test_a_minutes_limit_below_what_the_delay_allows_sets_the_pace() -> None:
    plan = day_plan(replace(ENDLESS, per_minute=2), JERUSALEM, MIDNIGHT)
    assert set(plan.by_hour) == {0, 120}


@pytest.mark.parametrize(("daily", "limited_by"), [(2_999, "daily"), (3_000, "daily"), (3_001, "pace")])
def test_the_daily_limit_is_what_limits_once_it_is_reached(daily: int, limited_by: str) -> None:
    plan = day_plan(replace(HOT, daily=daily, hours=Hours.parse("07:00-09:30")), JERUSALEM, MIDNIGHT)
    assert (plan.total, plan.limited_by) == (min(daily, 3_000), limited_by)


def test_without_a_delay_a_minute_that_has_begun_is_filled_at_once() -> None:
    at_once = Limits(10**9, 10, 0, 0, ALWAYS)
    assert day_plan(at_once, JERUSALEM, MIDNIGHT + DAY - 90_000).by_hour == (20,)


def test_hours_over_midnight_are_open_at_both_ends_of_the_day() -> None:
    plan = day_plan(replace(ENDLESS, hours=Hours.parse("22:00-02:00")), JERUSALEM, MIDNIGHT)
    assert handed_over(plan) == dict.fromkeys(("00:00", "01:00", "22:00", "23:00"), 1_200)
    spent_at_night = day_plan(replace(HOT, daily=1_300, hours=Hours.parse("22:00-02:00")), JERUSALEM, MIDNIGHT)
    assert handed_over(spent_at_night) == {"00:00": 1_200, "01:00": 100}


def test_what_was_sent_already_is_taken_off_the_day() -> None:
    plan = day_plan(HOT, JERUSALEM, MIDNIGHT, sent_already=480)
    assert (handed_over(plan), plan.limited_by) == ({"07:00": 20}, "daily")


@pytest.mark.parametrize("sent", [500, 501])
def test_nothing_leaves_on_a_day_that_is_spent(sent: int) -> None:
    plan = day_plan(HOT, JERUSALEM, MIDNIGHT, sent_already=sent)
    assert (plan.total, plan.first_at, plan.last_at, plan.limited_by) == (0, None, None, "daily")
    assert plan.by_hour == (0,) * 24


def test_what_is_left_of_a_day_can_be_planned_too() -> None:
    plan = day_plan(ENDLESS, JERUSALEM, moment("2026-01-15 21:45"))
    assert handed_over(plan) == {"21:45": 300, "22:00": 1_200}
    assert len(plan.by_hour) == 3


@pytest.mark.parametrize(
    ("day", "zone", "hours", "total"),
    [
        ("2026-03-27 00:00", JERUSALEM, 23, 23 * 1_200),
        ("2026-10-25 00:00", JERUSALEM, 25, 25 * 1_200),
        ("2026-10-04 00:00", LORD_HOWE, 24, 23 * 1_200 + 600),
        ("2026-04-05 00:00", LORD_HOWE, 25, 24 * 1_200 + 600),
        ("2026-03-08 01:00", HAVANA, 23, 23 * 1_200),
        ("2026-11-01 00:00", HAVANA, 25, 25 * 1_200),
    ],
)
def test_a_day_on_which_clocks_are_moved_has_the_hours_it_has(day: str, zone: ZoneInfo, hours: int, total: int) -> None:
    plan = day_plan(replace(ENDLESS, hours=ALWAYS), zone, moment(day, zone))
    assert (len(plan.by_hour), plan.total) == (hours, total)


# Against the planner itself


@st.composite
def some_days(draw: st.DrawFn) -> tuple[Limits, ZoneInfo, int, int]:
    opens, closes = draw(st.sampled_from([(0, 24), (9, 21), (7, 23), (22, 6), (0, 1), (2, 3), (1, 0)]))
    limits = Limits(
        daily=draw(st.integers(1, 20) | st.integers(50, 600)),
        per_minute=draw(st.integers(1, 30)),
        base_delay_ms=draw(st.integers(0, 20_000) | st.integers(60_000, 2 * HOUR)),
        jitter_ms=draw(st.integers(0, 10_000)),
        hours=Hours(opens * 60, closes * 60 + draw(st.integers(0, 59)) * (closes < 24)),
        centred=draw(st.booleans()),
    )
    zone, eve = draw(
        st.sampled_from(
            [
                (JERUSALEM, "2026-03-26"),
                (JERUSALEM, "2026-10-24"),
                (LORD_HOWE, "2026-04-04"),
                (HAVANA, "2026-03-07"),
                (ZoneInfo("Asia/Kolkata"), "2026-06-01"),
            ]
        )
    )
    first = day_end(moment(f"{eve} 12:00", zone) - draw(st.integers(0, 1)) * DAY, zone)
    return limits, zone, first + draw(st.just(0) | st.integers(0, 12 * HOUR)), draw(st.just(0) | st.integers(0, 30))


@settings(deadline=None)
@given(some_days())
def test_every_hour_holds_what_a_run_of_the_planner_hands_over_in_it(drawn: tuple[Limits, ZoneInfo, int, int]) -> None:
    limits, zone, start, sent = drawn
    plan, ends_at = day_plan(limits, zone, start, sent), day_end(start, zone)
    known = replace(account(0, zone), day_ends_at=ends_at, day_count=sent)
    run: list[int] = []
    for at in PacedAccount(policy(limits), known, MeanRandom()).hand_overs(start):
        if at >= ends_at:
            break
        run.append(at)
    bounds = (*plan.hour_starts, ends_at)
    assert plan.by_hour == tuple(sum(begin <= at < end for at in run) for begin, end in pairwise(bounds))
    assert (plan.total, plan.first_at, plan.last_at) == (len(run), run[0] if run else None, run[-1] if run else None)
    assert (plan.limited_by == "daily") == (len(run) == max(0, limits.daily - sent))


@settings(deadline=None)
@given(some_days(), st.integers(1, 700))
def test_a_position_is_forecast_within_the_hour_the_plan_puts_it_in(
    drawn: tuple[Limits, ZoneInfo, int, int], position: int
) -> None:
    limits, zone, start, sent = drawn
    plan, ends_at = day_plan(limits, zone, start, sent), day_end(start, zone)
    known = replace(account(0, zone), day_ends_at=ends_at, day_count=sent)
    at = forecast(policy(limits), known, position, start).at
    if position > plan.total:
        assert at is None or at >= ends_at
        return
    hour = next(hour for hour, done in enumerate(accumulate(plan.by_hour)) if done >= position)
    assert at is not None
    assert plan.hour_starts[hour] <= at < (*plan.hour_starts, ends_at)[hour + 1]


@given(some_days())
def test_the_hours_are_those_of_a_clock_on_the_wall(drawn: tuple[Limits, ZoneInfo, int, int]) -> None:
    limits, zone, start, _ = drawn
    plan = day_plan(limits, zone, start)
    assert plan.hour_starts[0] == start
    assert len(plan.by_hour) == len(plan.hour_starts) <= 25
    assert {day_of(at, zone) for at in plan.hour_starts} == {day_of(start, zone)}
    shown = Counter((local(at, zone).hour, local(at, zone).utcoffset()) for at in plan.hour_starts)
    assert set(shown.values()) == {1}


# What if


def test_a_queue_is_done_when_its_last_message_leaves() -> None:
    ten, known = moment("2026-01-15 10:00"), account(0)
    assert finish(policy(), known, 11, ten) == Verdict(ten + 30_000, Waiting.DELAY)
    assert finish(policy(), known, 501, ten) == Verdict(moment("2026-01-16 07:00"), Waiting.DAILY_LIMIT)


def test_an_empty_queue_is_done_now_even_for_an_account_that_is_paused() -> None:
    assert finish(policy(), replace(account(0), paused_until=FOREVER), 0, MIDNIGHT) == Verdict(MIDNIGHT, None)


def test_other_limits_are_tried_on_the_account_as_it_is_now() -> None:
    ten = moment("2026-01-15 10:00")
    known = replace(
        account(0, overrides=Overrides(daily=7)), day_count=2, day_ends_at=MIDNIGHT + DAY, not_before=ten + 5_000
    )
    slower = with_overrides(known, Overrides(base_delay_ms=MINUTE, jitter_ms=0))
    assert slower == replace(known, profile=slower.profile)
    assert slower.profile.overrides == Overrides(base_delay_ms=MINUTE, jitter_ms=0)
    assert finish(policy(), known, 6, ten) == Verdict(moment("2026-01-16 07:00"), Waiting.DAILY_LIMIT)
    assert finish(policy(), slower, 6, ten) == Verdict(ten + 5_000 + 5 * MINUTE, Waiting.DELAY)
