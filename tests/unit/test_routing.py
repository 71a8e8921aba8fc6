"""A message that names no sender goes to who wrote to this person before, else to who can bear the most."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from switchboard.domain.accounts import FOREVER, Account
from switchboard.domain.routing import choose
from tests.support.paced import DAY, account, moment, policy

NOON = moment("2026-01-15 12:00")
MIDNIGHT = moment("2026-01-16 00:00")
RULES = policy()


def named(phone: str, age_days: int, sent: int = 0, waiting: int = 0) -> Account:
    known = account(NOON - age_days * DAY)
    return replace(
        known,
        profile=replace(known.profile, phone=phone),
        day_count=sent,
        day_ends_at=MIDNIGHT,
        waiting=waiting,
    )


COLD, WARM, HOT = named("cold", 1), named("warm", 5), named("hot", 30)


def test_the_account_that_wrote_before_writes_again_even_while_it_is_away() -> None:
    assert choose(RULES, "cold", [HOT], NOON) == "cold"
    assert choose(RULES, "cold", [], NOON) == "cold"


def test_otherwise_it_is_the_one_with_the_most_allowance_left() -> None:
    assert choose(RULES, None, [COLD, HOT, WARM], NOON) == "hot"
    assert choose(RULES, None, [COLD, named("hot", 30, sent=450), WARM], NOON) == "warm"
    assert choose(RULES, None, [COLD, named("hot", 30, waiting=450), WARM], NOON) == "warm"


def test_an_account_that_is_away_or_held_is_not_chosen() -> None:
    for away in (
        replace(HOT, connected=()),
        replace(HOT, paused_until=NOON + 1),
        replace(HOT, restricted_until=FOREVER),
    ):
        assert choose(RULES, None, [away, COLD], NOON) == "cold"


def test_with_no_allowance_left_anywhere_the_message_waits() -> None:
    assert choose(RULES, None, [], NOON) is None
    assert choose(RULES, None, [named("cold", 1, sent=12, waiting=8)], NOON) is None


@given(st.permutations([COLD, WARM, HOT, named("cold-2", 1), named("hot-2", 30)]))
def test_the_order_of_the_candidates_does_not_matter(candidates: list[Account]) -> None:
    assert choose(RULES, None, candidates, NOON) == "hot-2"
