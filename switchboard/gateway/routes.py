"""The public paths. Each is a few lines: who may, what is asked, which function answers."""

from datetime import date
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse
from pydantic import AfterValidator

from switchboard.domain import errors
from switchboard.domain.ids import is_batch_id, is_message_id
from switchboard.domain.trust import Overrides
from switchboard.gateway.changing import Changing
from switchboard.gateway.limits import overrides_of
from switchboard.gateway.models import (
    BatchAnswer,
    BatchProgress,
    BatchRequest,
    CancelAnswer,
    DayAnswer,
    DayList,
    DeadLetterList,
    LimitsAnswer,
    LimitsRequest,
    MessageAnswer,
    MessageList,
    SendAnswer,
    SendRequest,
)
from switchboard.gateway.reading import Reading
from switchboard.gateway.sending import Sending
from switchboard.web.auth import Guard, caller_of
from switchboard.web.errors import documented
from switchboard.web.routing import ALWAYS, SECURITY, IdempotencyKey, Limit, SessionId


def _message_id(text: str) -> str:
    if not is_message_id(text):
        raise errors.MessageNotFound(text)
    return text


def _batch_id(text: str) -> str:
    if not is_batch_id(text):
        raise errors.BatchNotFound(text)
    return text


def _account(text: str) -> str:
    if not (text.isascii() and text.isdigit()):
        raise errors.SessionNotFound(text)
    return text


# A name that can't be one is not found, and never reaches the store, where it might mean something else.
MessageId = Annotated[str, AfterValidator(_message_id)]
BatchId = Annotated[str, AfterValidator(_batch_id)]
AccountPhone = Annotated[str, AfterValidator(_account)]
Day = Annotated[date | None, Query(alias="date")]
First = Annotated[date | None, Query(alias="from")]
Last = Annotated[date | None, Query(alias="to")]
ByHour = Annotated[Literal["hour"] | None, Query()]
Cursor = Annotated[str | None, Query(max_length=100, pattern=r"^[0-9]{1,16}(\.[0-9]{1,6})?_[0-9a-f]{18}$")]

_SEND = (
    *ALWAYS, errors.InvalidRequest, errors.PayloadTooLarge, errors.SessionNotFound, errors.SessionNotLinked,
    errors.DailyLimitReached, errors.QueueFull, errors.IdempotencyConflict,
)  # fmt: skip


def send_routes(guard: Guard, sending: Sending) -> APIRouter:
    router = APIRouter(route_class=guard.direct_route("send"), tags=["send"])

    async def send(request: Request, body: SendRequest, key: IdempotencyKey = None) -> JSONResponse:
        return JSONResponse(await sending.send(caller_of(request), body, key))

    async def batch(request: Request, body: BatchRequest, key: IdempotencyKey = None) -> JSONResponse:
        return JSONResponse(await sending.send_batch(caller_of(request), body, key))

    answers = documented(*_SEND, errors.RecipientOptedOut)
    for path, name in (("/api/v1/send", "send"), ("/api/send", "send_older_name")):
        router.add_api_route(
            path, send, methods=["POST"], name=name, summary="Queue one message", openapi_extra=SECURITY,
            responses={200: {"model": SendAnswer}, **answers}, deprecated=path == "/api/send" or None,
        )  # fmt: skip
    router.add_api_route(
        "/api/v1/send/batch", batch, methods=["POST"], summary="Queue many, spread over minutes",
        responses={200: {"model": BatchAnswer}, **documented(*_SEND)}, openapi_extra=SECURITY,
    )  # fmt: skip
    return router


