"""What is well and what is not, at a glance, and what to do about it; and the last seven days as two plots."""

from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import APIRouter, Request, Response

from switchboard.dashboard.access.gate import Gate
from switchboard.dashboard.catalogue import Texts
from switchboard.dashboard.charts import Chart, Charts
from switchboard.dashboard.formats import Formats
from switchboard.dashboard.rendering import Pages
from switchboard.dashboard.services import Services
from switchboard.domain.condition import Finding, Mark
from switchboard.domain.hours import DAY_MS
from switchboard.store.samples import Sample

_SAMPLES = 336
"""One for half an hour: more would not be seen."""

_WHERE: Mapping[str, str] = {"sessions": "/", "proxies": "/proxies", "senders": "/"}
_ISOLATE, _END = "\u2068", "\u2069"
"""Around a figure with its unit, which may run the other way than the sentence does."""


@dataclass(frozen=True, slots=True)
class Row:
    about: str
    mark: Mark
    name: str
    figure: str
    advice: str
    href: str


def health_pages(gate: Gate, pages: Pages, services: Services) -> APIRouter:
    router = APIRouter(route_class=gate.route(), include_in_schema=False)

    @router.get("/status")
    async def status(request: Request) -> Response:
        report = await services.condition.report()
        texts, formats = pages.texts(request), pages.formats(request)
        charts = Charts(texts, formats)
        now = services.clock()
        samples = await services.store.samples.since(now - 7 * DAY_MS, _SAMPLES)
        groups = [(name, [row_of(texts, formats, one) for one in found]) for name, found in report.groups]
        return pages.show(
            request,
            "health.html",
            worst=report.worst,
            groups=groups,
            trouble=sorted(
                (row for _, rows in groups for row in rows if row.advice), key=lambda row: row.mark is not Mark.BAD
            ),
            zone=services.zone.key,
            queue=_plot(charts, samples, now, {"waiting": "queue", "scheduled": "scheduled"}),
            connected=_plot(charts, samples, now, {"sessions": "limit", "connected": "connected"}),
        )

    return router


def row_of(texts: Texts, formats: Formats, finding: Finding) -> Row:
    key = f"health.{finding.about}_{finding.word}"
    values = {_stem(name): _figure(formats, name, value) for name, value in finding.figures.items()}
    return Row(
        about=finding.about,
        mark=finding.mark,
        name=texts(f"health.{finding.about}"),
        figure=texts(key, **values),
        advice="" if finding.mark is Mark.OK else texts(f"{key}_do", **values),
        href="" if finding.mark is Mark.OK else _WHERE.get(finding.about, ""),
    )


def _stem(name: str) -> str:
    return name.removesuffix("_ms").removesuffix("_bytes")


def _figure(formats: Formats, name: str, value: int | str) -> int | str:
    if name == "n" or isinstance(value, str):
        return value if name == "n" else f"{_ISOLATE}{value}{_END}"
    if name.endswith("_ms"):
        return f"{_ISOLATE}{formats.duration(value)}{_END}"
    return f"{_ISOLATE}{formats.size(value) if name.endswith('_bytes') else formats.number(value)}{_END}"


def _plot(charts: Charts, samples: list[Sample], now: int, tones: Mapping[str, str]) -> Chart | None:
    """A line needs two points."""
    return charts.over_time(samples, tones, now - 7 * DAY_MS, now) if len(samples) > 1 else None
