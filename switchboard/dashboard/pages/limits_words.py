"""What a preview of limits says to a person: warnings, the day, the queue, and the day as a plot."""

from dataclasses import dataclass

from switchboard.dashboard.catalogue import Texts
from switchboard.dashboard.charts import Chart
from switchboard.dashboard.formats import Formats
from switchboard.dashboard.pages.limits_preview import Preview, Prospect
from switchboard.dashboard.words import Words
from switchboard.domain.trust import Limits
from switchboard.web.times import iso

_LTR, _END = "\u2066", "\u2069"
"""Around a span of figures, which reads from left to right in every language."""


@dataclass(frozen=True, slots=True)
class PreviewWords:
    warnings: list[str]
    day: str
    queue: str
    chart: Chart


def preview_words(preview: Preview, texts: Texts, formats: Formats) -> PreviewWords:
    return PreviewWords(
        _warnings(preview, texts, formats),
        _day(preview.then, texts, formats),
        _queue(preview, texts, formats),
        _chart(preview, texts, formats),
    )


def delay(limits: Limits, formats: Formats) -> str:
    """5–8, in seconds."""
    shortest, longest = (formats.number(ms / 1000) for ms in limits.delay_range)
    return f"{_LTR}{shortest}–{longest}{_END}" if shortest != longest else shortest


def _warnings(preview: Preview, texts: Texts, formats: Formats) -> list[str]:
    table = preview.table
    most = {
        "daily": formats.number(table.daily),
        "per_minute": formats.number(table.per_minute),
        "delay": delay(table, formats),
        "hours": f"{_LTR}{table.hours}{_END}",
    }
    level = texts(f"trust.{preview.level}")
    return [texts(f"anti_ban.bolder_{figure}", level=level, most=most[figure]) for figure in preview.bolder]


def _day(prospect: Prospect, texts: Texts, formats: Formats) -> str:
    day = prospect.day
    if not day.total:
        return texts("anti_ban.day_none")
    key = f"anti_ban.day_{day.limited_by}"
    return texts(key, n=day.total, total=formats.number(day.total), first=day.first, last=day.last)


def _queue(preview: Preview, texts: Texts, formats: Formats) -> str:
    if not preview.waiting:
        return ""
    waiting = texts("anti_ban.waiting", n=preview.waiting, count=formats.number(preview.waiting))
    then, now = _done(preview.then, formats), _done(preview.now, formats)
    if then is None:
        why = Words(texts, formats).waiting(preview.then.done.reason)
        return texts("anti_ban.queue_unknown", waiting=waiting, why=why)
    if now is None or now == then:
        return texts("anti_ban.queue_same", waiting=waiting, then=then)
    return texts("anti_ban.queue_other", waiting=waiting, then=then, now=now)


def _done(prospect: Prospect, formats: Formats) -> str | None:
    at = prospect.done.at
    return None if at is None else formats.short(iso(at, prospect.zone))


def _chart(preview: Preview, texts: Texts, formats: Formats) -> Chart:
    then, now = preview.then.day.by_hour, preview.now.day.by_hour
    names = [texts("anti_ban.with_these"), texts("anti_ban.as_now")]
    series = [
        {"label": names[0], "tone": "delivered", "values": then},
        {"label": names[1], "tone": "limit", "values": now, "dashed": True},
    ]
    rows = [
        [f"{hour:02}:00", formats.number(then[hour]), formats.number(now[hour])]
        for hour in range(24)
        if then[hour] or now[hour]
    ]
    data = {"kind": "bars", "xKind": "hour", "x": list(range(24)), "series": series}
    return Chart(data, [texts("charts.hour"), *names], rows)
