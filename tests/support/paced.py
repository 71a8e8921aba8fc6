"""One account in memory: what the store writes down about it, so that the pure planner can be run step by step."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from random import Random
from zoneinfo import ZoneInfo

from switchboard.domain.accounts import Account, Head, Profile
from switchboard.domain.hours import ALWAYS
from switchboard.domain.pacing import HandOver, Plan, Policy, Wait, plan
from switchboard.domain.recipients import RecipientRules
from switchboard.domain.trust import STANDARD, Limits, Overrides, TrustLevel, TrustTable

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
JERUSALEM = ZoneInfo("Asia/Jerusalem")
ISRAELI = "972509876543"
PATIENT = RecipientRules(daily_cap=1_000_000, hours=ALWAYS)
"""Recipients who can be written to at any time, so that only the account's own limits hold."""


def moment(text: str, zone: ZoneInfo = JERUSALEM) -> int:
    """`2026-03-10 12:00` on a wall clock there, as ms."""
    return round(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp() * 1000)


def policy(limits: Limits | None = None, recipients: RecipientRules = PATIENT) -> Policy:
    """The standard table, or the same limits at every level."""
    return Policy(TrustTable(STANDARD if limits is None else dict.fromkeys(TrustLevel, limits)), recipients)


def account(first_connected_at: int, zone: ZoneInfo = JERUSALEM, overrides: Overrides | None = None) -> Account:
    profile = Profile("972501234567", 1, first_connected_at, zone, overrides=overrides or Overrides())
    return Account(profile, connected=("worker_1",))


def head(to: str = ISRAELI, session: str | None = None, *, first_attempt: bool = True) -> Head:
    return Head("m", to, session, first_attempt, recipient_day_ends_at=0, recipient_count=0)


class MeanRandom(Random):
    """Draws the middle every time."""

    def uniform(self, a: float, b: float) -> float:
        return (a + b) / 2


@dataclass
class PacedAccount:
    """Runs the planner and keeps the books as the store does."""

    policy: Policy
    account: Account
    random: Random
    handed: list[int] = field(default_factory=list)

    def plan(self, now: int) -> Plan:
        """Look once; a hand-over is written down."""
        seen = tuple(at for at in self.account.recent if at > now - MINUTE)
        planned = plan(self.policy, replace(self.account, recent=seen), None, head(), now, self.random)
        if isinstance(planned, HandOver):
            self._count(planned, now)
        return planned

    def _count(self, planned: HandOver, now: int) -> None:
        known = self.account
        same_day = now < known.day_ends_at
        self.handed.append(now)
        self.account = replace(
            known,
            not_before=planned.not_before,
            day_ends_at=known.day_ends_at if same_day else planned.day_ends_at,
            day_count=known.day_count + 1 if same_day else 1,
            recent=(now, *known.recent)[: planned.per_minute],
        )

    def hand_overs(self, now: int) -> Iterator[int]:
        """Every hand-over from `now` on, each as soon as the planner allows it."""
        while True:
            planned = self.plan(now)
            if isinstance(planned, HandOver):
                yield now
            elif isinstance(planned, Wait) and planned.until is not None:
                now = planned.until
            else:
                raise AssertionError(f"an endless wait: {planned}")
