"""The form of an account's limits: what stands in its fields, and what they ask for, by the rules of the API."""

import math
from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from switchboard.dashboard.catalogue import Texts
from switchboard.domain.errors import InvalidRequest
from switchboard.domain.hours import Hours
from switchboard.domain.trust import Limits, Overrides
from switchboard.gateway.limits import overrides_of
from switchboard.gateway.models import LimitsRequest

Text = Annotated[str, Field(max_length=60)]

_PLACES: Mapping[str, tuple[str, ...]] = {
    "perMinute": ("per_minute",),
    "baseDelayMs": ("delay",),
    "jitterMs": ("jitter",),
    "hours": ("opens", "closes"),
}
"""Where the API's fields are typed, if they are called otherwise here."""


class WrongFields(Exception):
    """Which fields can't be taken, and why, in the reader's language."""

    def __init__(self, faults: Mapping[str, str]) -> None:
        super().__init__(*faults)
        self.faults = faults


class LimitsFields(BaseModel):
    """As a person typed them. An empty one leaves the table's figure."""

    daily: Text = ""
    per_minute: Text = ""
    delay: Text = ""
    jitter: Text = ""
    opens: Text = ""
    closes: Text = ""
    timezone: Text = ""

    @classmethod
    def showing(cls, overrides: Overrides, zone: str = "") -> "LimitsFields":
        opens, closes = _written(overrides.hours) if overrides.hours else ("", "")
        return cls(
            daily=_text(overrides.daily),
            per_minute=_text(overrides.per_minute),
            delay=seconds(overrides.base_delay_ms),
            jitter=seconds(overrides.jitter_ms),
            opens=opens,
            closes=closes,
            timezone=zone,
        )

    def asked(self, table: Limits, texts: Texts) -> tuple[Overrides, str | None]:
        """The figures and the zone that these fields set; WrongFields if they can't."""
        given = {
            "daily": self.daily.strip(),
            "perMinute": self.per_minute.strip(),
            "baseDelayMs": _milliseconds(self.delay),
            "jitterMs": _milliseconds(self.jitter),
            "hours": self._hours(table),
            "timezone": self.timezone.strip(),
        }
        try:
            body = LimitsRequest.model_validate({name: value for name, value in given.items() if value != ""})
            return overrides_of(body), body.timezone
        except ValidationError as error:
            wrong = [str(fault["loc"][0]) for fault in error.errors(include_url=False, include_input=False)]
        except InvalidRequest as error:
            wrong = [str(error.details["field"])]
        raise WrongFields(
            {place: texts(f"anti_ban.bad_{field}") for field in wrong for place in _PLACES.get(field, (field,))}
        )

    def _hours(self, table: Limits) -> str:
        """One of the two alone goes with the table's other one."""
        if not self.opens.strip() and not self.closes.strip():
            return ""
        opens, closes = _written(table.hours)
        return f"{_padded(self.opens) or opens}-{_padded(self.closes) or closes}"


def seconds(ms: int | None) -> str:
    return "" if ms is None else f"{ms / 1000:g}"


def _milliseconds(text: str) -> int | str:
    """What is no number is left as it is, to be refused."""
    try:
        number = float(text.strip().replace(",", "."))
    except ValueError:
        return text.strip()
    return round(number * 1000) if math.isfinite(number) else text.strip()


def _padded(clock: str) -> str:
    """9:00 as 09:00."""
    return clock.strip() and clock.strip().zfill(len("00:00"))


def _written(hours: Hours) -> tuple[str, str]:
    opens, _, closes = str(hours).partition("-")
    return opens, closes


def _text(figure: int | None) -> str:
    return "" if figure is None else str(figure)
