"""Whatever the limits are, no run of the planner breaks one, and none waits without a reason or too long."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from switchboard.domain.accounts import Account, Profile
from switchboard.domain.hours import Hours
from switchboard.domain.messages import Waiting
from switchboard.domain.pacing import HandOver, Plan, Policy, Verdict, Wait, earliest
from switchboard.domain.trust import Limits, TrustLevel, TrustTable
from tests.support.paced import DAY, HOUR, JERUSALEM, MINUTE, PATIENT, PacedAccount, moment

PATIENTLY = settings(deadline=None)


@dataclass(frozen=True)
class Oracle:
    """The rules once more, written from the specification and not from the planner."""

    levels: Sequence[Limits]
    known: Account

    def limits(self, at: int) -> Limits:
        age = (at - self.known.profile.first_connected_at) / DAY
        return self.levels[0 if age < 3 else 1 if age < 14 else 2]

    def broken(self, handed: Sequence[int], not_before: int, at: int) -> set[Waiting]:
        """What a hand-over at `at`, after those before it, would break."""
        limits = self.limits(at)
        here = self.local(at)
        this_minute = sum(at - MINUTE < other <= at for other in handed)
        today = sum(self.local(other).date() == here.date() for other in handed)
        rules = {
            Waiting.DELAY: at < not_before,
            Waiting.MINUTE_LIMIT: this_minute + 1 > limits.per_minute,
            Waiting.DAILY_LIMIT: today + 1 > limits.daily,
            Waiting.HOURS: not self.within(limits.hours, here),
            Waiting.PAUSED: at < self.known.paused_until,
            Waiting.RESTRICTED: at < self.known.restricted_until,
        }
        return {rule for rule, broken in rules.items() if broken}

    def delay_is_right(self, delay: int, at: int) -> bool:
        limits = self.limits(at)
        slower = 2 if at < self.known.burst_until else 1
        low, high = limits.base_delay_ms, limits.base_delay_ms + limits.jitter_ms
        return low * slower <= delay <= high * slower

    def local(self, at: int) -> datetime:
        return datetime.fromtimestamp(at // 1000, UTC).astimezone(self.known.profile.zone)

    @staticmethod
    def within(hours: Hours, here: datetime) -> bool:
        opens, closes = str(hours).split("-")
        time = f"{here:%H:%M}"
        return opens <= time < closes if opens < closes else time >= opens or time < closes


PLACES = [
    (JERUSALEM, "2026-03-26"),
    (JERUSALEM, "2026-10-24"),
    (ZoneInfo("America/New_York"), "2026-03-07"),
    (ZoneInfo("Australia/Lord_Howe"), "2026-04-04"),
    (ZoneInfo("America/Havana"), "2026-10-31"),
    (ZoneInfo("Asia/Kolkata"), "2026-06-01"),
]
"""Places, and the day before their clocks are moved."""


@st.composite
def some_limits(draw: st.DrawFn) -> Limits:
    opens, closes = draw(st.sampled_from([(0, 24), (9, 21), (7, 23), (22, 6), (0, 1), (23, 24), (2, 3)]))
    return Limits(
        daily=draw(st.integers(1, 25)),
        per_minute=draw(st.integers(1, 6)),
        base_delay_ms=draw(st.sampled_from([0, 1, 2_000, 5_000, 20_000, 90_000])),
        jitter_ms=draw(st.sampled_from([0, 3_000, 40_000])),
        hours=Hours(opens * 60, closes * 60),
    )


@st.composite
def some_accounts(draw: st.DrawFn) -> tuple[Oracle, Policy, int]:
    """Limits at random for each level, an account that may be about to change its level, and a moment."""
    zone, eve = draw(st.sampled_from(PLACES))
    start = moment(f"{eve} 00:00", zone) + draw(st.integers(0, 2 * DAY))
    age = draw(st.sampled_from([0, 3 * DAY, 14 * DAY, 30 * DAY])) - draw(st.integers(0, 30 * HOUR))
    levels = [draw(some_limits()) for _ in TrustLevel]
    known = Account(
        Profile("972501234567", 1, start - age, zone),
        connected=("worker_1",),
        paused_until=draw(st.just(0) | st.integers(start, start + 2 * HOUR)),
        restricted_until=draw(st.just(0) | st.integers(start, start + 2 * DAY)),
        burst_until=draw(st.just(0) | st.integers(start, start + 12 * HOUR)),
    )
    table = TrustTable(dict(zip(TrustLevel, levels, strict=True)))
    return Oracle(levels, known), Policy(table, PATIENT), start


def wait(planned: Plan) -> Wait:
    assert isinstance(planned, Wait)
    return planned


def check_hand_over(oracle: Oracle, paced: PacedAccount, not_before: int, now: int) -> None:
    assert not oracle.broken(paced.handed[:-1], not_before, now)
    assert oracle.delay_is_right(paced.account.not_before - now, now)


def check_wait(oracle: Oracle, paced: PacedAccount, planned: Wait, now: int) -> int:
    assert planned.until is not None
    assert planned.until > now
    handed, not_before = paced.handed, paced.account.not_before
    assert oracle.broken(handed, not_before, now), "it waits without a reason"
    assert not oracle.broken(handed, not_before, planned.until), "it would wait again"
    assert oracle.broken(handed, not_before, planned.until - 1), "it waits too long"
    return planned.until


@PATIENTLY
@given(some_accounts(), st.integers())
def test_no_run_breaks_a_limit_and_no_wait_is_longer_than_a_limit_asks_for(
    drawn: tuple[Oracle, Policy, int], seed: int
) -> None:
    oracle, rules, now = drawn
    random = Random(seed)
    paced = PacedAccount(rules, oracle.known, random)
    for _ in range(60):
        not_before = paced.account.not_before
        planned = paced.plan(now)
        if isinstance(planned, HandOver):
            check_hand_over(oracle, paced, not_before, now)
            continue
        until = check_wait(oracle, paced, wait(planned), now)
        between = random.randint(now, until - 1)
        assert wait(paced.plan(between)).until == until
        now = until + random.choice([0, 0, 0, random.randint(0, 3 * HOUR)])


@PATIENTLY
@given(some_accounts(), st.integers(0, 3 * DAY))
def test_a_verdict_is_now_without_a_reason_or_later_with_one(drawn: tuple[Oracle, Policy, int], later: int) -> None:
    oracle, rules, start = drawn
    now = start + later
    verdict = earliest(rules, oracle.known, now)
    assert verdict.at is not None
    assert verdict == Verdict(now, None) if verdict.at == now else verdict.reason is not None
