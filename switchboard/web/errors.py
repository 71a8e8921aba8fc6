"""The one table from errors to HTTP, and the one shape every error answer has."""

from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from switchboard.domain import errors
from switchboard.domain.errors import SwitchboardError

_log = structlog.get_logger(__name__)

STATUS: Mapping[type[SwitchboardError], int] = {
    errors.Unauthorized: 401,
    errors.Forbidden: 403,
    errors.RateLimited: 429,
    errors.InvalidRequest: 400,
    errors.PayloadTooLarge: 413,
    errors.NotFound: 404,
    errors.SessionNotFound: 404,
    errors.MessageNotFound: 404,
    errors.BatchNotFound: 404,
    errors.SessionNotLinked: 409,
    errors.RecipientOptedOut: 403,
    errors.DailyLimitReached: 429,
    errors.QueueFull: 429,
    errors.IdempotencyConflict: 409,
    errors.MessageNotWaiting: 409,
    errors.ProxyNotFound: 404,
    errors.QrNotReady: 404,
    errors.SessionExists: 409,
    errors.InvalidTransition: 409,
    errors.TooManySessions: 409,
    errors.NoProxyAvailable: 409,
    errors.ProxyInUse: 409,
    errors.ScanLinkInvalid: 404,
    errors.ScanLinkExpired: 410,
    errors.StoreUnavailable: 503,
}

STORE_RETRY_S = 2


def error_response(error: SwitchboardError) -> JSONResponse:
    body = {"error": error.code, "message": error.message, **error.details}
    return JSONResponse(body, STATUS[type(error)], headers=error_headers(error))


def error_headers(error: SwitchboardError) -> dict[str, str]:
    match error:
        case errors.RateLimited():
            return {"Retry-After": str(error.details["retryAfter"])}
        case errors.StoreUnavailable():
            return {"Retry-After": str(STORE_RETRY_S)}
        case errors.Unauthorized():
            return {"WWW-Authenticate": "Bearer"}
    return {}


def invalid_request(found: Sequence[Any]) -> errors.InvalidRequest:
    """Names the first wrong field, and lists them all. Never repeats what was sent: it may be a message text."""
    faults = [{"field": _field(one["loc"]), "message": _sentence(one)} for one in found]
    first = faults[0]
    return errors.InvalidRequest(f"{first['field']}: {first['message']}", first["field"], fields=faults)


def _sentence(fault: Any) -> str:
    if fault["type"] == "extra_forbidden":
        return "there is no such field"
    message: str = fault["msg"]
    return message.removeprefix("Value error, ")


def _field(location: tuple[int | str, ...]) -> str:
    inner = location[1:] if location and location[0] in {"body", "query", "path", "header"} else location
    return ".".join(str(part) for part in inner if isinstance(part, str)) or "body"


def install_error_handlers(app: FastAPI) -> None:
    async def known(_: Request, error: SwitchboardError) -> Response:
        return error_response(error)

    async def invalid(_: Request, error: RequestValidationError) -> Response:
        return error_response(invalid_request(error.errors()))

    async def http(_: Request, error: HTTPException) -> Response:
        code = {404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED"}.get(error.status_code, "INVALID_REQUEST")
        return JSONResponse({"error": code, "message": str(error.detail)}, error.status_code, headers=error.headers)

    async def gone(_: Request, __: Exception) -> Response:
        return Response(status_code=499)  # nobody is there to read it

    async def unexpected(request: Request, error: Exception) -> Response:
        _log.error("http.unexpected", path=request.scope["path"], exc_info=error)
        return JSONResponse(
            {"error": "INTERNAL_ERROR", "message": "Something went wrong here; it has been logged."}, 500
        )

    handlers: dict[type[Exception], Any] = {
        SwitchboardError: known,
        RequestValidationError: invalid,
        HTTPException: http,
        ClientDisconnect: gone,
        Exception: unexpected,
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)


def documented(*kinds: type[SwitchboardError]) -> dict[int | str, dict[str, Any]]:
    """The error answers of a route for its OpenAPI entry, one example for each code."""
    by_status: dict[int | str, dict[str, Any]] = {}
    for kind in kinds:
        entry = by_status.setdefault(
            STATUS[kind],
            {
                "description": "",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}, "examples": {}}},
            },
        )
        entry["description"] = ", ".join(filter(None, [entry["description"], f"`{kind.code}`"]))
        entry["content"]["application/json"]["examples"][kind.code] = {"value": _example(kind)}
    return by_status


def _example(kind: type[SwitchboardError]) -> dict[str, Any]:
    samples: dict[type[SwitchboardError], SwitchboardError] = {
        errors.RateLimited: errors.RateLimited(17),
        errors.InvalidRequest: errors.InvalidRequest("to: is too short for its country", "to"),
        errors.SessionNotFound: errors.SessionNotFound("worker_9"),
        errors.MessageNotFound: errors.MessageNotFound("5f0c1d2e3a4b5c6d7e"),
        errors.BatchNotFound: errors.BatchNotFound("batch_5f0c1d2e3a4b5c6d7e"),
        errors.SessionNotLinked: errors.SessionNotLinked("worker_1"),
        errors.RecipientOptedOut: errors.RecipientOptedOut("972509876543"),
        errors.DailyLimitReached: errors.DailyLimitReached(20, 20, "2026-11-16T00:00:00+02:00"),
        errors.QueueFull: errors.QueueFull(1000),
        errors.IdempotencyConflict: errors.IdempotencyConflict(),
        errors.MessageNotWaiting: errors.MessageNotWaiting("5f0c1d2e3a4b5c6d7e", "sent"),
        errors.ProxyNotFound: errors.ProxyNotFound("proxy_9"),
        errors.QrNotReady: errors.QrNotReady("worker_1", "starting"),
        errors.SessionExists: errors.SessionExists("worker_1"),
        errors.InvalidTransition: errors.InvalidTransition("worker_1", "stop", "stopped", "it is stopped already"),
        errors.TooManySessions: errors.TooManySessions(4),
        errors.NoProxyAvailable: errors.NoProxyAvailable(
            "No proxy has room: 8 of 8 places are taken. Add a proxy, or delete a session.", reason="pool_full"
        ),
        errors.ProxyInUse: errors.ProxyInUse("proxy_1", ["worker_1"]),
        errors.ScanLinkInvalid: errors.ScanLinkInvalid(),
        errors.ScanLinkExpired: errors.ScanLinkExpired(),
        errors.StoreUnavailable: errors.StoreUnavailable(),
    }
    sample = samples.get(kind) or kind("Send your key in the X-API-Key header.")
    return {"error": sample.code, "message": sample.message, **sample.details}
