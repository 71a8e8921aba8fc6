"""What has changed, told to open pages as it happens. Only names of things travel; pages then ask for themselves."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import Response, StreamingResponse

from switchboard.dashboard.access.gate import Gate
from switchboard.domain.errors import StoreUnavailable
from switchboard.orchestrator.waiting import first_of
from switchboard.store import Store
from switchboard.store.feed import Entry

_BEAT_S = 15.0
_MARGIN_MS = 2_000
"""Since a page was made, by our clock; events are stamped by the store's."""
_ID = r"^[0-9]{1,16}-[0-9]{1,16}$"
LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", pattern=_ID)]
After = Annotated[str | None, Query(pattern=_ID)]
Since = Annotated[int, Query(ge=0, lt=10**15)]
_GATHER_S = 0.2
"""Much happens at once: one word for all of it."""


def live_routes(gate: Gate, store: Store, stopping: asyncio.Event) -> APIRouter:
    router = APIRouter(route_class=gate.route(), include_in_schema=False)

    @router.get("/live")
    async def live(request: Request, last: LastEventId = None, after: After = None, since: Since = 0) -> Response:
        async def still_may() -> bool:
            return await gate.still_signed_in(request)

        headers = {"X-Accel-Buffering": "no"}
        begin = last or after or (f"{max(0, since - _MARGIN_MS)}-0" if since else None)
        told = changes(store, stopping, still_may, begin=begin)
        return StreamingResponse(told, media_type="text/event-stream", headers=headers)

    return router


async def changes(
    store: Store,
    stopping: asyncio.Event,
    still_may: Callable[[], Awaitable[bool]],
    only: str | None = None,
    begin: str | None = None,
) -> AsyncIterator[str]:
    """The topics that changed, from now on or since `begin`, in bundles; of all, or of one topic only."""
    yield "retry: 1000\nevent: hello\ndata: {}\n\n"
    async with store.feed.following() as more:
        cursor = begin
        while not stopping.is_set():
            more.clear()
            try:
                if not await still_may():
                    return
                cursor = cursor or await store.feed.last_id()
                page = await store.feed.after(cursor)
            except StoreUnavailable:
                yield ": the store is away\n\n"
                await first_of(stopping, within_s=1)
                continue
            if page:
                cursor = page[-1].id
                topics = sorted(set().union(*map(topics_of, page)))
                if only is None or only in topics:
                    told = json.dumps({"topics": [only] if only else topics})
                    yield f"id: {cursor}\nevent: changed\ndata: {told}\n\n"
                await first_of(stopping, within_s=_GATHER_S)
            elif not await first_of(more, stopping, within_s=_BEAT_S):
                yield ": still here\n\n"


def topics_of(entry: Entry) -> set[str]:
    """What an event is about, in the words that pages listen by."""
    kind = entry.type.partition(".")[0]
    topics = {"log", {"session": "sessions", "account": "sessions", "message": "messages"}.get(kind, "proxies")}
    for field, topic in (
        ("sessionId", "session"),
        ("messageId", "message"),
        ("account", "account"),
        ("proxyId", "proxy"),
    ):
        if value := entry.fields.get(field):
            topics.add(f"{topic}:{value}")
    return topics
