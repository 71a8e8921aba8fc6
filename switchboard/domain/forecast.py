"""When will the n-th waiting message leave? Walks the account's pace, caps and hours with the mean delay.

It lands where a step-by-step run of the planner would, but goes stretch by stretch: as long as nothing but
the delay and the minute's limit holds, hand-overs repeat in a pattern that can be leapt over.
"""

from collections import deque
from dataclasses import replace
from typing import NamedTuple

from switchboard.domain import hours
from switchboard.domain.accounts import Account
from switchboard.domain.hours import MINUTE_MS
from switchboard.domain.messages import Waiting
from switchboard.domain.pacing import Policy, Verdict, earliest, mean_delay

_FAR = 3660  # stretches: some ten years; a message further off has no honest estimate


class _Hold(NamedTuple):
    """How long the walk stood still, and why. The longest one is what a message waits for."""

    length: int
    reason: Waiting | None


def forecast(policy: Policy, account: Account, position: int, now: int) -> Verdict:
    """The moment the message at `position` (1 is next) is expected to be handed over, and why not sooner."""
    left, longest = position, _Hold(0, None)
    for _ in range(_FAR):
        opening = earliest(policy, account, now)
        if opening.at is None:
            return opening
        longest = max(longest, _Hold(opening.at - now, opening.reason), key=_length)
        if left <= 1:
            return Verdict(opening.at, longest.reason)
        stretch = _Stretch(policy, account, opening.at)
        left -= stretch.walk(left)
        longest = max(longest, stretch.longest, key=_length)
        if left <= 0:
            return Verdict(stretch.last, longest.reason)
        account, now = stretch.account_after(), stretch.last
    return Verdict(None, longest.reason)


def _length(hold: _Hold) -> int:
    return hold.length


class _Stretch:
    """Hand-overs from `at` on, while level, hours, day and burst stay as they are at `at`."""

    def __init__(self, policy: Policy, account: Account, at: int) -> None:
        zone = account.profile.zone
        limits = policy.limits(account.profile, at)
        same_day = at < account.day_ends_at
        self._account = account
        self._per_minute = limits.per_minute
        self._delay = mean_delay(policy, account, limits, at)
        self._day_ends_at = account.day_ends_at if same_day else hours.day_end(at, zone)
        self._counted = account.sent_today(at)
        self._allowance = limits.daily - self._counted
        ends = (
            self._day_ends_at,
            hours.next_close(at, limits.hours, zone),
            policy.table.next_level_at(account.profile.first_connected_at, at),
            account.burst_until if at < account.burst_until else None,
        )
        self._ends_at = min(end for end in ends if end is not None)
        self._minute = deque(reversed(account.recent[: limits.per_minute]), maxlen=limits.per_minute)
        self._minute.append(at)
        self._gap = 0
        self._leapt = 0  # delays leapt over at once, which `_minute` does not show

    @property
    def longest(self) -> _Hold:
        return _Hold(self._gap, Waiting.MINUTE_LIMIT if self._gap > self._delay else Waiting.DELAY)

    @property
    def last(self) -> int:
        return self._minute[-1]

    def walk(self, most: int) -> int:
        """Hand over up to `most` messages; how many it could."""
        most = min(most, self._allowance)
        if self._only_delays():
            walked = self._leap_delays(1, most)
        else:
            walked = self._step(1, min(most, 2 * self._per_minute))
            if walked == 2 * self._per_minute:
                walked = self._step(self._leap(walked, most), most)
        self._counted += walked
        return walked

    def _step(self, walked: int, most: int) -> int:
        minute, delay, ends_at, full = self._minute, self._delay, self._ends_at, self._per_minute
        while walked < most:
            last = minute[-1]
            following = last + delay
            if len(minute) == full and minute[0] + MINUTE_MS > following:
                following = minute[0] + MINUTE_MS
            if following >= ends_at:
                break
            self._gap = max(self._gap, following - last)
            minute.append(following)
            walked += 1
        return walked

    def _only_delays(self) -> bool:
        """The delay alone keeps within the minute's limit, and no earlier hand-over is in the way."""
        return not self._account.recent and self._per_minute * self._delay >= MINUTE_MS

    def _leap(self, walked: int, most: int) -> int:
        """Two minutes' worth of steps have settled into a pattern: skip as many rounds of it as fit."""
        cycle = max(self._per_minute * self._delay, MINUTE_MS)
        rounds = min((most - walked) // self._per_minute, (self._ends_at - 1 - self.last) // cycle)
        self._minute = deque((moment + rounds * cycle for moment in self._minute), maxlen=self._per_minute)
        return walked + rounds * self._per_minute

    def _leap_delays(self, walked: int, most: int) -> int:
        steps = max(0, min(most - walked, (self._ends_at - 1 - self.last) // self._delay))
        if steps:
            self._gap = self._delay
            self._leapt = min(steps, self._per_minute - 1)
            self._minute[0] += steps * self._delay
        return walked + steps

    def _recent(self) -> tuple[int, ...]:
        if self._leapt:
            return tuple(self.last - n * self._delay for n in range(self._leapt + 1))
        return tuple(reversed(self._minute))

    def account_after(self) -> Account:
        """The account as the store would keep it after these hand-overs."""
        return replace(
            self._account,
            not_before=self.last + self._delay,
            day_ends_at=self._day_ends_at,
            day_count=self._counted,
            recent=self._recent(),
        )
