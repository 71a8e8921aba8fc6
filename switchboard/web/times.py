"""Moments at the edge: ISO 8601 with offset outside, ms since the epoch inside."""

from datetime import datetime
from zoneinfo import ZoneInfo

from switchboard.domain.hours import local


def iso(at: int, zone: ZoneInfo) -> str:
    return local(at, zone).isoformat(timespec="milliseconds" if at % 1000 else "seconds")


def iso_or_none(at: int | None, zone: ZoneInfo) -> str | None:
    return None if at is None else iso(at, zone)


def ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
