"""Moments, numbers and phone numbers as people of a language write them."""

from datetime import datetime, timedelta
from functools import lru_cache
from typing import Literal
from zoneinfo import ZoneInfo

import phonenumbers
from babel import Locale
from babel.dates import format_date, format_datetime, format_time, format_timedelta
from babel.numbers import format_decimal, format_percent


class Formats:
    """Takes moments as the API gives them: ISO 8601 with an offset. Shows them in the zone that they carry."""

    def __init__(self, language: str, zone: ZoneInfo) -> None:
        self._locale = Locale.parse("en_GB" if language == "en" else language)  # a day has 24 hours
        self._zone = zone

    def number(self, value: float | None) -> str:
        return "–" if value is None else format_decimal(value, locale=self._locale)

    def percent(self, part: float, whole: float) -> str:
        return format_percent(part / whole if whole else 0, locale=self._locale)

    def moment(self, iso: str | None) -> str:
        """15 Nov 2026, 14:03:07"""
        return format_datetime(_read(iso), "medium", locale=self._locale) if iso else "–"

    def short(self, iso: str | None) -> str:
        """14:03 today, else 15 Nov, 14:03."""
        return self._near(iso, "short")

    def exact(self, iso: str | None) -> str:
        """The same to the second: 14:03:07."""
        return self._near(iso, "medium")

    def dated(self, iso: str) -> str:
        """With its day, even if that is today: 15 Nov, 14:03."""
        at = _read(iso)
        return f"{format_date(at, 'd MMM', locale=self._locale)}, {format_time(at, 'short', locale=self._locale)}"

    def _near(self, iso: str | None, length: Literal["short", "medium"]) -> str:
        if not iso:
            return "–"
        at = _read(iso)
        time = format_time(at, length, locale=self._locale)
        if at.date() == datetime.now(at.tzinfo).date():
            return time
        return f"{format_date(at, 'd MMM', locale=self._locale)}, {time}"

    def date(self, iso: str) -> str:
        return format_date(datetime.fromisoformat(iso).date(), "medium", locale=self._locale)

    def duration(self, ms: float | None) -> str:
        """The biggest unit that says it: 12 seconds, 3 hours."""
        if ms is None:
            return "–"
        if ms < 1000:
            return f"{self.number(round(ms))} ms"
        return format_timedelta(timedelta(milliseconds=ms), threshold=1.5, locale=self._locale)

    def size(self, count: float) -> str:
        for unit in ("B", "KB", "MB", "GB"):
            if count < 1000 or unit == "GB":
                return f"{format_decimal(round(count, 1 if count < 10 else 0), locale=self._locale)} {unit}"
            count /= 1000
        raise AssertionError("unreachable")

    def local(self, at_ms: int) -> str:
        """A moment of ours, as the API would write it."""
        return datetime.fromtimestamp(at_ms / 1000, self._zone).isoformat(timespec="seconds")

    def phone(self, digits: str | None) -> str:
        return _phone(digits) if digits else "–"


def _read(iso: str) -> datetime:
    return datetime.fromisoformat(iso)


@lru_cache(maxsize=20_000)
def _phone(digits: str) -> str:
    """As it is printed on a card: +972 50-987-6543."""
    try:
        number = phonenumbers.parse("+" + digits)
    except phonenumbers.NumberParseException:
        return digits
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.INTERNATIONAL)
