"""New rows of the log as they happen: server-sent events that carry rows of the page's own table."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import Field

from switchboard.dashboard.access.gate import Gate
from switchboard.dashboard.pages.log_rows import LogQuery, LogRow, LogRows
from switchboard.dashboard.rendering import Pages
from switchboard.dashboard.services import Services
from switchboard.dashboard.words import Words
from switchboard.domain.errors import StoreUnavailable
from switchboard.orchestrator.waiting import first_of
from switchboard.store.feed import Entry, Feed

_BEAT_S = 15.0
_GATHER_S = 0.2
_ID = r"^[0-9]{1,16}-[0-9]{1,16}$"

LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", pattern=_ID)]


class StreamQuery(LogQuery):
    after: str | None = Field(None, pattern=_ID)
    """The newest row that the page has; a browser that comes back by itself says it in a header."""


def log_stream_routes(gate: Gate, pages: Pages, services: Services, stopping: asyncio.Event) -> APIRouter:
    router = APIRouter(route_class=gate.route(), include_in_schema=False)

    @router.get("/log/stream")
    async def stream(
        request: Request, query: Annotated[StreamQuery, Query()], last: LastEventId = None
    ) -> StreamingResponse:
        rows = rows_for(pages, request, query)

        def html(row: LogRow) -> str:
            return pages.html(request, "log/row.html", row=row)

        async def still_may() -> bool:
            return await gate.still_signed_in(request)

        feed = services.store.feed
        cursor = last or query.after or await feed.last_id()
        events = new_rows(feed, cursor, rows.row, html, still_may, stopping)
        return StreamingResponse(events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    return router


def rows_for(pages: Pages, request: Request, query: LogQuery) -> LogRows:
    texts, formats = pages.texts(request), pages.formats(request)
    return LogRows(query, Words(texts, formats), formats)


async def new_rows(
    feed: Feed,
    cursor: str,
    row_of: Callable[[Entry], LogRow | None],
    html: Callable[[LogRow], str],
    still_may: Callable[[], Awaitable[bool]],
    stopping: asyncio.Event,
) -> AsyncIterator[str]:
    """Ends when we stop, or when the one who watches is signed out."""
    yield "retry: 1000\n\n"
    async with feed.following() as more:
        while not stopping.is_set():
            more.clear()
            try:
                if not await still_may():
                    return
                page = await feed.after(cursor)
            except StoreUnavailable:
                yield ": the store is away\n\n"
                await first_of(stopping, within_s=1)
                continue
            for entry in page:
                cursor = entry.id
                if row := row_of(entry):
                    yield _event(row.id, html(row))
            if page:
                await first_of(stopping, within_s=_GATHER_S)
            elif not await first_of(more, stopping, within_s=_BEAT_S):
                yield f"id: {cursor}\n: still here\n\n"


def _event(entry: str, html: str) -> str:
    lines = "".join(f"data: {line}\n" for line in html.splitlines())
    return f"id: {entry}\nevent: row\n{lines}\n"
