"""What the planner decides for one account at one moment."""

from dataclasses import replace
from random import Random
from zoneinfo import ZoneInfo

import pytest

from switchboard.domain.accounts import FOREVER, Account, Head, InFlight
from switchboard.domain.hours import Hours
from switchboard.domain.messages import Waiting
from switchboard.domain.pacing import (
    Defer,
    Expire,
    HandOver,
    Plan,
    Policy,
    Recall,
    Wait,
    draw_delay,
    mean_delay,
    next_visit,
    plan,
    spare,
)
from switchboard.domain.recipients import RecipientRules
from switchboard.domain.trust import STANDARD, Overrides, TrustLevel
from tests.support.paced import (
    DAY,
    HOUR,
    MINUTE,
    MeanRandom,
    PacedAccount,
    account,
    head,
    moment,
    policy,
)

NOON = moment("2026-01-15 12:00")
COLD, WARM, HOT = account(NOON - 1 * DAY), account(NOON - 5 * DAY), account(NOON - 30 * DAY)
MIDNIGHT = moment("2026-01-16 00:00")
STANDARD_POLICY = policy()


def decide(
    known: Account,
    now: int = NOON,
    message: Head | None = None,
    in_flight: InFlight | None = None,
    rules: Policy = STANDARD_POLICY,
) -> Plan:
    return plan(rules, known, in_flight, message or head(), now, Random(7))


# A free account hands over


def test_a_free_account_hands_over_at_once() -> None:
    planned = decide(COLD)
    assert isinstance(planned, HandOver)
    assert (planned.message_id, planned.session) == ("m", "worker_1")
    assert (planned.daily, planned.per_minute) == (20, 5)
    assert (planned.day, planned.hour, planned.day_ends_at) == ("2026-01-15", 12, MIDNIGHT)
    assert NOON + 5_000 <= planned.not_before <= NOON + 8_000
    assert planned.lease_until == NOON + 60_000
    assert planned.recipient_day_ends_at == MIDNIGHT


def test_the_hand_over_carries_the_recipients_cap_and_the_end_of_their_day() -> None:
    planned = decide(
        COLD, message=head(to="61412345678"), rules=policy(recipients=RecipientRules(hours=Hours(0, 1440)))
    )
    assert isinstance(planned, HandOver)
    assert planned.recipient_cap == 3
    assert planned.recipient_day_ends_at != planned.day_ends_at


def test_a_message_keeps_its_session_while_that_one_is_connected() -> None:
    known = replace(COLD, connected=("worker_1", "worker_2"))
    kept = decide(known, message=head(session="worker_2"))
    assert isinstance(kept, HandOver)
    assert kept.session == "worker_2"


def test_another_session_of_the_account_steps_in_for_a_disconnected_one() -> None:
    other = decide(COLD, message=head(session="worker_9"))
    assert isinstance(other, HandOver)
    assert other.session == "worker_1"


@pytest.mark.parametrize(("known", "low", "high"), [(COLD, 5_000, 8_000), (WARM, 3_000, 5_000), (HOT, 2_000, 4_000)])
def test_delays_fill_the_range_of_the_level(known: Account, low: int, high: int) -> None:
    limits, random = STANDARD_POLICY.limits(known.profile, NOON), Random(1)
    delays = [draw_delay(STANDARD_POLICY, known, limits, NOON, random) for _ in range(1_000)]
    assert low <= min(delays) < low + 50
    assert high - 50 < max(delays) <= high
    assert mean_delay(STANDARD_POLICY, known, limits, NOON) == (low + high) // 2


def test_a_burst_doubles_the_delays_while_it_is_being_spread() -> None:
    limits = STANDARD_POLICY.limits(HOT.profile, NOON)
    spread = replace(HOT, burst_until=NOON)
    before, after = (draw_delay(STANDARD_POLICY, spread, limits, at, MeanRandom()) for at in (NOON - 1, NOON))
    assert (before, after) == (6_000, 3_000)


@pytest.mark.parametrize(("known", "threshold"), [(COLD, 15), (WARM, 45), (HOT, 90)])
def test_a_burst_is_more_than_three_minutes_worth_at_once(known: Account, threshold: int) -> None:
    assert STANDARD_POLICY.burst_threshold(known.profile, NOON) == threshold


# An account that may not send waits, and says for what


def test_it_waits_for_the_delay_after_the_last_message() -> None:
    assert decide(replace(COLD, not_before=NOON + 1)) == Wait(NOON + 1, Waiting.DELAY)


@pytest.mark.parametrize(("known", "per_minute"), [(COLD, 5), (WARM, 15), (HOT, 30)])
def test_it_waits_until_the_oldest_of_a_full_minute_is_a_minute_old(known: Account, per_minute: int) -> None:
    newest_first = tuple(NOON - 100 * n for n in range(per_minute))
    full = replace(known, recent=newest_first)
    assert decide(full) == Wait(newest_first[-1] + 60_000, Waiting.MINUTE_LIMIT)
    assert isinstance(decide(full, newest_first[-1] + 60_000), HandOver)
    assert isinstance(decide(replace(known, recent=newest_first[:-1])), HandOver)


