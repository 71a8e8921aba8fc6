"""The pool: which proxies work, who is on which, how many places are left; add, try, remove."""

from typing import Annotated

from fastapi import APIRouter, Form, Query, Request, Response

from switchboard.dashboard.access.gate import Gate
from switchboard.dashboard.access.origins import is_htmx
from switchboard.dashboard.catalogue import Texts
from switchboard.dashboard.rendering import Pages
from switchboard.dashboard.services import Services
from switchboard.domain.errors import InvalidRequest
from switchboard.orchestrator.proxy_routes import ProxyId

Url = Annotated[str, Form(max_length=1000)]
Cursor = Annotated[str | None, Query(pattern=r"^[01]-proxy_[0-9]{1,12}$")]
_PAGE = 50


def proxy_pages(gate: Gate, pages: Pages, services: Services) -> APIRouter:
    router = APIRouter(route_class=gate.route(), include_in_schema=False)

    async def show(request: Request, cursor: str | None = None, fault: str = "") -> Response:
        pool = await services.proxy_views.page(_PAGE, cursor)
        further = f"/proxies?cursor={pool['nextCursor']}" if pool["nextCursor"] else ""
        return pages.show(
            request,
            "proxies.html",
            400 if fault else 200,
            proxies=pool["items"],
            inventory=await services.proxy_views.inventory(),
            waiting=await services.overview.waiting_for_proxy(),
            per_proxy=services.configuration["MAX_SESSIONS_PER_PROXY"],
            further=further,
            first=cursor is None,
            fault=fault,
        )

    @router.get("/proxies")
    async def proxies(request: Request, cursor: Cursor = None) -> Response:
        return await show(request, cursor)

    @router.post("/proxies")
    async def add(request: Request, url: Url = "") -> Response:
        try:
            proxy, new = await services.proxy_care.add(url.strip())
        except InvalidRequest as error:
            fault = fault_of(pages.texts(request), error)
            if is_htmx(request):  # what was typed stays in its field
                return pages.show(request, "faults.html", 400, faults={"url": fault})
            return await show(request, fault=fault)
        if not proxy.ok:
            return pages.done(request, "proxies.added_bad", then="/proxies", tone="warn", proxy=proxy.id)
        return pages.done(request, "proxies.added" if new else "proxies.known", then="/proxies", proxy=proxy.id)

    @router.post("/proxies/{proxy}/probe")
    async def probe(request: Request, proxy: ProxyId) -> Response:
        found = await services.proxy_views.probe(proxy)
        if found["ok"]:
            return pages.done(request, "proxies.probe_good", proxy=proxy, ms=found["tookMs"])
        why = _why(pages.texts(request), str(found["code"]))
        return pages.done(request, "proxies.probe_bad", tone="warn", proxy=proxy, why=why)

    @router.post("/proxies/{proxy}/remove")
    async def remove(request: Request, proxy: ProxyId, force: Annotated[bool, Form()] = False) -> Response:
        await services.proxy_care.remove(proxy, force=force)
        return pages.done(request, "proxies.removed", proxy=proxy)

    return router


def fault_of(texts: Texts, error: InvalidRequest) -> str:
    """Why an address was not taken. What was typed is a secret: nothing of it is repeated."""
    reason = str(error.details["reason"])
    if reason != "known":
        return texts(f"proxies.bad_{reason}")
    return texts("proxies.bad_known", proxy=error.details["proxyId"], why=_why(texts, str(error.details["fault"])))


def _why(texts: Texts, code: str) -> str:
    return texts(f"fault.{code}") if texts.has(f"fault.{code}") else code
