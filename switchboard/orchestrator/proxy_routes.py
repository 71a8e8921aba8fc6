"""The paths of the proxy pool. A proxy is shown by its id and host, never with its credentials."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse
from pydantic import AfterValidator

from switchboard.domain import errors
from switchboard.domain.ids import is_proxy_id
from switchboard.orchestrator.api_models import (
    InventoryAnswer,
    ProbeAnswer,
    ProxyAnswer,
    ProxyList,
    ProxyRequest,
    RemovedAnswer,
)
from switchboard.orchestrator.proxy_care import ProxyCare
from switchboard.orchestrator.proxy_views import ProxyViews
from switchboard.web.auth import Guard, caller_of
from switchboard.web.errors import documented
from switchboard.web.routing import ALWAYS, SECURITY


def _proxy_id(text: str) -> str:
    if not is_proxy_id(text):
        raise errors.ProxyNotFound(text)
    return text


ProxyId = Annotated[str, AfterValidator(_proxy_id)]
Force = Annotated[bool, Query(description="Move its sessions to others, or let them wait.")]


def proxy_routes(guard: Guard, care: ProxyCare, views: ProxyViews) -> APIRouter:
    router = APIRouter(route_class=guard.route("admin"), tags=["proxies"])

    def answers(model: type[Any], *kinds: type[errors.SwitchboardError]) -> dict[str, Any]:
        return {"openapi_extra": SECURITY, "responses": {200: {"model": model}, **documented(*ALWAYS, *kinds)}}

    @router.get("/api/proxies", summary="The pool", **answers(ProxyList))
    async def proxies(request: Request) -> JSONResponse:
        caller_of(request).require_session(None)
        return JSONResponse(await views.all())

    @router.post(
        "/api/proxies", summary="Add one; it is tried at once", openapi_extra=SECURITY,
        responses={
            201: {"model": ProxyAnswer},
            200: {"model": ProxyAnswer, "description": "It was there already; its password is brought up to date."},
            **documented(*ALWAYS, errors.InvalidRequest, errors.PayloadTooLarge),
        },
        status_code=201,
    )  # fmt: skip
    async def add(request: Request, body: ProxyRequest) -> JSONResponse:
        caller_of(request).require_session(None)
        proxy, new = await care.add(body.url)
        return JSONResponse(views.show(proxy), 201 if new else 200)

    @router.delete(
        "/api/proxies/{proxyId}", summary="Remove one",
        **answers(RemovedAnswer, errors.InvalidRequest, errors.ProxyNotFound, errors.ProxyInUse),
    )  # fmt: skip
    async def remove(request: Request, proxyId: ProxyId, force: Force = False) -> JSONResponse:
        caller_of(request).require_session(None)
        await care.remove(proxyId, force=force)
        return JSONResponse({"removed": True, "proxyId": proxyId})

    @router.post("/api/proxies/{proxyId}/probe", summary="Try it now", **answers(ProbeAnswer, errors.ProxyNotFound))
    async def probe(request: Request, proxyId: ProxyId) -> JSONResponse:
        caller_of(request).require_session(None)
        return JSONResponse(await views.probe(proxyId))

    @router.get("/api/inventory", summary="How many more sessions the pool can take", **answers(InventoryAnswer))
    async def inventory(request: Request) -> JSONResponse:
        caller_of(request).require_session(None)
        return JSONResponse(await views.inventory())

    return router
