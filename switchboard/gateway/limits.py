"""Limits that a person asked for, checked: the same rules for the API and for the dashboard's form."""

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from switchboard.domain.errors import InvalidRequest
from switchboard.domain.hours import Hours
from switchboard.domain.trust import Overrides
from switchboard.gateway.models import LimitsRequest


def overrides_of(body: LimitsRequest) -> Overrides:
    """Raises InvalidRequest for hours or a time zone that there are not; the figures' bounds are the model's."""
    try:
        span = Hours.parse(body.hours) if body.hours else None
    except ValueError as error:
        raise InvalidRequest(f"hours: {error}", "hours") from None
    try:
        if body.timezone:
            ZoneInfo(body.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # the last for a name that is a folder there
        raise InvalidRequest("timezone: is not an IANA time zone like Asia/Jerusalem", "timezone") from None
    return Overrides(body.daily, body.perMinute, body.baseDelayMs, body.jitterMs, span)