def test_after_the_minutes_limit_was_lowered_only_the_newest_count() -> None:
    known = replace(account(0, overrides=Overrides(per_minute=2)), recent=(NOON - 5, NOON - 7, NOON - 9))
    assert decide(known) == Wait(NOON - 7 + 60_000, Waiting.MINUTE_LIMIT)


@pytest.mark.parametrize(("known", "daily"), [(WARM, 100), (HOT, 500)])
def test_it_waits_for_tomorrows_opening_once_the_day_is_spent(known: Account, daily: int) -> None:
    spent = replace(known, day_count=daily, day_ends_at=MIDNIGHT)
    opens_at = MIDNIGHT + (8 if known is WARM else 7) * HOUR
    assert decide(spent) == Wait(opens_at, Waiting.DAILY_LIMIT)
    assert isinstance(decide(replace(spent, day_count=daily - 1)), HandOver)
    assert isinstance(decide(spent, opens_at), HandOver)


def test_a_day_counts_until_its_own_end_only() -> None:
    night_owl = account(0, overrides=Overrides(hours=Hours.parse("00:00-24:00"), daily=1))
    spent = replace(night_owl, day_count=1, day_ends_at=MIDNIGHT)
    assert decide(spent, MIDNIGHT - 1) == Wait(MIDNIGHT, Waiting.DAILY_LIMIT)
    assert isinstance(decide(spent, MIDNIGHT), HandOver)


def test_outside_the_hours_it_waits_for_the_opening_and_nothing_is_refused() -> None:
    assert decide(COLD, moment("2026-01-15 08:59")) == Wait(moment("2026-01-15 09:00"), Waiting.HOURS)
    assert decide(COLD, moment("2026-01-15 21:00")) == Wait(moment("2026-01-16 09:00"), Waiting.HOURS)


def test_the_hours_are_those_of_the_accounts_own_zone() -> None:
    tokyo = ZoneInfo("Asia/Tokyo")
    assert decide(account(NOON, tokyo), moment("2026-01-15 21:00", tokyo)) == Wait(
        moment("2026-01-16 09:00", tokyo), Waiting.HOURS
    )


def test_at_night_a_spent_day_is_no_reason_because_the_hours_hold_longer() -> None:
    at = moment("2026-01-15 22:30")
    spent = replace(WARM, day_count=100, day_ends_at=MIDNIGHT)
    assert decide(spent, at) == Wait(MIDNIGHT + 8 * HOUR, Waiting.HOURS)


def test_a_delay_that_ends_after_closing_time_becomes_a_wait_for_the_hours() -> None:
    closing = moment("2026-01-15 21:00")
    late = replace(COLD, not_before=closing + 1_000)
    assert decide(late, closing - 1_000) == Wait(moment("2026-01-16 09:00"), Waiting.HOURS)


def test_a_spent_cold_account_goes_on_when_it_becomes_warm() -> None:
    warms_at = NOON + 3 * HOUR
    spent = replace(account(warms_at - 3 * DAY), day_count=20, day_ends_at=MIDNIGHT)
    assert decide(spent) == Wait(warms_at, Waiting.DAILY_LIMIT)
    assert isinstance(decide(spent, warms_at), HandOver)


def test_an_account_that_becomes_warm_at_night_opens_with_the_warm_hours() -> None:
    evening = moment("2026-01-15 21:30")
    known = account(evening + 6 * HOUR - 3 * DAY)
    assert decide(known, evening) == Wait(moment("2026-01-16 08:00"), Waiting.HOURS)


@pytest.mark.parametrize(
    ("field", "reason"), [("paused_until", Waiting.PAUSED), ("restricted_until", Waiting.RESTRICTED)]
)
def test_a_held_account_waits_until_the_hold_ends(field: str, reason: Waiting) -> None:
    held = replace(COLD, **{field: NOON + 30 * MINUTE})  # type: ignore[arg-type]
    assert decide(held) == Wait(NOON + 30 * MINUTE, reason)
    assert isinstance(decide(held, NOON + 30 * MINUTE), HandOver)


@pytest.mark.parametrize(
    ("field", "reason"), [("paused_until", Waiting.PAUSED), ("restricted_until", Waiting.RESTRICTED)]
)
def test_an_account_held_by_a_person_waits_for_a_person(field: str, reason: Waiting) -> None:
    held = replace(COLD, **{field: FOREVER})  # type: ignore[arg-type]
    assert decide(held) == Wait(None, reason)


def test_a_disconnected_account_waits_for_its_worker() -> None:
    assert decide(replace(COLD, connected=())) == Wait(None, Waiting.DISCONNECTED)


def test_the_hold_that_needs_a_person_is_named_before_the_one_that_needs_a_worker() -> None:
    every = replace(COLD, restricted_until=FOREVER, paused_until=FOREVER, connected=(), not_before=NOON + 1)
    assert decide(every) == Wait(None, Waiting.RESTRICTED)
    assert decide(replace(every, restricted_until=NOON + DAY)) == Wait(None, Waiting.PAUSED)
    assert decide(replace(every, restricted_until=0, paused_until=NOON + DAY)) == Wait(None, Waiting.DISCONNECTED)


