"""What a day under given limits looks like, and when a queue would be done: for a look before limits are changed.

It only asks `forecast`, which walks as the dispatcher does, so it can't promise what the dispatcher won't keep.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal
from zoneinfo import ZoneInfo

from switchboard.domain import hours
from switchboard.domain.accounts import Account, Profile
from switchboard.domain.forecast import forecast
from switchboard.domain.hours import MINUTE_MS
from switchboard.domain.pacing import Policy, Verdict, mean_delay
from switchboard.domain.trust import Limits, Overrides, TrustLevel, TrustTable

_HOUR_MS = 60 * MINUTE_MS


@dataclass(frozen=True, slots=True)
class DayPlan:
    """The hand-overs of one local day if the queue were endless, by the hours of a clock on the wall there.

    A day on which the clocks go back has 25 hours, one on which they go forward 23.
    """

    hour_starts: tuple[int, ...]
    by_hour: tuple[int, ...]
    total: int
    first_at: int | None
    last_at: int | None
    limited_by: Literal["daily", "pace"]


def day_plan(limits: Limits, zone: ZoneInfo, day_start_at: int, sent_already: int = 0) -> DayPlan:
    """The day from `day_start_at` to midnight there, of an account that is free to send at its start."""
    ends_at = hours.day_end(day_start_at, zone)
    starts = tuple(_wall_hours(day_start_at, ends_at, zone))
    left = max(0, limits.daily - sent_already)
    day = _EndlessQueue(limits, zone, day_start_at, sent_already)
    by_hour, done = [], 0
    for start, end in zip(starts, (*starts[1:], ends_at), strict=True):
        most = min(left, done + day.most_between(start, end))
        before_end = day.count_before(end, done, most)
        by_hour.append(before_end - done)
        done = before_end
    first_at, last_at = (day.leaves_at(1), day.leaves_at(done)) if done else (None, None)
    return DayPlan(starts, tuple(by_hour), done, first_at, last_at, "daily" if done == left else "pace")


class _EndlessQueue:
    def __init__(self, limits: Limits, zone: ZoneInfo, at: int, sent_already: int) -> None:
        self._policy = Policy(TrustTable(dict.fromkeys(TrustLevel, limits)))
        self._at = at
        self._account = Account(
            # Linked long ago: no level is reached on the way.
            Profile("", 0, 0, zone),
            connected=("",),
            day_ends_at=hours.day_end(at, zone),
            day_count=sent_already,
        )
        self._limits = limits
        self._delay = mean_delay(self._policy, self._account, limits, at)

    def leaves_at(self, position: int) -> int | None:
        return forecast(self._policy, self._account, position, self._at).at

    def most_between(self, start: int, end: int) -> int:
        """No more than this can leave: any minute holds `per_minute` of them, and a delay lies between two."""
        by_minute = self._limits.per_minute * -(-(end - start) // MINUTE_MS)
        return min(by_minute, 1 + (end - start - 1) // self._delay) if self._delay else by_minute

    def count_before(self, end: int, done: int, most: int) -> int:
        """How many leave before `end`, when that is known to be from `done` up to `most`."""
        if most == done or not self._leaves_before(done + 1, end):
            return done
        if self._leaves_before(most, end):  # closed hours and full ones are most of a day: no need to search
            return most
        positions = range(done + 1, most + 1)
        return done + bisect_left(positions, True, key=lambda position: not self._leaves_before(position, end))

    def _leaves_before(self, position: int, end: int) -> bool:
        at = self.leaves_at(position)
        return at is not None and at < end


def _wall_hours(at: int, ends_at: int, zone: ZoneInfo) -> Iterator[int]:
    """`at`, and every later moment before the day's end when the clock there begins an hour."""
    while at < ends_at:
        yield at
        here = hours.local(at, zone)
        at += _HOUR_MS - here.minute * MINUTE_MS - here.second * 1000 - here.microsecond // 1000


def with_overrides(account: Account, overrides: Overrides) -> Account:
    """The same account at the same moment, had a person set these figures for it instead of those it has."""
    return replace(account, profile=replace(account.profile, overrides=overrides))


def finish(policy: Policy, account: Account, count: int, now: int) -> Verdict:
    """When the last of `count` waiting messages is expected to leave, and why not sooner."""
    return forecast(policy, account, count, now) if count > 0 else Verdict(now, None)
