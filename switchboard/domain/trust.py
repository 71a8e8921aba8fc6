"""Trust levels and the limits each allows: the table of how fast an account may write."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import lru_cache

from switchboard.domain.hours import DAY_MS, Hours


class TrustLevel(StrEnum):
    COLD = "cold"
    WARM = "warm"
    HOT = "hot"


@dataclass(frozen=True, slots=True)
class Limits:
    """How fast one account may write. `centred` jitter lies around the base delay instead of above it."""

    daily: int
    per_minute: int
    base_delay_ms: int
    jitter_ms: int
    hours: Hours
    centred: bool = False

    @property
    def delay_range(self) -> tuple[int, int]:
        low = self.base_delay_ms - self.jitter_ms if self.centred else self.base_delay_ms
        return max(0, low), self.base_delay_ms + self.jitter_ms


@dataclass(frozen=True, slots=True)
class Overrides:
    """The figures a person set for one account, or for one level; None leaves the table's."""

    daily: int | None = None
    per_minute: int | None = None
    base_delay_ms: int | None = None
    jitter_ms: int | None = None
    hours: Hours | None = None

    @classmethod
    def of(cls, limits: Limits) -> "Overrides":
        """All of these limits, as figures that a person could have set: jitter that is set lies above the delay."""
        shortest, longest = limits.delay_range
        return cls(limits.daily, limits.per_minute, shortest, longest - shortest, limits.hours)

    def apply(self, limits: Limits) -> Limits:
        return limits if self == _NO_OVERRIDES else _applied(self, limits)


_NO_OVERRIDES = Overrides()


@lru_cache(maxsize=20_000)
def _applied(overrides: Overrides, limits: Limits) -> Limits:
    given = {f.name: value for f in fields(overrides) if (value := getattr(overrides, f.name)) is not None}
    if overrides.jitter_ms is not None:
        given["centred"] = False
    elif overrides.base_delay_ms is not None and limits.centred:  # a share of the base stays that share
        given["jitter_ms"] = limits.jitter_ms * overrides.base_delay_ms // max(1, limits.base_delay_ms)
    return replace(limits, **given)


STANDARD: Mapping[TrustLevel, Limits] = {
    TrustLevel.COLD: Limits(20, 5, 5_000, 3_000, Hours.parse("09:00-21:00")),
    TrustLevel.WARM: Limits(100, 15, 3_000, 2_000, Hours.parse("08:00-22:00")),
    TrustLevel.HOT: Limits(500, 30, 2_000, 2_000, Hours.parse("07:00-23:00")),
}


def _conservative(limits: Limits, daily: int) -> Limits:
    return replace(limits, daily=daily, jitter_ms=limits.base_delay_ms * 30 // 100, centred=True)


CONSERVATIVE: Mapping[TrustLevel, Limits] = {
    TrustLevel.COLD: _conservative(STANDARD[TrustLevel.COLD], 10),
    TrustLevel.WARM: _conservative(STANDARD[TrustLevel.WARM], 50),
    TrustLevel.HOT: _conservative(STANDARD[TrustLevel.HOT], 200),
}

PRESETS: Mapping[str, Mapping[TrustLevel, Limits]] = {"standard": STANDARD, "conservative": CONSERVATIVE}


@dataclass(frozen=True, slots=True)
class TrustTable:
    """Which level an account of a given age has, and that level's limits."""

    levels: Mapping[TrustLevel, Limits]
    warm_after_ms: int = 3 * DAY_MS
    hot_after_ms: int = 14 * DAY_MS

    def level(self, first_connected_at: int, at: int) -> TrustLevel:
        age = at - first_connected_at
        if age < self.warm_after_ms:
            return TrustLevel.COLD
        return TrustLevel.WARM if age < self.hot_after_ms else TrustLevel.HOT

    def limits(self, first_connected_at: int, at: int, overrides: Overrides) -> Limits:
        return overrides.apply(self.levels[self.level(first_connected_at, at)])

    def next_level_at(self, first_connected_at: int, at: int) -> int | None:
        for after in (self.warm_after_ms, self.hot_after_ms):
            if first_connected_at + after > at:
                return first_connected_at + after
        return None


def bolder(limits: Limits, than: Limits) -> tuple[str, ...]:
    """The figures by which these limits let an account do more than the other ones would."""
    opens_more = any(limits.hours.contains(minute) and not than.hours.contains(minute) for minute in range(1440))
    compared = {
        "daily": limits.daily > than.daily,
        "per_minute": limits.per_minute > than.per_minute,
        "delay": sum(limits.delay_range) / 2 < than.delay_range[0],  # its usual pause is shorter than their shortest
        "hours": opens_more,
    }
    return tuple(figure for figure, is_bolder in compared.items() if is_bolder)
