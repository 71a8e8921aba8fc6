"""The pages that open and close the dashboard: one field for a secret, one button to leave."""

from typing import Annotated, Protocol

import structlog
from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import RedirectResponse

from switchboard.dashboard.access.door import Door
from switchboard.dashboard.access.gate import Gate
from switchboard.dashboard.access.origins import SIGN_IN, local_path
from switchboard.domain.errors import Forbidden, RateLimited, SwitchboardError, Unauthorized
from switchboard.web.errors import STATUS, error_headers

_log = structlog.get_logger(__name__)
_FAULTS: dict[type[SwitchboardError], str] = {Unauthorized: "wrong", Forbidden: "limited_key", RateLimited: "wait"}


class ShowsPages(Protocol):
    def show(self, request: Request, template: str, /, status: int = 200, **values: object) -> Response: ...


def sign_in_routes(gate: Gate, door: Door, pages: ShowsPages) -> list[APIRouter]:
    return [_entrance(gate, door, pages), _exit(gate)]


def _entrance(gate: Gate, door: Door, pages: ShowsPages) -> APIRouter:
    router = APIRouter(route_class=gate.open_route(), include_in_schema=False)

    @router.get(SIGN_IN)
    async def form(request: Request) -> Response:
        then = local_path(request.query_params.get("next")) or "/"
        if await gate.still_signed_in(request):
            return RedirectResponse(then, 303)
        return _form(pages, request, then)

    @router.post(SIGN_IN)
    async def sign_in(
        request: Request, secret: Annotated[str, Form()] = "", then: Annotated[str, Form(alias="next")] = ""
    ) -> Response:
        then = local_path(then) or "/"
        try:
            opened = await door.open(secret, _address(request))
        except (Unauthorized, Forbidden, RateLimited) as error:
            _log.warning("dashboard.refused", address=_address(request), error=error.code)
            return _form(pages, request, then, error)
        _log.info("dashboard.signed_in", who=opened.who, address=_address(request))
        response = RedirectResponse(then, 303)
        await gate.visitors.begin(request, response, opened)
        return response

    return router


def _exit(gate: Gate) -> APIRouter:
    router = APIRouter(route_class=gate.route(), include_in_schema=False)

    @router.post("/sign-out")
    async def sign_out(request: Request) -> Response:
        response = RedirectResponse(SIGN_IN, 303)
        await gate.sign_out(request, response)
        return response

    return router


def _form(pages: ShowsPages, request: Request, then: str, error: SwitchboardError | None = None) -> Response:
    status = STATUS[type(error)] if error else 200
    fault = _FAULTS[type(error)] if error else None
    wait = error.details.get("retryAfter", 0) if error else 0
    response = pages.show(request, "sign_in.html", status, then=then, fault=fault, wait=wait)
    response.headers.update(error_headers(error) if isinstance(error, RateLimited) else {})
    return response


def _address(request: Request) -> str:
    return request.client.host if request.client else ""
