"""The workers' HTTP border: claim a message (long poll), settle it, report an event. Every call is signed."""

import asyncio
from typing import TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ValidationError

from switchboard.domain.clock import Clock
from switchboard.domain.errors import (
    Forbidden,
    InvalidRequest,
    MessageNotFound,
    SessionNotFound,
    Unauthorized,
)
from switchboard.domain.ids import is_session_id, whatsapp_id
from switchboard.domain.messages import Status
from switchboard.domain.retry import FailureClass
from switchboard.domain.sessions import Order
from switchboard.orchestrator.models import AckBody, ClaimBody, EventBody, NackBody, Signer
from switchboard.orchestrator.settlement import Settlement
from switchboard.orchestrator.worker_events import WorkerEvents
from switchboard.store import Store
from switchboard.store.outbox import Claimed, Settled
from switchboard.web.app import bounded_body
from switchboard.web.signatures import verify, worker_secret

MAX_BODY = 256 * 1024
MAX_REQUEST_ID = 128

Body = TypeVar("Body", bound=BaseModel)


class WorkerBorder:
    """Reads signed bodies: the signature must be that of the very session the request speaks for."""

    def __init__(self, store: Store, master_secret: str, clock: Clock) -> None:
        self._store = store
        self._master = master_secret
        self._clock = clock

    async def read(self, request: Request, kind: type[Body], session: str) -> Body:
        raw = await bounded_body(request, MAX_BODY)
        if not is_session_id(session):
            raise Unauthorized("The request is not signed by this worker.")
        verify(worker_secret(self._master, session), request.headers, raw)
        request_id = request.headers["webhook-id"]
        if len(request_id) > MAX_REQUEST_ID:
            raise Unauthorized(f"The webhook-id has more than {MAX_REQUEST_ID} characters.")
        try:
            body = kind.model_validate_json(raw)
        except ValidationError as error:
            first = error.errors(include_input=False)[0]
            field = ".".join(map(str, first["loc"])) or "body"
            raise InvalidRequest(f"{field}: {first['msg'].removeprefix('Value error, ')}", field) from None
        if getattr(body, "sessionId", session) != session:
            raise Forbidden("The body speaks for another session than the one that signed it.")
        admitted = await self._store.worker_calls.admit(session, request_id, self._clock())
        if admitted == "NOT_FOUND":
            raise SessionNotFound(session)
        if admitted == "REPLAYED":
            raise Unauthorized("This very request was made before; sign each request anew.")
        return body


class LongPoll:
    """Hands a session's next message to its worker as soon as there is one. Nobody waits any more once we stop."""

    def __init__(self, store: Store, clock: Clock, stopping: asyncio.Event) -> None:
        self._store = store
        self._clock = clock
        self._stopping = stopping

    async def claim(
        self, session: str, instance: str, taken_on: int | None, wait_ms: int, request: Request
    ) -> tuple[Claimed | None, Order | None]:
        """A message, or an order that this worker has not taken on yet, or neither within the time."""
        deadline = self._clock() + wait_ms
        gone = asyncio.create_task(_disconnected(request))
        try:
            async with self._store.wakeups.listen(f"outbox:{session}") as woken:
                while not gone.done():  # a message must not go to a worker that hung up
                    woken.clear()
                    claimed = await self._store.outbox.claim(session, instance, self._clock())
                    order = None if claimed else await self._order(session, taken_on)
                    left_s = (deadline - self._clock()) / 1000
                    if claimed or order or left_s <= 0 or self._stopping.is_set():
                        return claimed, order
                    await _first_of(gone, left_s, woken, self._stopping)
            return None, None
        finally:
            gone.cancel()

    async def _order(self, session: str, taken_on: int | None) -> Order | None:
        order = await self._store.sessions.order(session)
        return order if order and order.id != taken_on and self._clock() < order.until else None


async def _first_of(gone: "asyncio.Task[None]", seconds: float, *events: asyncio.Event) -> None:
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait({gone, *waiting}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def worker_routes(
    store: Store,
    settlement: Settlement,
    events: WorkerEvents,
    *,
    master_secret: str,
    wait_ms: int,
    clock: Clock,
    stopping: asyncio.Event | None = None,
) -> APIRouter:
    router = APIRouter(tags=["worker"], include_in_schema=False)
    border = WorkerBorder(store, master_secret, clock)
    poll = LongPoll(store, clock, stopping or asyncio.Event())

    @router.post("/api/worker/sessions/{session}/outbox/claim")
    async def claim(request: Request, session: str) -> JSONResponse:
        body = await border.read(request, ClaimBody, session)
        wait = min(body.waitMs, wait_ms)
        claimed, order = await poll.claim(session, body.instance, body.order, wait, request)
        return JSONResponse({"message": claimed and _shown(claimed), **({"order": _ordered(order)} if order else {})})

    @router.post("/api/worker/sessions/{session}/outbox/ack")
    async def ack(request: Request, session: str) -> JSONResponse:
        body = await border.read(request, AckBody, session)
        settled = await settlement.confirmed(session, body.messageId, Status.SENT, body.timestamp)
        return _settled(body.messageId, settled)

    @router.post("/api/worker/sessions/{session}/outbox/nack")
    async def nack(request: Request, session: str) -> JSONResponse:
        body = await border.read(request, NackBody, session)
        kind = FailureClass(body.kind)
        settled = await settlement.failed(session, body.messageId, body.attempt, kind, body.error, body.until)
        return _settled(body.messageId, settled)

    async def webhook(request: Request) -> JSONResponse:
        await events.handle(await border.read(request, EventBody, await _claimed_session(request)))
        return JSONResponse({"accepted": True})

    for path in ("/api/webhook", "/webhook"):
        router.add_api_route(path, webhook, methods=["POST"])
    return router


async def _claimed_session(request: Request) -> str:
    """Whom an event says it is from; the signature then proves it."""
    try:
        return Signer.model_validate_json(await bounded_body(request, MAX_BODY)).sessionId
    except ValidationError:
        raise InvalidRequest("The body is not an event with a sessionId.", "sessionId") from None


def _shown(claimed: Claimed) -> dict[str, object]:
    return {
        "messageId": claimed.message_id,
        "whatsappId": whatsapp_id(claimed.message_id),
        "to": claimed.to,
        "text": claimed.text,
        "attempt": claimed.attempt,
        "leaseUntil": claimed.lease_until,
    }


def _ordered(order: Order) -> dict[str, object]:
    return {"id": order.id, "type": order.kind, **({"phone": order.phone} if order.phone else {})}


def _settled(message_id: str, settled: Settled) -> JSONResponse:
    if not settled.known:
        raise MessageNotFound(message_id)
    return JSONResponse({"settled": settled.changed, "status": settled.status})
