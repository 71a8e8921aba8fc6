"""The paths of sessions. Each is a few lines: who may, what is asked, which function answers."""

from typing import Annotated, Any
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse

from switchboard.domain import errors
from switchboard.domain.phones import PhoneError, normalise
from switchboard.domain.sessions import State
from switchboard.orchestrator.api_models import (
    CreateRequest,
    DeleteAnswer,
    EventList,
    FleetAnswer,
    PairingAnswer,
    PairingRequest,
    PauseRequest,
    ProvisionRequest,
    QrAnswer,
    SessionAnswer,
    SessionList,
)
from switchboard.orchestrator.overview import Overview
from switchboard.orchestrator.qr_images import image
from switchboard.orchestrator.session_views import SessionViews
from switchboard.orchestrator.sessions import Request as Wish
from switchboard.orchestrator.sessions import SessionService
from switchboard.web.auth import Guard, caller_of
from switchboard.web.errors import documented
from switchboard.web.routing import ALWAYS, SECURITY, IdempotencyKey, Limit, SessionId
from switchboard.web.times import iso_or_none, ms

_NO_STORE = {"Cache-Control": "no-store"}
_FOUND = (*ALWAYS, errors.SessionNotFound)
_MADE = (
    *ALWAYS, errors.InvalidRequest, errors.PayloadTooLarge, errors.ProxyNotFound, errors.NoProxyAvailable,
    errors.TooManySessions,
)  # fmt: skip
_COMMANDS = {
    "start": "Start a session that does not run",
    "stop": "Stop it; it stays linked, and can be started again",
    "restart": "Replace its worker; no new scan",
    "logout": "Unlink it from its phone",
    "resume": "Let its account send again",
}
After = Annotated[str | None, Query(max_length=66, pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
_STATE = f"({'|'.join(State)})"
States = Annotated[str | None, Query(pattern=f"^{_STATE}(,{_STATE})*$", description="Only in these, by commas.")]
Search = Annotated[str | None, Query(max_length=100, description="Part of an id, a name or a phone number.")]
Before = Annotated[str | None, Query(max_length=40, pattern=r"^[0-9]+-[0-9]+$")]


def _answers(model: type[Any], *kinds: type[errors.SwitchboardError], status: int = 200) -> dict[str, Any]:
    return {"openapi_extra": SECURITY, "responses": {status: {"model": model}, **documented(*kinds)}}


def _phone(text: str | None, default_country: str | None) -> str:
    try:
        return normalise(text, default_country) if text else ""
    except PhoneError as error:
        raise errors.InvalidRequest(f"phone: {error}", "phone") from None


def session_read_routes(guard: Guard, views: SessionViews, overview: Overview) -> APIRouter:
    router = APIRouter(route_class=guard.route("read"), tags=["sessions"], prefix="/api/sessions")

    @router.get(
        "", summary="All sessions by id; with a status or a search those that match, first those that need a person",
        **_answers(SessionList, *ALWAYS, errors.InvalidRequest),
    )  # fmt: skip
    async def sessions(
        request: Request, limit: Limit = 50, cursor: After = None, status: States = None, search: Search = None
    ) -> JSONResponse:
        only = caller_of(request).key.sessions
        if not status and not search:
            return JSONResponse(await views.page(limit, cursor, only))
        states = frozenset(map(State, status.split(","))) if status else frozenset()
        return JSONResponse(await overview.page(states, search or "", limit, cursor, only=only))

    @router.get("/{sessionId}", summary="One session", **_answers(SessionAnswer, *_FOUND))
    async def session(request: Request, sessionId: SessionId) -> JSONResponse:
        caller_of(request).require_session(sessionId)
        return JSONResponse(await views.one(sessionId))

    @router.get(
        "/{sessionId}/events", summary="What happened to it, newest first",
        **_answers(EventList, *_FOUND, errors.InvalidRequest),
    )  # fmt: skip
    async def events(request: Request, sessionId: SessionId, limit: Limit = 50, cursor: Before = None) -> JSONResponse:
        caller_of(request).require_session(sessionId)
        return JSONResponse(await views.events(sessionId, limit, cursor))

    return router


def fleet_routes(guard: Guard, overview: Overview) -> APIRouter:
    router = APIRouter(route_class=guard.route("read"), tags=["sessions"])

    @router.get("/api/fleet", summary="The whole fleet in figures", **_answers(FleetAnswer, *ALWAYS))
    async def fleet(request: Request) -> JSONResponse:
        caller_of(request).require_session(None)
        found = await overview.figures()
        return JSONResponse(
            {
                "sessions": {state.value: count for state, count in found.sessions.items()},
                "attention": found.attention,
                "accounts": found.accounts,
                "sentToday": found.sent_today,
                "allowanceToday": found.allowance_today,
                "waiting": found.waiting,
                "scheduled": found.scheduled,
                "jobs": found.jobs,
                "dead": found.dead,
            }
        )

    return router


def session_making_routes(
    guard: Guard, service: SessionService, views: SessionViews, default_country: str | None
) -> APIRouter:
    router = APIRouter(route_class=guard.route("admin"), tags=["sessions"], prefix="/api/sessions")

    async def made(wish: Wish, once: str) -> JSONResponse:
        session = await service.provision(wish, once)
        return JSONResponse(await views.one(session), 201)

    @router.post(
        "/provision", summary="A new session: proxy chosen, worker started", status_code=201,
        **_answers(SessionAnswer, *_MADE, errors.IdempotencyConflict, errors.SessionNotFound, status=201),
    )  # fmt: skip
    async def provision(
        request: Request, body: ProvisionRequest | None = None, key: IdempotencyKey = None
    ) -> JSONResponse:
        caller = caller_of(request)
        caller.require_session(None)
        body = body or ProvisionRequest()
        wish = Wish(phone=_phone(body.phone, default_country), proxy=body.proxy or "", name=body.name or "")
        return await made(wish, f"{caller.key.id}:{key}" if key else "")

    @router.post(
        "", summary="The same with an id of one's own", status_code=201,
        **_answers(SessionAnswer, *_MADE, errors.SessionExists, status=201),
    )  # fmt: skip
    async def create(request: Request, body: CreateRequest) -> JSONResponse:
        caller_of(request).require_session(body.sessionId)
        if "://" in (body.proxyOverride or ""):
            caller_of(request).require_session(None)  # a new proxy is everybody's business
        wish = Wish(
            body.sessionId,
            _phone(body.phone, default_country),
            body.proxyOverride or "",
            body.name or "",
            "proxyOverride",
        )
        return await made(wish, "")

    return router


def session_command_routes(guard: Guard, service: SessionService, views: SessionViews) -> APIRouter:
    router = APIRouter(route_class=guard.route("admin"), tags=["sessions"], prefix="/api/sessions")

    def command(name: str) -> None:
        act = getattr(service, name)

        async def run(request: Request, sessionId: SessionId) -> JSONResponse:
            caller_of(request).require_session(sessionId)
            if name == "resume":
                caller_of(request).require_account(await service.sharing(sessionId))
            await act(sessionId)
            return JSONResponse(await views.one(sessionId))

        router.add_api_route(
            f"/{{sessionId}}/{name}", run, methods=["POST"], name=f"session_{name}", summary=_COMMANDS[name],
            **_answers(SessionAnswer, *_FOUND, errors.InvalidTransition,
                       *([errors.TooManySessions] if name in ("start", "restart") else [])),
        )  # fmt: skip

    for name in _COMMANDS:
        command(name)

    @router.post(
        "/{sessionId}/pause", summary="Its account sends nothing, until then or until it is resumed",
        **_answers(SessionAnswer, *_FOUND, errors.InvalidRequest, errors.PayloadTooLarge, errors.InvalidTransition),
    )  # fmt: skip
    async def pause(request: Request, sessionId: SessionId, body: PauseRequest | None = None) -> JSONResponse:
        caller_of(request).require_session(sessionId)
        caller_of(request).require_account(await service.sharing(sessionId))
        until = body.until if body else None
        await service.pause(sessionId, ms(until) if until else None)
        return JSONResponse(await views.one(sessionId))

    @router.delete(
        "/{sessionId}", summary="Log out, stop, free its places, remove its data", openapi_extra=SECURITY,
        responses={
            200: {"model": DeleteAnswer},
            202: {"model": DeleteAnswer, "description": "It is still being done."},
            **documented(*_FOUND, errors.InvalidTransition),
        },
    )  # fmt: skip
    async def delete(request: Request, sessionId: SessionId) -> JSONResponse:
        caller_of(request).require_session(sessionId)
        done, unlinked = await service.delete(sessionId)
        answer = {"deleted": done, "sessionId": sessionId, "unlinked": unlinked}
        return JSONResponse(answer, 200 if done else 202)

    return router


def code_routes(guard: Guard, service: SessionService, zone: ZoneInfo, default_country: str | None) -> APIRouter:
    router = APIRouter(route_class=guard.route("admin"), tags=["sessions"], prefix="/api/sessions")

    @router.get(
        "/{sessionId}/qr", summary="The current QR code, as JSON, SVG or PNG by Accept", openapi_extra=SECURITY,
        responses={
            200: {"model": QrAnswer, "content": {"image/svg+xml": {}, "image/png": {}}},
            **documented(*_FOUND, errors.QrNotReady),
        },
    )  # fmt: skip
    async def qr(request: Request, sessionId: SessionId) -> Response:
        caller_of(request).require_session(sessionId)
        code = await service.qr(sessionId)
        accept = request.headers.get("accept", "")
        for kind in ("svg", "png"):
            if f"image/{kind}" in accept:
                media = "image/svg+xml" if kind == "svg" else "image/png"
                return Response(image(code.text, kind), media_type=media, headers=_NO_STORE)
        body = {"sessionId": sessionId, "qr": code.text, "expiresAt": iso_or_none(code.expires_at, zone)}
        return JSONResponse(body, headers=_NO_STORE)

    @router.post(
        "/{sessionId}/pairing-code", summary="Link by an 8-letter code instead of a QR code",
        **_answers(PairingAnswer, *_FOUND, errors.InvalidRequest, errors.PayloadTooLarge, errors.InvalidTransition,
                   errors.QrNotReady),
    )  # fmt: skip
    async def pairing_code(request: Request, sessionId: SessionId, body: PairingRequest) -> JSONResponse:
        caller_of(request).require_session(sessionId)
        phone = _phone(body.phone, default_country)
        code = await service.pairing_code(sessionId, phone)
        return JSONResponse(
            {
                "sessionId": sessionId,
                "phone": phone,
                "code": code.text,
                "expiresAt": iso_or_none(code.expires_at, zone),
            },
            headers=_NO_STORE,
        )

    return router
