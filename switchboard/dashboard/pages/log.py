"""The live log: what happened, newest first, by kind, session and search; and as a file."""

from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from switchboard.dashboard.access.gate import Gate
from switchboard.dashboard.pages.log_files import as_csv, as_ndjson
from switchboard.dashboard.pages.log_rows import LogQuery, newest
from switchboard.dashboard.pages.log_stream import rows_for
from switchboard.dashboard.rendering import Pages
from switchboard.dashboard.services import Services

_ROWS = 200
_KINDS = ("", "sessions", "messages", "proxies", "trouble")


class PageQuery(LogQuery):
    before: str | None = Field(None, pattern=r"^[0-9]{1,16}-[0-9]{1,16}$")


class FileQuery(LogQuery):
    format: Literal["csv", "ndjson"] = "csv"


def log_pages(gate: Gate, pages: Pages, services: Services) -> APIRouter:
    router = APIRouter(route_class=gate.route(), include_in_schema=False)
    feed = services.store.feed

    @router.get("/log")
    async def log(request: Request, query: Annotated[PageQuery, Query()]) -> Response:
        last = await feed.last_id()
        rows, more = await newest(feed, rows_for(pages, request, query).row, _ROWS, query.before)
        given = query.given()
        return pages.show(
            request,
            "log/page.html",
            rows=rows,
            query=query,
            kinds=[(kind, _url("/log", given | {"kind": kind})) for kind in _KINDS],
            # An older page stands still: what is new is on the first one.
            source=None if query.before else _url("/log/stream", given | {"after": last}),
            files=[(kind, _url("/log/download", given | {"format": kind})) for kind in ("csv", "ndjson")],
            first=_url("/log", given) if query.before else "",
            more=_url("/log", given | {"before": more}) if more else "",
        )

    @router.get("/log/download")
    async def download(request: Request, query: Annotated[FileQuery, Query()]) -> StreamingResponse:
        row_of = rows_for(pages, request, query).row
        lines, kind = (
            (as_csv(feed, row_of), "text/csv; charset=utf-8")
            if query.format == "csv"
            else (as_ndjson(feed, row_of), "application/x-ndjson")
        )
        headers = {"Content-Disposition": f'attachment; filename="switchboard-log.{query.format}"'}
        return StreamingResponse(lines, media_type=kind, headers=headers)

    return router


def _url(path: str, given: dict[str, str]) -> str:
    return path + "?" + urlencode({name: value for name, value in given.items() if value})
