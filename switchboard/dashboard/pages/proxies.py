"""The pool: which proxies work, who is on which, how many places are left; add, try, remove."""

from typing import Annotated

from fastapi import APIRouter, Form, Query, Request, Response

from switchboard.dashboard.gate import Gate
from switchboard.dashboard.rendering import Pages
from switchboard.dashboard.services import Services
from switchboard.orchestrator.proxy_routes import ProxyId

Url = Annotated[str, Form(max_length=1000)]
Cursor = Annotated[str | None, Query(pattern=r"^[01]-proxy_[0-9]{1,12}$")]
_PAGE = 50


def proxy_pages(gate: Gate, pages: Pages, services: Services) -> APIRouter:
    router = APIRouter(route_class=gate.route(), include_in_schema=False)

    @router.get("/proxies")
    async def proxies(request: Request, cursor: Cursor = None) -> Response:
        pool = await services.proxy_views.page(_PAGE, cursor)
        inventory = await services.proxy_views.inventory()
        further = f"/proxies?cursor={pool['nextCursor']}" if pool["nextCursor"] else ""
        return pages.show(
            request, "proxies.html", proxies=pool["items"], inventory=inventory, further=further, first=cursor is None
        )

    @router.post("/proxies")
    async def add(request: Request, url: Url = "") -> Response:
        proxy, new = await services.proxy_care.add(url.strip())
        if not proxy.ok:
            return pages.done(request, "proxies.added_bad", then="/proxies", proxy=proxy.id)
        return pages.done(request, "proxies.added" if new else "proxies.known", then="/proxies", proxy=proxy.id)

    @router.post("/proxies/{proxy}/probe")
    async def probe(request: Request, proxy: ProxyId) -> Response:
        found = await services.proxy_views.probe(proxy)
        key = "proxies.probe_good" if found["ok"] else "proxies.probe_bad"
        return pages.done(request, key, proxy=proxy, ms=found["tookMs"], detail=found["detail"])

    @router.post("/proxies/{proxy}/remove")
    async def remove(request: Request, proxy: ProxyId, force: Annotated[bool, Form()] = False) -> Response:
        await services.proxy_care.remove(proxy, force=force)
        return pages.done(request, "proxies.removed", proxy=proxy)

    return router
