"""What a person sees at an address where nothing is. Programs, and the API, get the JSON they get everywhere."""

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from switchboard.dashboard.access.gate import ErrorPages
from switchboard.dashboard.access.headers import new_nonce, protect
from switchboard.dashboard.access.origins import is_from_a_person

_API = "/api/"


def nowhere(pages: ErrorPages) -> APIRouter:
    """A router without routes: its `default` answers what no route does."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(_API) or not is_from_a_person(Request(scope)):
            await router.not_found(scope, receive, send)  # raises, for the app's own handler
            return
        request = Request(scope, receive)
        request.state.nonce = new_nonce()
        response = pages.error(request, HTTPException(404), 404)
        protect(response, request.state.nonce)
        await response(scope, receive, send)

    router = APIRouter(default=answer)
    return router
