"""Everything that a request passes before its page, and every answer on its way out: who, from where, and errors."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol

import structlog
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute
from python_multipart.multipart import parse_options_header
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from switchboard.dashboard.access.headers import new_nonce, protect
from switchboard.dashboard.access.origins import (
    SAFE_METHODS,
    is_from_a_person,
    is_htmx,
    page_above,
    refuse_cross_site,
    sign_in_url,
)
from switchboard.dashboard.access.signing import Signer
from switchboard.dashboard.access.visitors import Visitor, Visitors
from switchboard.domain.clock import Clock
from switchboard.domain.errors import Forbidden, InvalidRequest, SwitchboardError, Unauthorized
from switchboard.store import Store
from switchboard.web.app import bounded_body
from switchboard.web.auth import Guard
from switchboard.web.errors import STATUS, error_headers, error_response, invalid_request

__all__ = ["ErrorPages", "Gate", "Visitor", "visitor_of"]

_log = structlog.get_logger(__name__)
_MAX_BODY = 26 * 1024 * 1024  # a file of 25 MB, and the form around it
_MAX_OPEN_BODY = 64 * 1024

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
Check = Callable[[Request], Awaitable[None]]


class ErrorPages(Protocol):
    def error(self, request: Request, error: Exception, status: int) -> Response: ...


class Gate:
    """Routes made of its classes answer pages. `request.state` has a `nonce`, and a `visitor` or None."""

    def __init__(self, guard: Guard, store: Store, signer: Signer, clock: Clock, pages: ErrorPages) -> None:
        self.visitors = Visitors(guard, store.sign_ins, signer, clock)
        self._signer = signer
        self._pages = pages

    def route(self) -> type[APIRoute]:
        """Pages for those who are signed in."""
        return self._route(self._check_visitor)

    def open_route(self) -> type[APIRoute]:
        """Pages for everyone, with the same care."""
        return self._route(self._check_open)

    async def sign_out(self, request: Request, response: Response) -> None:
        request.state.visitor = None  # whose cookie is not to be renewed
        await self.visitors.end(request, response)

    async def still_signed_in(self, request: Request) -> bool:
        """For answers that go on for long."""
        return await self.visitors.recognise(request, renew=False) is not None

    def _route(self, check: Check) -> type[APIRoute]:
        gate = self

        class GatedRoute(APIRoute):
            async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
                request = Request(scope, receive)
                if request.method in (self.methods or ()) or not is_from_a_person(request):
                    await super().handle(scope, receive, send)
                else:
                    await gate._misaddressed(request)(scope, receive, send)

            def get_route_handler(self) -> Handler:
                handle = super().get_route_handler()

                async def gated(request: Request) -> Response:
                    return await gate._serve(request, check, handle)

                return gated

        return GatedRoute

    async def _serve(self, request: Request, check: Check, handle: Handler) -> Response:
        request.state.nonce = new_nonce()
        request.state.visitor = None
        try:
            response = await self._answer(request, check, handle)
        finally:
            await request.close()  # the files of a form
        visitor: Visitor | None = request.state.visitor
        if visitor and visitor.renewed_until:
            self.visitors.renew(request, response, visitor.renewed_until)
        protect(response, request.state.nonce)
        return response

    def _misaddressed(self, request: Request) -> Response:
        """What only takes forms was asked for as a page (loaded once more, say), or the other way round."""
        request.state.nonce = new_nonce()
        response: Response
        if request.method == "GET":
            response = RedirectResponse(page_above(request), 303)
        else:
            response = self._pages.error(request, HTTPException(405), 405)
        protect(response, request.state.nonce)
        return response

    async def _answer(self, request: Request, check: Check, handle: Handler) -> Response:
        try:
            await check(request)
            return await handle(request)
        except ClientDisconnect:
            raise  # nobody is there to read it
        except Unauthorized as error:
            return _ask_to_sign_in(request, error)
        except SwitchboardError as error:
            return self._refused(request, error)
        except RequestValidationError as error:
            return self._refused(request, invalid_request(error.errors()))
        except HTTPException as error:
            return self._pages.error(request, error, error.status_code)
        except Exception as error:  # noqa: BLE001 - a person gets a page, the log gets the reason
            # Not the path itself: what stands in it may be a secret that opens something.
            _log.error("http.unexpected", path=request.scope["route"].path, exc_info=error)
            return self._pages.error(request, error, 500)

    def _refused(self, request: Request, error: SwitchboardError) -> Response:
        response = self._pages.error(request, error, STATUS[type(error)])
        response.headers.update(error_headers(error))
        return response

    async def _check_open(self, request: Request) -> None:
        refuse_cross_site(request)
        _refuse_odd_charsets(request)
        await bounded_body(request, _MAX_OPEN_BODY)

    async def _check_visitor(self, request: Request) -> None:
        refuse_cross_site(request)
        _refuse_odd_charsets(request)
        visitor = await self.visitors.recognise(request)
        if visitor is None:
            raise Unauthorized("Sign in first.")
        request.state.visitor = visitor
        if request.method not in SAFE_METHODS:
            await bounded_body(request, _MAX_BODY)
            if not self._signer.is_same(visitor.csrf, await _csrf_of(request)):
                raise Forbidden("This page is too old, or not from here; load it again.", reason="csrf")


def _refuse_odd_charsets(request: Request) -> None:
    """A form is read in the encoding that its sender names, and some of those take for ever. Browsers send UTF-8."""
    _, options = parse_options_header(request.headers.get("content-type", ""))
    charset = options.get(b"charset", b"utf-8").decode("latin-1").strip().lower()
    if charset not in {"utf-8", "utf8"}:
        raise InvalidRequest("Content-Type: forms are read as UTF-8 only")


async def _csrf_of(request: Request) -> str:
    if "x-csrf-token" in request.headers:
        return request.headers["x-csrf-token"]
    sent = (await request.form(max_part_size=_MAX_BODY)).get("csrf")
    return sent if isinstance(sent, str) else ""


def _ask_to_sign_in(request: Request, error: Unauthorized) -> Response:
    if is_htmx(request):
        # The page says so, and stays: something may have been typed in it (assets/src/signed_out.ts).
        return Response(status_code=401, headers={"HX-Reswap": "none"})
    if "text/html" in request.headers.get("accept", ""):
        return RedirectResponse(sign_in_url(request), 303)
    return error_response(error)  # an event source or a script, which can't show a page


def visitor_of(request: Request) -> Visitor:
    visitor: Visitor = request.state.visitor
    return visitor
