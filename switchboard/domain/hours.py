"""Local days and opening hours in any time zone, daylight-saving changes included.

Moments are milliseconds since the epoch; a day and an hour are what a clock on the wall there shows.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

MINUTE_MS = 60_000
DAY_MS = 86_400_000
_DAY_MINUTES = 1440
_FORM = re.compile(r"(\d\d):(\d\d)-(\d\d):(\d\d)\Z")


@dataclass(frozen=True, slots=True)
class Hours:
    """From `opens` up to, not including, `closes`, in minutes after midnight. May run over midnight."""

    opens: int
    closes: int

    @classmethod
    def parse(cls, text: str) -> "Hours":
        found = _FORM.match(text)
        if not found:
            raise ValueError(f"hours look like 07:00-23:00, not {text!r}")
        h1, m1, h2, m2 = map(int, found.groups())
        opens, closes = h1 * 60 + m1, h2 * 60 + m2
        if m1 > 59 or m2 > 59 or opens >= _DAY_MINUTES or closes > _DAY_MINUTES or opens == closes:
            raise ValueError(f"hours {text!r} are not a span of a day; always is 00:00-24:00")
        return cls(opens, closes)

    def __str__(self) -> str:
        return f"{self.opens // 60:02}:{self.opens % 60:02}-{self.closes // 60:02}:{self.closes % 60:02}"

    @property
    def always(self) -> bool:
        return self.opens == 0 and self.closes == _DAY_MINUTES

    def contains(self, minute: int) -> bool:
        if self.opens < self.closes:
            return self.opens <= minute < self.closes
        return minute >= self.opens or minute < self.closes


ALWAYS = Hours(0, _DAY_MINUTES)


def local(at: int, tz: ZoneInfo) -> datetime:
    return datetime.fromtimestamp(at / 1000, tz)


def day_of(at: int, tz: ZoneInfo) -> str:
    return local(at, tz).date().isoformat()


def day_end(at: int, tz: ZoneInfo) -> int:
    """The next local midnight after `at`."""
    return _day_end(at // MINUTE_MS, tz)


def is_open(at: int, hours: Hours, tz: ZoneInfo) -> bool:
    return hours.always or _is_open(at // MINUTE_MS, hours, tz)


def next_open(at: int, hours: Hours, tz: ZoneInfo) -> int:
    """`at` itself while open, else the next opening."""
    return at if is_open(at, hours, tz) else _opening(at // MINUTE_MS, hours, tz)


def next_close(at: int, hours: Hours, tz: ZoneInfo) -> int | None:
    """When the hours that are open at `at` end; None when they never do."""
    return None if hours.always else _closing(at // MINUTE_MS, hours, tz)


# Clocks turn and move on whole minutes, so the answer for a minute's start holds all through it, for every account
# of that zone: these four are asked at every hand-over and every estimate.


@lru_cache(maxsize=4096)
def _day_end(minute: int, tz: ZoneInfo) -> int:
    at = minute * MINUTE_MS
    tomorrow = local(at, tz).date() + timedelta(days=1)
    return next(moment for moment in _wall(tomorrow, 0, tz) if moment > at)


@lru_cache(maxsize=16384)
def _is_open(minute: int, hours: Hours, tz: ZoneInfo) -> bool:
    here = local(minute * MINUTE_MS, tz)
    return hours.contains(here.hour * 60 + here.minute)


@lru_cache(maxsize=4096)
def _opening(minute: int, hours: Hours, tz: ZoneInfo) -> int:
    return next(moment for moment in _turns(minute * MINUTE_MS, hours.opens, tz) if is_open(moment, hours, tz))


@lru_cache(maxsize=4096)
def _closing(minute: int, hours: Hours, tz: ZoneInfo) -> int:
    return next(moment for moment in _turns(minute * MINUTE_MS, hours.closes, tz) if not is_open(moment, hours, tz))


def _turns(at: int, minute: int, tz: ZoneInfo) -> Iterator[int]:
    """The moments after `at` when the wall clock comes to `minute`, or is moved and may jump past it."""
    today = local(at, tz).date()
    for ahead in range(-1, 4):
        for moment in _marks(today + timedelta(days=ahead), minute, tz):
            if moment > at:
                yield moment
    raise AssertionError("every zone comes to every minute within three days")


@lru_cache(maxsize=4096)
def _marks(day: date, minute: int, tz: ZoneInfo) -> tuple[int, ...]:
    return tuple(sorted({*_wall(day, minute, tz), *_clock_change(day, tz)}))


@lru_cache(maxsize=4096)
def _wall(day: date, minute: int, tz: ZoneInfo) -> tuple[int, ...]:
    """The moments when a wall clock shows `minute` of `day`: one, or two on the night clocks go back.

    A minute that is skipped when clocks go forward stands for as long after the gap as it lay in it.
    """
    naive = datetime.combine(day, time()) + timedelta(minutes=minute)
    first, second = (round(naive.replace(tzinfo=tz, fold=fold).astimezone(UTC).timestamp() * 1000) for fold in (0, 1))
    return (first, second) if first < second else (first,)


def _clock_change(day: date, tz: ZoneInfo) -> tuple[int, ...]:
    """The moment of `day` when the clocks there go forward or back, on a day when they do."""
    before, after = (_wall(midnight, 0, tz)[0] for midnight in (day, day + timedelta(days=1)))
    old = local(before, tz).utcoffset()
    if local(after, tz).utcoffset() == old:
        return ()
    while after - before > 1:
        middle = (before + after) // 2
        if local(middle, tz).utcoffset() == old:
            before = middle
        else:
            after = middle
    return (after,)
