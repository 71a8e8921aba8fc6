"""One code for one phone's owner, by a link and without a sign-in: the code, the steps, and nothing else."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse, StreamingResponse
from markupsafe import Markup

from switchboard.dashboard.access.gate import Gate
from switchboard.dashboard.access.origins import is_htmx
from switchboard.dashboard.access.scan_links import ScanClaim, still_good
from switchboard.dashboard.catalogue import NAMES
from switchboard.dashboard.language import remember
from switchboard.dashboard.live import changes
from switchboard.dashboard.pages.link_stages import linking_of
from switchboard.dashboard.rendering import Pages
from switchboard.dashboard.services import Services
from switchboard.domain.errors import ScanLinkExpired, ScanLinkInvalid
from switchboard.domain.sessions import Session
from switchboard.orchestrator.qr_images import inline_svg

_HIDDEN = {"Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex, nofollow"}
_STREAM = {"X-Accel-Buffering": "no"} | _HIDDEN


def scan_routes(gate: Gate, pages: Pages, services: Services, stopping: asyncio.Event) -> APIRouter:
    router = APIRouter(route_class=gate.open_route(), include_in_schema=False)

    @router.get("/scan/{token}")
    async def scan(request: Request, token: str, language: Annotated[str, Query(max_length=8)] = "") -> Response:
        response = _switched(request, language) if language in NAMES else await _page(request, pages, services, token)
        response.headers.update(_HIDDEN)
        return response

    @router.get("/scan/{token}/live")
    async def live(token: str) -> StreamingResponse:
        claim = services.scan_links.read(token)
        if not await _is_good(services, token):
            raise ScanLinkExpired
        told = _news(services, stopping, token, f"session:{claim.session_id}")
        return StreamingResponse(told, media_type="text/event-stream", headers=_STREAM)

    return router


async def _page(request: Request, pages: Pages, services: Services, token: str) -> Response:
    try:
        claim = services.scan_links.read(token)
        session = await _session(services, claim)
    except (ScanLinkExpired, ScanLinkInvalid):
        return pages.show(request, "scan/over.html", 410, how="expired")
    if not still_good(claim, session):
        # A page that waited for it says so; whoever comes later only learns that it is over.
        waited = is_htmx(request)
        return pages.show(request, "scan/over.html", 200 if waited else 410, how="linked" if waited else "used")
    found = await linking_of(services, session)
    qr = Markup(inline_svg(found.qr.text)) if found.qr else None  # noqa: S704 - drawn by us
    return pages.show(request, "scan/scan.html", linking=found, qr=qr, topic=f"session:{session.id}")


async def _news(services: Services, stopping: asyncio.Event, token: str, topic: str) -> AsyncIterator[str]:
    """Until the link is over; that is the last news, for which the page looks once more."""
    async for told in changes(services.store, stopping, lambda: _is_good(services, token), topic):
        yield told
    yield f"event: changed\ndata: {json.dumps({'topics': [topic]})}\n\n"


async def _is_good(services: Services, token: str) -> bool:
    try:
        claim = services.scan_links.read(token)
        return still_good(claim, await _session(services, claim))
    except ScanLinkExpired:
        return False


async def _session(services: Services, claim: ScanClaim) -> Session:
    session = await services.store.sessions.get(claim.session_id)
    if session is None or session.created_at != claim.created_at:
        raise ScanLinkExpired
    return session


def _switched(request: Request, language: str) -> Response:
    response = RedirectResponse(request.url.path, 303)
    remember(response, language)
    return response
