"""A link that signs in by itself. To look at it changes nothing; the page it shows sends the form that does."""

import structlog
from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from switchboard.dashboard.access.gate import Gate
from switchboard.dashboard.access.one_time_links import OneTimeLinks
from switchboard.dashboard.access.origins import is_htmx
from switchboard.dashboard.rendering import Pages

_log = structlog.get_logger(__name__)


def opening_routes(gate: Gate, pages: Pages, links: OneTimeLinks) -> APIRouter:
    router = APIRouter(route_class=gate.open_route(), include_in_schema=False)

    @router.get("/open/{token}")
    async def look(request: Request, token: str) -> Response:
        if await gate.still_signed_in(request):  # clicked once more: there is nothing left to do for it
            return RedirectResponse("/", 303)
        if not links.seems_good(token):
            return over(request, token)
        return pages.show(request, "opening.html", good=True, by_itself=_meant(request))

    @router.post("/open/{token}")
    async def sign_in(request: Request, token: str) -> Response:
        response = Response(headers={"HX-Redirect": "/"}) if is_htmx(request) else RedirectResponse("/", 303)
        if await gate.still_signed_in(request):
            return response
        opened = await links.use(token)
        if opened is None:
            return over(request, token)
        _log.info("dashboard.signed_in", who=opened.who, address=request.client.host if request.client else "")
        await gate.visitors.begin(request, response, opened)
        return response

    def over(request: Request, token: str) -> Response:
        """How to get another one is told to who had one: it names folders of the server."""
        return pages.show(request, "opening.html", 410, good=False, ours=links.is_ours(token))

    return router


def _meant(request: Request) -> bool:
    """A person typed or clicked it outside of any site; nobody loads it in advance or leads here from elsewhere."""
    ahead = "sec-purpose" in request.headers or request.headers.get("purpose") == "prefetch"
    return not ahead and request.headers.get("sec-fetch-site", "none") in {"none", "same-origin"}
