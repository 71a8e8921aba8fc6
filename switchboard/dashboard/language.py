"""The switch between languages: remembered by the browser, for everybody who uses it."""

from typing import Annotated

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import RedirectResponse

from switchboard.dashboard.access.gate import Gate
from switchboard.dashboard.access.origins import local_path
from switchboard.dashboard.catalogue import NAMES
from switchboard.dashboard.rendering import LANGUAGE
from switchboard.domain.errors import InvalidRequest

_YEAR_S = 365 * 86_400


def language_routes(gate: Gate) -> APIRouter:
    router = APIRouter(route_class=gate.open_route(), include_in_schema=False)

    @router.post("/language")
    async def choose(
        request: Request,
        language: Annotated[str, Form()],
        next: Annotated[str, Form()] = "/",  # noqa: A002
    ) -> Response:
        if language not in NAMES:
            raise InvalidRequest("language: there is no such language here", "language")
        response = RedirectResponse(local_path(next) or "/", 303)
        remember(response, language)
        return response

    return router


def remember(response: Response, language: str) -> None:
    response.set_cookie(LANGUAGE, language, max_age=_YEAR_S, httponly=True, samesite="lax")