def test_of_two_holds_the_longer_one_is_named() -> None:
    known = replace(COLD, paused_until=NOON + MINUTE, restricted_until=NOON + 2 * MINUTE)
    assert decide(known) == Wait(NOON + 2 * MINUTE, Waiting.RESTRICTED)
    assert decide(replace(known, paused_until=NOON + 3 * MINUTE)) == Wait(NOON + 3 * MINUTE, Waiting.PAUSED)


# Recipients


STRICT = policy(recipients=RecipientRules())


def test_a_recipient_who_sleeps_lets_the_others_pass() -> None:
    new_yorker = head(to="12125550123")  # 05:00 there
    eight = moment("2026-01-15 08:00", ZoneInfo("America/New_York"))
    assert decide(COLD, message=new_yorker, rules=STRICT) == Defer("m", eight, Waiting.RECIPIENT_HOURS)


def test_a_recipient_who_got_three_today_lets_the_others_pass() -> None:
    full = replace(head(), recipient_count=3, recipient_day_ends_at=MIDNIGHT)
    tomorrow = MIDNIGHT + 8 * HOUR
    assert decide(COLD, message=full, rules=STRICT) == Defer("m", tomorrow, Waiting.RECIPIENT_CAP)
    assert isinstance(decide(COLD, message=replace(full, recipient_count=2), rules=STRICT), HandOver)


def test_a_second_attempt_is_no_second_message_to_the_recipient() -> None:
    again = replace(head(first_attempt=False), recipient_count=3, recipient_day_ends_at=MIDNIGHT)
    assert isinstance(decide(COLD, message=again, rules=STRICT), HandOver)


def test_a_recipient_is_only_looked_at_when_the_account_may_send() -> None:
    full = replace(head(), recipient_count=3, recipient_day_ends_at=MIDNIGHT)
    busy = replace(COLD, not_before=NOON + 1)
    assert decide(busy, message=full, rules=STRICT) == Wait(NOON + 1, Waiting.DELAY)


# One message at a time


def in_flight(*, claimed: bool) -> InFlight:
    return InFlight("m", NOON, claimed, attempts=1, failures=0, unknown=False)


@pytest.mark.parametrize("claimed", [True, False])
def test_nothing_else_leaves_while_a_message_is_under_way(claimed: bool) -> None:
    assert decide(COLD, NOON - 1, in_flight=in_flight(claimed=claimed)) == Wait(NOON, None)


def test_a_message_that_nobody_claimed_in_time_is_recalled() -> None:
    assert decide(COLD, in_flight=in_flight(claimed=False)) == Recall("m")


def test_a_message_that_was_claimed_and_never_answered_for_expires() -> None:
    assert decide(COLD, in_flight=in_flight(claimed=True)) == Expire(in_flight(claimed=True))


# An account with nothing to send


def test_an_idle_account_is_looked_at_when_its_allowance_changes() -> None:
    sent = replace(HOT, day_count=1, day_ends_at=MIDNIGHT)
    assert plan(STANDARD_POLICY, sent, None, None, NOON, Random()) == Wait(MIDNIGHT, None)
    assert next_visit(STANDARD_POLICY, HOT, NOON) is None
    assert next_visit(STANDARD_POLICY, replace(HOT, paused_until=NOON + 5), NOON) == NOON + 5
    assert next_visit(STANDARD_POLICY, replace(HOT, restricted_until=NOON + 7), NOON) == NOON + 7
    assert next_visit(STANDARD_POLICY, COLD, NOON) == NOON + 2 * DAY
    assert next_visit(STANDARD_POLICY, replace(COLD, day_count=1, day_ends_at=MIDNIGHT), NOON) == MIDNIGHT


def test_what_an_account_can_still_take_on_is_its_allowance_less_what_it_sent_and_has_waiting() -> None:
    assert spare(STANDARD_POLICY, COLD, NOON) == 20
    assert spare(STANDARD_POLICY, replace(COLD, day_count=3, day_ends_at=MIDNIGHT, waiting=4), NOON) == 13
    assert spare(STANDARD_POLICY, replace(COLD, day_count=3, day_ends_at=NOON, waiting=4), NOON) == 16


@pytest.mark.parametrize("field", ["paused_until", "restricted_until"])
def test_a_held_account_can_take_on_nothing(field: str) -> None:
    for until in (FOREVER, NOON + 1):
        assert spare(STANDARD_POLICY, replace(COLD, **{field: until}), NOON) == 0  # type: ignore[arg-type]
    assert spare(STANDARD_POLICY, replace(COLD, **{field: NOON}), NOON) == 20  # type: ignore[arg-type]


# A whole day


def test_a_standard_day_of_each_level_is_used_up_exactly() -> None:
    for known, level in ((COLD, TrustLevel.COLD), (WARM, TrustLevel.WARM), (HOT, TrustLevel.HOT)):
        paced = PacedAccount(STANDARD_POLICY, known, Random(3))
        for at in paced.hand_overs(moment("2026-01-15 00:00")):
            if at >= MIDNIGHT:
                break
        assert len(paced.handed) == STANDARD[level].daily + 1
