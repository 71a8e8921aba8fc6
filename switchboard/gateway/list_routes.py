"""The lists of all messages and all batches, newest first."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from switchboard.domain import errors
from switchboard.domain.messages import Status
from switchboard.gateway.models import BatchList, MessageList
from switchboard.gateway.reading import Reading
from switchboard.gateway.routes import Cursor
from switchboard.store.messages import MessageQuery
from switchboard.web.auth import Guard, caller_of
from switchboard.web.errors import documented
from switchboard.web.routing import ALWAYS, SECURITY, Limit

_STATUSES = frozenset(Status)
_IN_ORDER = ", ".join(Status)

Statuses = Annotated[
    str,
    Query(max_length=200, description=f"Any of {_IN_ORDER}; several with commas.", examples=["queued,sending"]),
]
OfSession = Annotated[str, Query(pattern=r"^([A-Za-z0-9][A-Za-z0-9_-]{0,63})?$", description="Its session.")]
OfPhone = Annotated[str, Query(pattern=r"^[0-9]{0,20}$", description="The account that sends it, as digits.")]
To = Annotated[str, Query(pattern=r"^[0-9]{0,20}$", description="Digits that the recipient's number holds.")]
OfBatch = Annotated[
    str, Query(pattern=r"^(batch_[0-9a-f]{18})?$", description="Of one batch, in the order of its rows.")
]
Reference = Annotated[str, Query(max_length=200, description="Exactly as it was given.")]
BatchCursor = Annotated[str | None, Query(max_length=100, pattern=r"^[0-9]{1,16}(\.[0-9]{1,6})?_batch_[0-9a-f]{18}$")]


def list_routes(guard: Guard, reading: Reading) -> APIRouter:
    router = APIRouter(route_class=guard.route("read"), tags=["read"])

    @router.get(
        "/api/v1/messages", summary="All messages, newest first", openapi_extra=SECURITY,
        description="Go on until `nextCursor` is null: a page may hold fewer than `limit` before that.",
        responses={200: {"model": MessageList}, **documented(*ALWAYS, errors.InvalidRequest)},
    )  # fmt: skip
    async def messages(
        request: Request,
        status: Statuses = "",
        sessionId: OfSession = "",
        phone: OfPhone = "",
        to: To = "",
        batchId: OfBatch = "",
        reference: Reference = "",
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> JSONResponse:
        caller = caller_of(request)
        if sessionId:
            caller.require_session(sessionId)
        query = MessageQuery(statuses_of(status), phone, sessionId, to, batchId, reference)
        return JSONResponse(await reading.messages(query, limit, cursor, caller.key.sessions))

    @router.get(
        "/api/v1/batches", summary="All batches, newest first", openapi_extra=SECURITY,
        description="Go on until `nextCursor` is null: a page may hold fewer than `limit` before that.",
        responses={200: {"model": BatchList}, **documented(*ALWAYS, errors.InvalidRequest)},
    )  # fmt: skip
    async def batches(request: Request, limit: Limit = 50, cursor: BatchCursor = None) -> JSONResponse:
        return JSONResponse(await reading.batches(limit, cursor, caller_of(request).key.sessions))

    return router


def statuses_of(text: str) -> frozenset[str]:
    """From `queued,sending`; nothing means any."""
    named = frozenset(filter(None, map(str.strip, text.split(","))))
    for unknown in sorted(named - _STATUSES):
        raise errors.InvalidRequest(f"status: '{unknown}' is none of {_IN_ORDER}", "status")
    return named
