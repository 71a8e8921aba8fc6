"""One message: from which number, to whom, what and when. What can't be sent is said at its field."""

import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Form, Query, Request, Response
from pydantic import BaseModel, ConfigDict, ValidationError

from switchboard.dashboard.access.caller import dashboard_caller
from switchboard.dashboard.access.gate import Gate
from switchboard.dashboard.pages.senders import senders
from switchboard.dashboard.rendering import Pages
from switchboard.dashboard.services import Services
from switchboard.domain import errors
from switchboard.domain.hours import MINUTE_MS
from switchboard.domain.messages import PRIORITIES, Status, Waiting
from switchboard.gateway.models import SendRequest
from switchboard.web.errors import STATUS, invalid_request
from switchboard.web.times import ms

_FIELDS = {"sessionId": "session", "message": "text", "scheduledFor": "scheduled"}
_PLACES: Mapping[type[errors.SwitchboardError], str] = {
    errors.SessionNotFound: "session",
    errors.SessionNotLinked: "session",
    errors.QueueFull: "session",
    errors.RecipientOptedOut: "to",
    errors.DailyLimitReached: "deferrable",
    errors.IdempotencyConflict: "form",
}
"""The field that a refusal is shown at."""


class SendForm(BaseModel):
    """As it was typed. `token` makes it count once, however often it is pressed."""

    model_config = ConfigDict(frozen=True)

    session: str = ""
    to: str = ""
    text: str = ""
    priority: str = "1"
    scheduled: str = ""
    reference: str = ""
    deferrable: bool = False
    token: str = ""


def send_pages(gate: Gate, pages: Pages, services: Services) -> APIRouter:
    router = APIRouter(route_class=gate.route(), include_in_schema=False)

    async def show(request: Request, form: SendForm, faults: Mapping[str, str], status: int = 200) -> Response:
        return pages.show(
            request,
            "send.html",
            status,
            form=form,
            faults=faults,
            senders=await senders(services, form.session),
            priorities=PRIORITIES,
            zone=services.zone.key,
            most=services.max_text,
        )

    @router.get("/send")
    async def compose(request: Request, session: Annotated[str, Query(max_length=64)] = "") -> Response:
        return await show(request, SendForm(session=session, token=new_token()), {})

    @router.post("/send")
    async def send(request: Request, form: Annotated[SendForm, Form()]) -> Response:
        try:
            wanted = _request(form, services.zone, services.clock())
            answer = await services.sending.send(dashboard_caller(), wanted, form.token[:255] or None)
        except (errors.InvalidRequest, errors.SessionNotFound, errors.Refused) as error:
            if isinstance(error, errors.IdempotencyConflict):  # another message than the one that was sent
                form = form.model_copy(update={"token": new_token()})
            return await show(request, form, _faults(request, error), STATUS[type(error)])
        _, shown = await services.reading.status(str(answer["messageId"]))
        key, when = _outcome(shown)
        said = {"when": pages.formats(request).short(when)} if when else {}
        return pages.done(request, key, then=f"/messages/{answer['messageId']}", **said)

    def _faults(request: Request, error: errors.SwitchboardError) -> dict[str, str]:
        if not isinstance(error, errors.InvalidRequest):
            return {_PLACES.get(type(error), "form"): pages.explain(request, error)}
        texts = pages.texts(request)
        named = [fault["field"] for fault in error.details.get("fields", ())] or [error.details.get("field", "form")]
        places = (_FIELDS.get(field, field) for field in named)
        faults = {place: texts(f"send.{place}_bad", most=services.max_text) for place in places}
        if "to" in faults and services.default_country is None:
            faults["to"] = texts("send.to_bad_local")
        return faults

    return router


def new_token() -> str:
    return secrets.token_urlsafe(16)


def _outcome(shown: Mapping[str, Any]) -> tuple[str, str | None]:
    """What to say of a message that was accepted, and the moment that this is about."""
    waiting = shown["waiting"]
    if shown["status"] != Status.SCHEDULED or waiting is None:
        return "send.queued", None
    put_off = waiting["reason"] == Waiting.DAILY_LIMIT
    return "send.put_off" if put_off else "send.for_later", waiting["until"]


def _request(form: SendForm, zone: ZoneInfo, now: int) -> SendRequest:
    given = {
        "to": form.to.strip(),
        "message": form.text.replace("\r\n", "\n").strip(),
        "sessionId": form.session.strip() or None,
        "priority": int(form.priority) if form.priority in map(str, PRIORITIES) else 0,
        "scheduledFor": _moment(form.scheduled, zone, now),
        "reference": form.reference.strip() or None,
        "deferrable": form.deferrable,
    }
    try:
        return SendRequest.model_validate(given)
    except ValidationError as error:
        raise invalid_request(error.errors(include_url=False, include_input=False)) from None


def _moment(text: str, zone: ZoneInfo, now: int) -> datetime | None:
    """As a clock on the wall shows it where Switchboard runs. One that is over is a slip, and no wish."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text).replace(tzinfo=zone)
        if ms(moment) >= now - MINUTE_MS:
            return moment
    except (ValueError, OverflowError):
        pass
    raise errors.InvalidRequest("scheduledFor: is no moment to come", "scheduledFor")
