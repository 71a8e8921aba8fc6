"""Linking a phone: one press makes the session; its page then shows a code until it is scanned."""

import secrets
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import RedirectResponse
from markupsafe import Markup

from switchboard.dashboard.access.gate import Gate
from switchboard.dashboard.access.origins import is_htmx
from switchboard.dashboard.pages.link_stages import Linking, linking_of
from switchboard.dashboard.rendering import Pages
from switchboard.dashboard.services import PhoneRefused, Services
from switchboard.domain.errors import InvalidRequest, InvalidTransition, NotFound, QrNotReady, SessionNotFound
from switchboard.domain.phones import PhoneError, normalise
from switchboard.orchestrator.qr_images import inline_svg
from switchboard.orchestrator.sessions import Request as Wish
from switchboard.web.routing import SessionId

Name = Annotated[str, Form(max_length=100)]
Phone = Annotated[str, Form(max_length=40)]
ProxyId = Annotated[str, Form(pattern=r"^(proxy_[0-9]{1,12})?$")]
Once = Annotated[str, Form(max_length=64, pattern=r"^[A-Za-z0-9_-]*$")]
_LTR, _END = "\u2066", "\u2069"
_HERE_ONLY = {"localhost", "127.0.0.1", "::1"}


def linking_pages(gate: Gate, pages: Pages, services: Services) -> APIRouter:
    router = APIRouter(route_class=gate.route(), include_in_schema=False)
    _making(router, pages, services)
    _link_page(router, pages, services)
    _ways_out(router, pages, services)
    return router


def _making(router: APIRouter, pages: Pages, services: Services) -> None:
    @router.get("/sessions/new")
    async def new(request: Request) -> Response:
        pool = (await services.proxy_views.all())["items"]
        inventory = await services.proxy_views.inventory()
        share, once = services.store.sessions.rules.per_proxy, secrets.token_urlsafe(16)
        return pages.show(request, "linking/new.html", proxies=pool, inventory=inventory, once=once, share=share)

    @router.post("/sessions")
    async def make(
        request: Request, name: Name = "", phone: Phone = "", proxy: ProxyId = "", once: Once = ""
    ) -> Response:
        wish = Wish(phone=number(request, phone), proxy=proxy, name=printable(request, name))
        session = await services.sessions.provision(wish, f"dashboard:{once}" if once else "")
        return _go(request, f"/sessions/{session}/link")

    def number(request: Request, text: str) -> str:
        return _number(pages, request, text, services.default_country) if text.strip() else ""

    def printable(request: Request, text: str) -> str:
        if not text.isprintable():
            raise InvalidRequest(pages.texts(request)("linking.bad_name"), "name")
        return text.strip()


def _link_page(router: APIRouter, pages: Pages, services: Services) -> None:
    async def show(request: Request, session: str, part: str = "link", **values: object) -> Response:
        """The page; only the part that was asked for if it was asked for by htmx, in answer to a form."""
        found = await linking_of(services, await services.store.sessions.find(session))
        given: dict[str, Any] = {
            "linking": found,
            "qr": Markup(inline_svg(found.qr.text)) if found.qr else None,  # noqa: S704 - drawn by us
            "can_scan": services.phone is not None,
            "scan_link": None,
            "url": _path(session),  # whatever was asked for: the parts of the page are fetched from there
        }
        template = part if is_htmx(request) else "link"
        return pages.show(request, f"linking/{template}.html", **given | values)

    @router.get("/sessions/{session}/link")
    async def link(request: Request, session: SessionId) -> Response:
        try:
            return await show(request, session)
        except SessionNotFound:
            if not is_htmx(request):
                raise
            return pages.show(request, "session/gone.html", part="link", session_id=session)

    @router.post("/sessions/{session}/pairing-code")
    async def pairing_code(request: Request, session: SessionId, phone: Phone = "") -> Response:
        number = _number(pages, request, phone, services.default_country)
        await services.sessions.pairing_code(session, number)
        return await show(request, session, "pairing")

    @router.post("/sessions/{session}/scan-link")
    async def scan_link(request: Request, session: SessionId) -> Response:
        found = await linking_of(services, await services.store.sessions.find(session))
        _require_open(found)
        made = services.scan_links.make(found.session)
        return await show(
            request,
            session,
            "owner",
            scan_link=f"{request.base_url}scan/{made.token}",
            scan_link_until=pages.formats(request).local(made.expires_at),
            only_here=request.url.hostname in _HERE_ONLY,
        )

    @router.post("/sessions/{session}/demo-scan")
    async def demo_scan(request: Request, session: SessionId) -> Response:
        if services.phone is None:
            raise NotFound("There is nothing at this address.")
        code = await services.sessions.qr(session)
        try:
            phone = await services.phone.scan(code.text)
        except PhoneRefused:
            raise QrNotReady(session, "qr_ready") from None
        shown = f"{_LTR}{pages.formats(request).phone(phone)}{_END}"
        return pages.done(request, "linking.demo_scanned", phone=shown)


def _ways_out(router: APIRouter, pages: Pages, services: Services) -> None:
    @router.post("/sessions/{session}/link/again")
    async def again(request: Request, session: SessionId) -> Response:
        await services.sessions.start(session)
        return _go(request, _path(session))

    @router.post("/sessions/{session}/link/cancel")
    async def cancel(request: Request, session: SessionId) -> Response:
        """Only while there is nothing to lose: one that was ever linked is not deleted by the way."""
        found = await linking_of(services, await services.store.sessions.find(session))
        if not found.is_new:
            raise InvalidTransition(session, "cancel", found.session.state.value, "it was linked")
        await services.sessions.delete(session)
        return pages.done(request, "linking.cancelled", then="/")


def _require_open(linking: Linking) -> None:
    if not linking.is_open:
        session = linking.session
        raise InvalidTransition(session.id, "link", session.state.value, "it does not wait for a scan")


def _number(pages: Pages, request: Request, text: str, default_country: str | None) -> str:
    try:
        return normalise(text, default_country)
    except PhoneError:
        raise InvalidRequest(pages.texts(request)("linking.bad_phone"), "phone") from None


def _path(session: str) -> str:
    return f"/sessions/{session}/link"


def _go(request: Request, path: str) -> Response:
    return Response(headers={"HX-Redirect": path}) if is_htmx(request) else RedirectResponse(path, 303)
