"""What the people who receive messages can bear: hours of their own, and a cap from the whole fleet."""

from collections.abc import Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from switchboard.domain import hours
from switchboard.domain.hours import Hours
from switchboard.domain.messages import Waiting


@dataclass(frozen=True, slots=True)
class RecipientRules:
    daily_cap: int = 3
    hours: Hours = Hours(8 * 60, 22 * 60)  # noqa: RUF009 - frozen


def earliest(
    rules: RecipientRules, zones: Sequence[ZoneInfo], count: int, day_ends_at: int, at: int
) -> tuple[int, Waiting | None]:
    """The first moment from `at` on when one more message may reach this person, and what holds it back."""
    capped = count >= rules.daily_cap and at < day_ends_at
    opening = _open_in_all(rules.hours, zones, at)
    moment = _open_in_all(rules.hours, zones, day_ends_at) if capped else opening
    if moment > opening:
        return moment, Waiting.RECIPIENT_CAP
    return (moment, Waiting.RECIPIENT_HOURS) if moment > at else (at, None)


def day_end(zones: Sequence[ZoneInfo], fallback: ZoneInfo, at: int) -> int:
    return hours.day_end(at, zones[0] if zones else fallback)


def _open_in_all(span: Hours, zones: Sequence[ZoneInfo], at: int) -> int:
    """A number may be in any of its zones: wait until it is a decent hour in every one of them.

    Where the zones lie too far apart for that (a country code of the whole world), the first one decides.
    """
    moment = at
    for _ in range(2 * len(zones) + 2):
        later = max((hours.next_open(moment, span, zone) for zone in zones), default=moment)
        if later == moment:
            return moment
        moment = later
    return hours.next_open(at, span, zones[0])
