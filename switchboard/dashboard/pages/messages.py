"""All messages, newest first, and the way of each. What a message says is shown on its own page only."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response

from switchboard.dashboard.access.caller import dashboard_caller
from switchboard.dashboard.access.gate import Gate
from switchboard.dashboard.pages.session_names import names_of, sessions_meant
from switchboard.dashboard.pages.timeline import WAITS, Step, timeline
from switchboard.dashboard.rendering import Pages
from switchboard.dashboard.services import Services
from switchboard.domain.ids import is_batch_id
from switchboard.domain.messages import Place, Status
from switchboard.gateway.list_routes import statuses_of
from switchboard.gateway.routes import Cursor, MessageId
from switchboard.store.messages import MessageQuery

_LIMIT = 50
TABS: Mapping[str, frozenset[str]] = {
    "": frozenset(),
    "scheduled": frozenset({Status.SCHEDULED}),
    "waiting": frozenset({Status.QUEUED, Status.FAILED}),
    "sending": frozenset({Status.SENDING}),
    "sent": frozenset({Status.SENT}),
    "delivered": frozenset({Status.DELIVERED}),
    "read": frozenset({Status.READ}),
    "failed": frozenset({Status.DEAD, Status.UNCONFIRMED}),
    "cancelled": frozenset({Status.CANCELLED}),
}
"""What each tab holds; the address says its name as `status`."""

Word = Annotated[str, Query(max_length=200)]


def message_pages(gate: Gate, pages: Pages, services: Services) -> APIRouter:
    router = APIRouter(route_class=gate.route(), include_in_schema=False)

    @router.get("/messages")
    async def messages(
        request: Request,
        status: Word = "",
        session: Word = "",
        to: Word = "",
        batch: Word = "",
        reference: Word = "",
        cursor: Cursor = None,
    ) -> Response:
        asked = {
            "status": status.strip(),
            "session": session.strip(),
            "to": re.sub(r"[^0-9]", "", to)[:20],
            "batch": batch.strip(),
            "reference": reference.strip(),
        }
        query, sessions = _query(asked), frozenset[str]()
        if asked["session"]:
            sessions = await sessions_meant(services, asked["session"])
            query = query if sessions else None
        found = await services.reading.messages(query, _LIMIT, cursor, sessions) if query else _NOTHING
        return pages.show(
            request,
            "messages/list.html",
            messages=found["items"],
            names=await names_of(services, found["items"]),
            asked=asked,
            tabs={tab: _url(asked | {"status": tab}) for tab in TABS},
            # Told of what is filtered besides the tab, which can be left out again.
            filtered=any(value for name, value in asked.items() if name != "status"),
            next_url=_url(asked, found["nextCursor"]) if found["nextCursor"] else "",
            first_url=_url(asked) if cursor else "",
        )

    @router.get("/messages/{message}")
    async def message(request: Request, message: MessageId) -> Response:
        found, shown = await services.reading.status(message)
        return pages.show(
            request,
            "messages/one.html",
            message=shown,
            names=await names_of(services, [shown]),
            text=await services.reading.text(message),
            steps=[(step, _local(step, str(shown["createdAt"]))) for step in timeline(found)],
            waits=found.place in WAITS,
            dead=found.place is Place.DEAD,
        )

    @router.post("/messages/{message}/cancel")
    async def cancel(request: Request, message: MessageId) -> Response:
        await services.changing.cancel_any(dashboard_caller(), message)
        return pages.done(request, "messages.cancelled")

    return router


_NOTHING: Mapping[str, Any] = {"items": [], "nextCursor": None}


def _query(asked: Mapping[str, str]) -> MessageQuery | None:
    """None where a name is none: nothing can have it, and it never reaches the store."""
    batch = asked["batch"]
    if batch and not is_batch_id(batch):
        return None
    statuses = TABS.get(asked["status"])
    return MessageQuery(
        statuses=statuses_of(asked["status"]) if statuses is None else statuses,
        to=asked["to"],
        batch=batch,
        reference=asked["reference"],
    )


def _url(asked: Mapping[str, str], cursor: object = None) -> str:
    given = {name: value for name, value in asked.items() if value} | ({"cursor": cursor} if cursor else {})
    return f"/messages?{urlencode(given)}" if given else "/messages"


def _local(step: Step, like: str) -> str | None:
    """Its moment, in the zone of the others that are shown."""
    zone = datetime.fromisoformat(like).tzinfo
    return None if step.at is None else datetime.fromtimestamp(step.at / 1000, zone).isoformat(timespec="seconds")
