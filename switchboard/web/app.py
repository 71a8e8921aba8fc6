"""The web application that the parts hang their routes on: health, error handling, OpenAPI."""

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute

import switchboard
from switchboard.domain.errors import PayloadTooLarge, StoreUnavailable
from switchboard.store import Store
from switchboard.web.errors import STORE_RETRY_S, install_error_handlers

_ERROR_SCHEMA = {
    "type": "object",
    "required": ["error", "message"],
    "properties": {
        "error": {"type": "string", "description": "A code to program against."},
        "message": {"type": "string", "description": "A sentence for people."},
    },
    "additionalProperties": True,
}


Routers = Sequence[APIRouter]


def create_app(store: Store, parts: Sequence[str], routers: Routers) -> FastAPI:
    app = FastAPI(
        title="Switchboard",
        version=switchboard.__version__,
        description="Sends WhatsApp messages through many accounts, at a pace they can bear.",
        docs_url=None,  # theirs load scripts from elsewhere, onto the origin where people are signed in
        redoc_url=None,
    )
    install_error_handlers(app)
    # Side by side, the busiest first: a router within a router is one more search for every request.
    for router in (*routers, _health(store, parts)):
        app.router.routes.extend(router.routes)
        if router.default != router.not_found:  # it has something to say where nothing is
            app.router.default = router.default
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


def _openapi(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        components = schema.setdefault("components", {})
        components.setdefault("schemas", {})["Error"] = _ERROR_SCHEMA
        for unused in ("HTTPValidationError", "ValidationError"):
            components["schemas"].pop(unused, None)
        components["securitySchemes"] = {
            "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            "bearer": {"type": "http", "scheme": "bearer"},
        }
        for path in schema["paths"].values():
            for operation in path.values():
                operation.get("responses", {}).pop("422", None)
        _name_scopes(app, schema["paths"])
        app.openapi_schema = schema
    return app.openapi_schema


def _name_scopes(app: FastAPI, paths: dict[str, Any]) -> None:
    """OpenAPI has a place for scopes only where keys come from OAuth; ours are told in a field of our own."""
    for route in app.routes:
        if isinstance(route, APIRoute) and route.include_in_schema and (scope := getattr(route, "needs", None)):
            for method in route.methods or ():
                paths[route.path_format][method.lower()]["x-scope"] = scope


def _health(store: Store, parts: Sequence[str]) -> APIRouter:
    router = APIRouter(tags=["health"])

    @router.get("/health/live", summary="The process answers")
    async def live() -> JSONResponse:
        return JSONResponse({"status": "ok"})

    async def ready() -> JSONResponse:
        try:
            await store.ping()
        except StoreUnavailable:
            body = {"status": "unavailable", "parts": list(parts), "store": "away"}
            return JSONResponse(body, 503, headers={"Retry-After": str(STORE_RETRY_S)})
        return JSONResponse({"status": "ok", "parts": list(parts), "store": "ok"})

    router.add_api_route("/health", ready, methods=["GET"], summary="It answers and its store does")
    router.add_api_route("/health/ready", ready, methods=["GET"], summary="The same, for load balancers")
    return router


async def bounded_body(request: Request, limit: int) -> bytes:
    """The body, read no further than `limit` bytes, and kept for whoever asks the request again."""
    declared = request.headers.get("content-length")
    if declared is not None and declared.isdigit() and int(declared) > limit:
        raise PayloadTooLarge(f"The body has {declared} bytes; at most {limit} are read.", limit=limit)
    if declared is not None:
        return await request.body()
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise PayloadTooLarge(f"The body has more than {limit} bytes.", limit=limit)
        chunks.append(chunk)
    body = b"".join(chunks)
    request._body = body  # noqa: SLF001 - where Request.body() keeps it: a stream can be read only once
    return body
