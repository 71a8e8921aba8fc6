"""The live stream: server-sent events that a client can leave and take up again where it was."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse

from switchboard.domain import errors
from switchboard.domain.errors import Forbidden, StoreUnavailable, Unauthorized
from switchboard.orchestrator.waiting import first_of
from switchboard.store import Store
from switchboard.store.feed import Entry
from switchboard.web.auth import Guard, caller_of
from switchboard.web.errors import documented
from switchboard.web.routing import ALWAYS, SECURITY

_BEAT_S = 15.0
_RETRY_MS = 2_000
_HIDDEN = frozenset({"text"})
"""Message texts are for customers' webhooks, not for whoever watches."""

_ID = r"^[0-9]{1,16}-[0-9]{1,16}$"
LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", pattern=_ID)]
Since = Annotated[str | None, Query(pattern=_ID, description="The same, for clients that can't set the header.")]
Types = Annotated[str | None, Query(max_length=500, description="Only these, by commas; session.* means all of them.")]
OneSession = Annotated[str | None, Query(alias="sessionId", max_length=64)]
Wanted = Callable[[Entry], bool]


def event_routes(guard: Guard, store: Store, stopping: asyncio.Event) -> APIRouter:
    router = APIRouter(route_class=guard.route("read"), tags=["events"])

    @router.get(
        "/api/events", summary="What happens, live (server-sent events)", openapi_extra=SECURITY,
        response_class=StreamingResponse,
        responses={
            200: {"content": {"text/event-stream": {}}, "description": "Resumes after Last-Event-ID."},
            **documented(*ALWAYS, errors.InvalidRequest),
        },
    )  # fmt: skip
    async def events(
        request: Request,
        last: LastEventId = None,
        since: Since = None,
        types: Types = None,
        session: OneSession = None,
    ) -> StreamingResponse:
        sessions = caller_of(request).key.sessions
        if session:
            caller_of(request).require_session(session)
            sessions = frozenset({session})
        begin = last or since
        cursor = begin or await store.feed.last_id()
        complete = begin is None or await store.feed.reaches(begin)

        async def still_may() -> bool:
            try:
                await guard.authenticate(request, "read")
            except (Unauthorized, Forbidden):
                return False
            return True

        stream = _stream(store, cursor, complete, _filter(types, sessions), still_may, stopping)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)

    return router


def _filter(types: str | None, sessions: frozenset[str]) -> Wanted:
    names = [name.strip() for name in (types or "").split(",") if name.strip()]
    stems = tuple(name.removesuffix("*") for name in names if name.endswith(".*"))

    def wanted(entry: Entry) -> bool:
        by_type = not names or entry.type in names or (bool(stems) and entry.type.startswith(stems))
        return by_type and (not sessions or entry.fields.get("sessionId") in sessions)

    return wanted


async def _stream(
    store: Store,
    cursor: str,
    complete: bool,
    wanted: Wanted,
    still_may: Callable[[], Awaitable[bool]],
    stopping: asyncio.Event,
) -> AsyncIterator[str]:
    """Ends when we stop, or when the key is revoked; a client comes back by itself and says where it was."""
    yield f"retry: {_RETRY_MS}\n: following after {cursor}\n\n"
    if not complete:
        yield 'event: gap\ndata: {"message": "Older events are gone; load the current state anew."}\n\n'
    async with store.feed.following() as more:
        while not stopping.is_set():
            more.clear()
            try:
                if not await still_may():
                    return
                page = await store.feed.after(cursor)
            except StoreUnavailable:
                yield ": the store is away\n\n"
                await first_of(stopping, within_s=1)
                continue
            for entry in page:
                cursor = entry.id
                if wanted(entry):
                    yield _written(entry)
            if not page and not await first_of(more, stopping, within_s=_BEAT_S):
                yield f"id: {cursor}\n: still here\n\n"


def _written(entry: Entry) -> str:
    data = json.dumps(shown_fields(entry), ensure_ascii=False)
    return f"id: {entry.id}\nevent: {entry.type}\ndata: {data}\n\n"


def shown_fields(entry: Entry) -> dict[str, str | int]:
    """What an event says, to whoever watches."""
    data: dict[str, str | int] = {name: value for name, value in entry.fields.items() if name not in _HIDDEN}
    if "at" in data:
        data["at"] = int(float(data["at"]))
    return data
