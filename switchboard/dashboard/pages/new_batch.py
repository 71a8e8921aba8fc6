"""A new batch from a CSV file: choose it, see what will be sent, send it. One form, which keeps nothing here."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import ValidationError

from switchboard.dashboard.access.caller import dashboard_caller
from switchboard.dashboard.access.gate import Gate
from switchboard.dashboard.access.origins import is_htmx
from switchboard.dashboard.pages.drafts import BatchForm, Draft, draft, opted_out
from switchboard.dashboard.pages.send import new_token
from switchboard.dashboard.pages.senders import senders
from switchboard.dashboard.rendering import Pages
from switchboard.dashboard.services import Services
from switchboard.dashboard.spreadsheet import BadRow, ReadyRow
from switchboard.domain import errors
from switchboard.domain.ids import is_session_id
from switchboard.domain.messages import Waiting
from switchboard.gateway.finishing import planned_end
from switchboard.gateway.models import BatchRequest
from switchboard.store.messages import MessageQuery
from switchboard.web.errors import STATUS, invalid_request

_MOST_PART = 20 * 1024 * 1024
_SHOWN_ROWS = 10
_SHOWN_BAD = 100


def new_batch_pages(gate: Gate, pages: Pages, services: Services) -> APIRouter:
    router = APIRouter(route_class=gate.route(), include_in_schema=False)
    desk = _Desk(pages, services)

    @router.get("/batches/new")
    async def new(request: Request, session: Annotated[str, Query(max_length=64)] = "") -> Response:
        return await desk.show(request, BatchForm(session=session, deferrable=True), None)

    @router.get("/batches/example.csv")
    async def example(request: Request) -> Response:
        content = "\ufeff" + pages.texts(request)("batches.example_csv")  # else Excel takes it for another encoding
        headers = {"Content-Disposition": 'attachment; filename="example.csv"'}
        return Response(content, media_type="text/csv; charset=utf-8", headers=headers)

    @router.post("/batches/preview")
    async def preview(request: Request) -> Response:
        form, raw = await _posted(request)
        return await desk.show(request, form, await draft(raw, form, services) if raw else None)

    @router.post("/batches")
    async def create(request: Request) -> Response:
        form, raw = await _posted(request)
        made = await draft(raw, form, services) if raw else None
        reason = _not_yet(form, made)
        if made is None or reason:
            return await desk.show(request, form, made, pages.texts(request)(f"batches.{reason}"), 400)
        return await desk.send(request, form, made)

    return router


class _Desk:
    def __init__(self, pages: Pages, services: Services) -> None:
        self._pages = pages
        self._services = services

    async def show(
        self, request: Request, form: BatchForm, made: Draft | None, notice: str = "", status: int = 200
    ) -> Response:
        """The whole page, or only what depends on the file."""
        values: dict[str, Any] = {
            "form": form if form.token else form.model_copy(update={"token": new_token()}),
            "draft": made,
            "notice": notice,
            "most": self._services.max_text,
            "local": self._services.default_country is not None,
            "shown_rows": _SHOWN_ROWS,
            "shown_bad": _SHOWN_BAD,
            "ends": await self._ends(form, len(made.rows)) if made and made.rows else None,
        }
        if is_htmx(request):
            return self._pages.show(request, "batches/preview.html", status, **values)
        values["senders"] = await senders(self._services, form.session)
        return self._pages.show(request, "batches/new.html", status, **values)

    async def send(self, request: Request, form: BatchForm, made: Draft) -> Response:
        sending, token = self._services.sending, form.token[:255] or None
        try:
            answer = await sending.send_batch(dashboard_caller(), _request(form, made.rows), token)
        except errors.InvalidRequest as error:
            rows = _refused(error, made.rows)
            said = self._pages.texts(request)("batches.nothing_queued") if rows else self._pages.explain(request, error)
            return await self.show(request, form, made.without(rows), said, 400)
        except (errors.SessionNotFound, errors.Refused) as error:
            if isinstance(error, errors.IdempotencyConflict):  # another batch than the one that was sent
                form = form.model_copy(update={"token": new_token()})
            return await self.show(request, form, made, self._pages.explain(request, error), STATUS[type(error)])
        batch = str(answer["batchId"])
        key = "batches.put_off" if await self._put_off(batch) else "batches.queued"
        return self._pages.done(request, key, then=f"/batches/{batch}", n=answer["queued"])

    async def _put_off(self, batch: str) -> bool:
        """Whether it waits for tomorrow: its first row does if any."""
        first = (await self._services.reading.messages(MessageQuery(batch=batch), 1, None))["items"]
        return any(row["waiting"] and row["waiting"]["reason"] == Waiting.DAILY_LIMIT for row in first)

    async def _ends(self, form: BatchForm, count: int) -> str | None:
        if not is_session_id(form.session) or form.spread_minutes is None:
            return None
        store, policy, now = self._services.store, self._services.policy, self._services.clock()
        try:
            return await planned_end(store, policy, form.session, count, round(form.spread_minutes * 60_000), now)
        except (errors.SessionNotFound, errors.SessionNotLinked):
            return None  # said when it is sent


async def _posted(request: Request) -> tuple[BatchForm, bytes]:
    """The choices, and the file; empty while none is chosen."""
    posted = await request.form(max_part_size=_MOST_PART)
    file = posted.get("file")
    raw = b"" if file is None or isinstance(file, str) else await file.read()
    try:
        given = {name: value for name, value in posted.items() if isinstance(value, str)}
        return BatchForm.model_validate(given), raw
    except ValidationError as error:
        raise invalid_request(error.errors(include_url=False, include_input=False)) from None


def _not_yet(form: BatchForm, made: Draft | None) -> str:
    """Why it can't be sent as it is, as the name of a text; empty if it can."""
    if made is None:
        return "no_file"
    if made.fault or made.lacks_text or not made.rows:
        return "nothing_to_send"
    if form.spread_minutes is None:
        return "spread_bad"
    if made.bad and form.skip != str(len(made.bad)):
        return "not_agreed"
    return ""


def _request(form: BatchForm, rows: Sequence[ReadyRow]) -> BatchRequest:
    if form.session and not is_session_id(form.session):
        raise errors.SessionNotFound(form.session)
    return BatchRequest(
        messages=[{"to": row.to, "text": row.text, "reference": row.reference} for row in rows],
        sessionId=form.session or None,
        spreadMinutes=form.spread_minutes or 0,
        deferrable=form.deferrable,
    )


def _refused(error: errors.InvalidRequest, rows: Sequence[ReadyRow]) -> list[BadRow]:
    """The rows that the gateway named, by their lines. Most asked not to be written to since the preview."""
    named = [(rows[bad["index"]], bad) for bad in error.details.get("rows", ())]
    return [
        opted_out(row)
        if bad.get("error") == errors.RecipientOptedOut.code
        else BadRow(row.index, str(bad["field"]), "refused", str(bad["message"]))
        for row, bad in named
    ]