def change_routes(guard: Guard, changing: Changing) -> APIRouter:
    router = APIRouter(route_class=guard.route("send"), tags=["send"])

    @router.delete(
        "/api/v1/queue/{sessionId}/{messageId}", summary="Cancel one that has not left", openapi_extra=SECURITY,
        responses={200: {"model": CancelAnswer}, **documented(
            *ALWAYS, errors.SessionNotFound, errors.MessageNotFound, errors.SessionNotLinked,
            errors.MessageNotWaiting)},
    )  # fmt: skip
    async def cancel(request: Request, sessionId: SessionId, messageId: MessageId) -> JSONResponse:
        caller_of(request).require_session(sessionId)
        await changing.cancel(sessionId, messageId)
        return JSONResponse({"cancelled": True, "messageId": messageId})

    @router.delete(
        "/api/v1/messages/{messageId}", summary="The same for one whose sender is not chosen yet",
        openapi_extra=SECURITY, responses={200: {"model": CancelAnswer}, **documented(
            *ALWAYS, errors.MessageNotFound, errors.MessageNotWaiting)},
    )  # fmt: skip
    async def cancel_any(request: Request, messageId: MessageId) -> JSONResponse:
        await changing.cancel_any(caller_of(request), messageId)
        return JSONResponse({"cancelled": True, "messageId": messageId})

    @router.delete(
        "/api/v1/batches/{batchId}", summary="Cancel what is left of a batch", openapi_extra=SECURITY,
        responses={200: {"model": BatchProgress}, **documented(*ALWAYS, errors.BatchNotFound)},
    )  # fmt: skip
    async def cancel_batch(request: Request, batchId: BatchId) -> JSONResponse:
        return JSONResponse(await changing.cancel_batch(caller_of(request), batchId))

    @router.post(
        "/api/v1/dead-letters/{messageId}/retry", summary="Try a dead letter again", openapi_extra=SECURITY,
        responses={200: {"model": MessageAnswer}, **documented(
            *ALWAYS, errors.MessageNotFound, errors.MessageNotWaiting, errors.RecipientOptedOut, errors.QueueFull)},
    )  # fmt: skip
    async def redrive(request: Request, messageId: MessageId) -> JSONResponse:
        return JSONResponse(await changing.redrive(caller_of(request), messageId))

    @router.delete(
        "/api/v1/dead-letters/{messageId}", summary="Discard a dead letter", openapi_extra=SECURITY,
        responses={200: {"model": MessageAnswer}, **documented(
            *ALWAYS, errors.MessageNotFound, errors.MessageNotWaiting)},
    )  # fmt: skip
    async def discard(request: Request, messageId: MessageId) -> JSONResponse:
        return JSONResponse(await changing.discard(caller_of(request), messageId))

    return router


def read_routes(guard: Guard, reading: Reading) -> APIRouter:
    router = APIRouter(route_class=guard.route("read"), tags=["read"])

    @router.get(
        "/api/v1/messages/{messageId}/status", summary="Where it is, and why it is not sent yet",
        responses={200: {"model": MessageAnswer}, **documented(*ALWAYS, errors.MessageNotFound)},
        openapi_extra=SECURITY,
    )  # fmt: skip
    async def status(request: Request, messageId: MessageId) -> JSONResponse:
        message, shown = await reading.status(messageId)
        caller_of(request).require_session(message.session)
        return JSONResponse(shown)

    @router.get(
        "/api/v1/queue/{sessionId}", summary="What waits, in order", openapi_extra=SECURITY,
        responses={200: {"model": MessageList}, **documented(
            *ALWAYS, errors.InvalidRequest, errors.SessionNotFound, errors.SessionNotLinked)},
    )  # fmt: skip
    async def queue(request: Request, sessionId: SessionId, limit: Limit = 50, cursor: Cursor = None) -> JSONResponse:
        caller_of(request).require_session(sessionId)
        return JSONResponse(await reading.queue(sessionId, limit, cursor))

    @router.get(
        "/api/v1/batches/{batchId}", summary="Progress of a batch", openapi_extra=SECURITY,
        responses={200: {"model": BatchProgress}, **documented(*ALWAYS, errors.BatchNotFound)},
    )  # fmt: skip
    async def batch(request: Request, batchId: BatchId) -> JSONResponse:
        found, shown = await reading.batch(batchId)
        caller_of(request).require_session(found.session)
        return JSONResponse(shown)

    @router.get(
        "/api/v1/dead-letters", summary="Given up, or never confirmed", openapi_extra=SECURITY,
        responses={200: {"model": DeadLetterList}, **documented(*ALWAYS, errors.InvalidRequest)},
    )  # fmt: skip
    async def dead_letters(request: Request, limit: Limit = 50, cursor: Cursor = None) -> JSONResponse:
        sessions = caller_of(request).key.sessions
        return JSONResponse(await reading.dead_letters(limit, cursor, sessions))

    return router


