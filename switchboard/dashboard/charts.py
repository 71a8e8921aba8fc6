"""Figures as a plot draws them, each with the same figures as a table. What is drawn how: assets/src/plot_data.ts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from switchboard.dashboard.catalogue import Texts
from switchboard.dashboard.formats import Formats
from switchboard.store.samples import Sample

_ROWS = 24
"""As many as a person reads of a table that stands for a line."""


@dataclass(frozen=True, slots=True)
class Chart:
    data: Mapping[str, object]
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    """Only those that say something."""


class Charts:
    def __init__(self, texts: Texts, formats: Formats) -> None:
        self._texts = texts
        self._formats = formats

    def by_hour(self, hours: Sequence[Mapping[str, int]], figures: Sequence[str]) -> Chart:
        """A day of 24 hours, as it is on the clocks there."""
        return self._bars(list(range(24)), "hour", hours, figures, lambda hour: f"{hour:02}:00")

    def by_day(self, days: Sequence[Mapping[str, object]], figures: Sequence[str]) -> Chart:
        dates = [str(day["date"]) for day in days]
        x = [int(datetime.fromisoformat(date).replace(tzinfo=UTC).timestamp()) for date in dates]
        counts = [{name: int(str(day[name])) for name in figures} for day in days]
        names = dict(zip(x, map(self._formats.date, dates), strict=True))
        return self._bars(x, "day", counts, figures, names.__getitem__)

    def over_time(self, samples: Sequence[Sample], figures: Mapping[str, str], since: int, until: int) -> Chart:
        """`figures`: what is sampled, and the tone it is drawn in. All the time is shown, sampled or not."""
        names = [self._texts(f"charts.{name}") for name in figures]
        series = [
            {"label": label, "tone": tone, "values": [sample.figures.get(name, 0) for sample in samples]}
            for label, (name, tone) in zip(names, figures.items(), strict=True)
        ]
        step = max(1, -(-len(samples) // _ROWS))
        rows = [
            [self._formats.short(self._formats.local(sample.at)), *self._numbers(sample.figures, figures)]
            for sample in samples[::-1][::step]
        ]
        x = [sample.at // 1000 for sample in samples]
        span = {"from": since // 1000, "to": until // 1000}
        data = {"kind": "area", "xKind": "time", "x": x, **span, "series": series}
        return Chart(data, self._head("time", names), rows)

    def _bars(
        self,
        x: list[int],
        kind: str,
        counts: Sequence[Mapping[str, int]],
        figures: Sequence[str],
        name_of: Callable[[int], str],
    ) -> Chart:
        names = [self._texts(f"charts.{name}") for name in figures]
        series = [
            {"label": label, "tone": name, "values": [count[name] for count in counts]}
            for label, name in zip(names, figures, strict=True)
        ]
        rows = [
            [name_of(place), *self._numbers(count, figures)]
            for place, count in zip(x, counts, strict=True)
            if any(count[name] for name in figures)
        ]
        zone = {"zone": "UTC"} if kind == "day" else {}  # a date is the same wherever it is read
        return Chart({"kind": "bars", "xKind": kind, "x": x, "series": series, **zone}, self._head(kind, names), rows)

    def _numbers(self, count: Mapping[str, int], figures: Sequence[str] | Mapping[str, str]) -> list[str]:
        return [self._formats.number(count.get(name, 0)) for name in figures]

    def _head(self, kind: str, names: Sequence[str]) -> list[str]:
        return [self._texts(f"charts.{kind}"), *names]
