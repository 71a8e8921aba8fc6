"""The first page: how the whole fleet does, who needs a person, and every session."""

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response

from switchboard.dashboard.access.gate import Gate
from switchboard.dashboard.access.origins import is_htmx
from switchboard.dashboard.charts import Chart, Charts
from switchboard.dashboard.rendering import Pages
from switchboard.dashboard.services import Services
from switchboard.domain.figures import FleetFigures
from switchboard.domain.hours import DAY_MS
from switchboard.domain.sessions import State

_PER_PAGE = 50
_URGENT = 8
_FIRST = "first"
"""The part of the page that is shown while there are no sessions."""
_SAMPLES = 144
"""One for ten minutes: more would not be seen."""

Search = Annotated[str, Query(max_length=100)]
After = Annotated[str | None, Query(max_length=70)]
OneState = Annotated[State | None, Query(alias="state")]


def overview_pages(gate: Gate, pages: Pages, services: Services) -> APIRouter:
    router = APIRouter(route_class=gate.route(), include_in_schema=False)

    @router.get("/")
    async def overview(request: Request, state: OneState = None, search: Search = "", cursor: After = None) -> Response:
        figures = await services.overview.figures()
        if is_htmx(request) and (request.headers.get("hx-target") == _FIRST) is bool(figures.total):
            return Response(headers={"HX-Refresh": "true"})  # the page that asks is not the one to show by now
        if not figures.total:
            return await _first(request, pages, services, figures)
        found = await services.overview.page({state} if state else (), search, _PER_PAGE, cursor)
        charts = Charts(pages.texts(request), pages.formats(request))
        return pages.show(
            request,
            "overview.html",
            figures=figures,
            urgent=await services.overview.needing(_URGENT) if figures.attention else [],
            sessions=found["items"],
            total=found["total"],
            today=await _today(charts, services),
            queue=await _queue(charts, services),
            state=state,
            search=search,
            tabs=_tabs(figures, state, search),
            first=_url(state, search) if cursor else "",
            more=_url(state, search, str(found["nextCursor"])) if found["nextCursor"] else "",
        )

    return router


async def _first(request: Request, pages: Pages, services: Services, figures: FleetFigures) -> Response:
    pool = await services.proxy_views.inventory()
    ready = bool(pool["proxies"]) or services.allow_direct
    share = services.store.sessions.rules.per_proxy
    return pages.show(request, "overview/first.html", part=_FIRST, figures=figures, ready=ready, share=share)


async def _today(charts: Charts, services: Services) -> Chart:
    [day] = await services.reading.stats(by_hour=True)
    return charts.by_hour(day["hours"], ("sent", "delivered", "read"))  # type: ignore[arg-type]


async def _queue(charts: Charts, services: Services) -> Chart | None:
    """A line needs two points."""
    now = services.clock()
    samples = await services.store.samples.since(now - DAY_MS, _SAMPLES)
    tones = {"waiting": "queue", "scheduled": "scheduled"}
    return charts.over_time(samples, tones, now - DAY_MS, now) if len(samples) > 1 else None


def _tabs(figures: FleetFigures, chosen: State | None, search: str) -> list[tuple[State | None, int, str]]:
    """All, and every state that some session is in; with how many, and where to see them."""
    counts = {state: count for state, count in figures.sessions.items() if count or state is chosen}
    return [(state, count, _url(state, search)) for state, count in ({None: figures.total} | counts).items()]


def _url(state: State | None, search: str, cursor: str = "") -> str:
    query = {"state": state.value if state else "", "search": search, "cursor": cursor}
    given = urlencode({name: value for name, value in query.items() if value})
    return f"/?{given}" if given else "/"
