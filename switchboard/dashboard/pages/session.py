"""One session: how it is and why, what it did, what waits for it, and everything that can be asked of it."""

from datetime import date, timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Request, Response

from switchboard.dashboard.access.gate import Gate
from switchboard.dashboard.access.origins import is_htmx
from switchboard.dashboard.charts import Charts
from switchboard.dashboard.pages.session_facts import queue, recent, trust, up_time
from switchboard.dashboard.rendering import Pages
from switchboard.dashboard.services import Services
from switchboard.domain import hours
from switchboard.domain.errors import MessageNotFound, SessionNotFound
from switchboard.domain.ids import is_message_id
from switchboard.domain.sessions import Session, Wanted, possible
from switchboard.web.routing import SessionId

_HOUR_MS = 3_600_000
_DAYS = 14
_PLAIN = ("stop", "restart", "resume")
_FIGURES = ("sent", "delivered", "read", "failed")
Until = Annotated[Literal["hour", "tomorrow", "resumed"], Form()]


def session_pages(gate: Gate, pages: Pages, services: Services) -> APIRouter:
    router = APIRouter(route_class=gate.route(), include_in_schema=False)
    for action in _PLAIN:
        _plain(router, pages, services, action)
    _commands(router, pages, services)
    _endings(router, pages, services)

    @router.get("/sessions/{session_id}")
    async def session(request: Request, session_id: SessionId) -> Response:
        try:
            found = await services.store.sessions.find(session_id)
            shown = await _everything(pages, services, request, found)
        except SessionNotFound:
            if is_htmx(request):
                return pages.show(request, "session/gone.html", part="session", session_id=session_id)
            return pages.done(request, "session.gone", then="/", session=session_id)
        return pages.show(request, "session/page.html", **shown)

    @router.post("/sessions/{session_id}/queue/{message_id}/cancel")
    async def cancel(request: Request, session_id: SessionId, message_id: str) -> Response:
        if not is_message_id(message_id):
            raise MessageNotFound(message_id)
        await services.changing.cancel(session_id, message_id)
        return pages.done(request, "session.did_cancel", then=_back(request, session_id))

    return router


def _plain(router: APIRouter, pages: Pages, services: Services, action: str) -> None:
    act = getattr(services.sessions, action)

    @router.post(f"/sessions/{{session_id}}/{action}")
    async def run(request: Request, session_id: SessionId) -> Response:
        await act(session_id)
        return pages.done(request, f"session.did_{action}", then=_back(request, session_id), session=session_id)


def _commands(router: APIRouter, pages: Pages, services: Services) -> None:
    @router.post("/sessions/{session_id}/start")
    async def start(request: Request, session_id: SessionId) -> Response:
        """One that is not linked asks for a scan next."""
        await services.sessions.start(session_id)
        linked = (await services.store.sessions.find(session_id)).linked
        then = _back(request, session_id) if linked else f"/sessions/{session_id}/link"
        return pages.done(request, "session.did_start", then=then, session=session_id)

    @router.post("/sessions/{session_id}/pause")
    async def pause(request: Request, session_id: SessionId, until: Until = "resumed") -> Response:
        await services.sessions.pause(session_id, await _moment(services, session_id, until))
        return pages.done(request, "session.did_pause", then=_back(request, session_id), session=session_id)


def _endings(router: APIRouter, pages: Pages, services: Services) -> None:
    @router.post("/sessions/{session_id}/logout")
    async def logout(request: Request, session_id: SessionId) -> Response:
        await services.sessions.logout(session_id)
        session = await services.store.sessions.find(session_id)
        told = session.order is None and session.reason != "logout_unconfirmed"
        key = "session.did_logout" if told else "session.did_logout_untold"
        return pages.done(request, key, then=_back(request, session_id), session=session_id)

    @router.post("/sessions/{session_id}/delete")
    async def delete(request: Request, session_id: SessionId) -> Response:
        done, unlinked = await services.sessions.delete(session_id)
        key = "session.deleting" if not done else "session.deleted" if unlinked else "session.deleted_untold"
        return pages.done(request, key, then="/", session=session_id)


def _back(request: Request, session_id: str) -> str | None:
    """Where the button was: a page with a script stays, one without goes to the session's."""
    return None if is_htmx(request) else f"/sessions/{session_id}"


async def _moment(services: Services, session_id: str, until: str) -> int | None:
    now = services.clock()
    if until == "hour":
        return now + _HOUR_MS
    if until == "resumed":
        return None
    session = await services.store.sessions.find(session_id)
    accounts = await services.store.accounts.look_many({session.phone} if session.phone else set(), now)
    zones = [account.profile.zone for account in accounts.values()]
    return hours.day_end(now, zones[0] if zones else services.zone)


async def _everything(pages: Pages, services: Services, request: Request, session: Session) -> dict[str, Any]:
    texts, formats = pages.texts(request), pages.formats(request)
    charts = Charts(texts, formats)
    [today] = await services.reading.stats(session=session.id, by_hour=True)
    last = date.fromisoformat(str(today["date"]))
    days = await services.reading.stats(session=session.id, span=(last - timedelta(days=_DAYS - 1), last))
    return {
        "session": await services.views.one(session.id),
        "can": {command.value for command in possible(session)},
        "deleting": session.wanted is Wanted.DELETE,
        "linked": session.linked,
        "running": session.wanted is Wanted.RUN,
        "sharing": sorted(await services.sessions.sharing(session.id) - {session.id}),
        "trust": await trust(services, session),
        "limits": await services.reading.limits(session.id) if session.phone else None,
        "up": await up_time(services, session),
        "today": charts.by_hour(today["hours"], _FIGURES),  # type: ignore[arg-type]
        "days": charts.by_day(days, _FIGURES),
        "queue": await queue(services, session),
        "events": await recent(services, session.id),
    }