def stats_routes(guard: Guard, reading: Reading) -> APIRouter:
    router = APIRouter(route_class=guard.route("read"), tags=["statistics"])

    async def answer(
        on: date | None, start: date | None, end: date | None, by: str | None, **scope: str
    ) -> JSONResponse:
        span = (start, end) if start and end else None
        if (start or end) and not span:
            raise errors.InvalidRequest("from, to: give both", "to" if start else "from")
        days = await reading.stats(on=on, span=span, by_hour=by == "hour", **scope)
        return JSONResponse({"items": days, "nextCursor": None} if span else days[0])

    shared: dict[str, Any] = {
        "openapi_extra": SECURITY,
        "responses": {
            200: {"model": DayAnswer | DayList},
            **documented(*ALWAYS, errors.InvalidRequest, errors.SessionNotFound),
        },
    }

    @router.get("/api/v1/stats", summary="The whole fleet's figures", **shared)
    async def fleet(
        request: Request, on: Day = None, start: First = None, end: Last = None, by: ByHour = None
    ) -> JSONResponse:
        caller_of(request).require_session(None)
        return await answer(on, start, end, by)

    @router.get("/api/v1/stats/accounts/{phone}", summary="An account's figures", **shared)
    async def account(
        request: Request,
        phone: AccountPhone,
        on: Day = None,
        start: First = None,
        end: Last = None,
        by: ByHour = None,
    ) -> JSONResponse:
        caller_of(request).require_account(await reading.sessions_of(phone))
        return await answer(on, start, end, by, phone=phone)

    @router.get("/api/v1/stats/{sessionId}", summary="A session's figures", **shared)
    async def session(
        request: Request,
        sessionId: SessionId,
        on: Day = None,
        start: First = None,
        end: Last = None,
        by: ByHour = None,
    ) -> JSONResponse:
        caller_of(request).require_session(sessionId)
        return await answer(on, start, end, by, session=sessionId)

    return router


def limits_routes(guard: Guard, reading: Reading, changing: Changing) -> APIRouter:
    router = APIRouter(route_class=guard.route("admin"), tags=["limits"], prefix="/api/anti-ban")
    senders = (*ALWAYS, errors.SessionNotFound, errors.SessionNotLinked)

    def answers(*more: type[errors.SwitchboardError]) -> dict[str, Any]:
        return {
            "openapi_extra": SECURITY,
            "responses": {200: {"model": LimitsAnswer}, **documented(*senders, *more)},
        }

    @router.get("/sessions/{sessionId}/limits", summary="The limits in force, and which are overridden", **answers())
    async def limits(request: Request, sessionId: SessionId) -> JSONResponse:
        caller_of(request).require_session(sessionId)
        return JSONResponse(await reading.limits(sessionId))

    @router.put(
        "/sessions/{sessionId}/limits", summary="Override any of them for this account",
        **answers(errors.InvalidRequest, errors.PayloadTooLarge),
    )  # fmt: skip
    async def override(request: Request, sessionId: SessionId, body: LimitsRequest) -> JSONResponse:
        caller_of(request).require_session(sessionId)
        await changing.override(sessionId, overrides_of(body), body.timezone)
        return JSONResponse(await reading.limits(sessionId))

    @router.delete("/sessions/{sessionId}/limits", summary="Back to the table", **answers())
    async def reset(request: Request, sessionId: SessionId) -> JSONResponse:
        caller_of(request).require_session(sessionId)
        await changing.override(sessionId, Overrides(), None)
        return JSONResponse(await reading.limits(sessionId))

    return router
