"""What limits would do, before they are set: the day they make, and when what waits would be done. No HTTP here."""

from dataclasses import dataclass, replace
from typing import Literal
from zoneinfo import ZoneInfo

from switchboard.domain import hours
from switchboard.domain.accounts import Account
from switchboard.domain.day_plan import day_plan, finish, with_overrides
from switchboard.domain.pacing import Policy, Verdict
from switchboard.domain.trust import Limits, Overrides, TrustLevel, bolder


@dataclass(frozen=True, slots=True)
class Day:
    """A whole day of an endless queue, as the clocks there show it."""

    by_hour: tuple[int, ...]
    total: int
    first: str | None
    last: str | None
    limited_by: Literal["daily", "pace"]


@dataclass(frozen=True, slots=True)
class Prospect:
    """What comes of one set of limits."""

    limits: Limits
    zone: ZoneInfo
    day: Day
    done: Verdict
    """When the last of those that wait now would leave."""


@dataclass(frozen=True, slots=True)
class Preview:
    level: TrustLevel
    table: Limits
    now: Prospect
    then: Prospect
    waiting: int
    bolder: tuple[str, ...]
    """The figures by which it would do more than its level's table."""


def preview(policy: Policy, account: Account, overrides: Overrides, zone: ZoneInfo, now: int) -> Preview:
    level = policy.table.level(account.profile.first_connected_at, now)
    then = _prospect(policy, _in_zone(with_overrides(account, overrides), zone, now), now)
    table = policy.table.levels[level]
    return Preview(level, table, _prospect(policy, account, now), then, account.waiting, bolder(then.limits, table))


def _prospect(policy: Policy, account: Account, now: int) -> Prospect:
    limits, zone = policy.limits(account.profile, now), account.profile.zone
    return Prospect(limits, zone, _day(limits, zone, now), finish(policy, account, account.waiting, now))


def _in_zone(account: Account, zone: ZoneInfo, now: int) -> Account:
    """As the store does it: a day that is being counted may end later, never sooner."""
    counting = account.day_ends_at > now
    ends_at = max(account.day_ends_at, hours.day_end(now, zone)) if counting else account.day_ends_at
    return replace(account, profile=replace(account.profile, zone=zone), day_ends_at=ends_at)


def _day(limits: Limits, zone: ZoneInfo, now: int) -> Day:
    """Tomorrow: the next one that can be had whole."""
    plan = day_plan(limits, zone, hours.day_end(now, zone))
    by_hour = [0] * 24
    for start, count in zip(plan.hour_starts, plan.by_hour, strict=True):
        by_hour[hours.local(start, zone).hour] += count
    return Day(tuple(by_hour), plan.total, _clock(plan.first_at, zone), _clock(plan.last_at, zone), plan.limited_by)


def _clock(at: int | None, zone: ZoneInfo) -> str | None:
    return None if at is None else f"{hours.local(at, zone):%H:%M}"
