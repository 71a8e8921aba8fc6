"""What a session's page tells besides the session itself: when it was up, its next level, its queue, its past."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from switchboard.dashboard.services import Services
from switchboard.domain.hours import DAY_MS
from switchboard.domain.sessions import Session, State
from switchboard.domain.uptime import Span, share_up, strip
from switchboard.web.times import iso, iso_or_none

_QUEUED = 20
_EVENTS = 25
_ECHOED = frozenset({"QR_CODE", "PAIRING_CODE", "CONNECTED"})
"""A worker's words that the session's own events repeat; new codes come by the dozen."""
_WIDTH = 1000


@dataclass(frozen=True, slots=True)
class Piece:
    """A span of the strip: its place in it, and what it says."""

    state: str
    x: float
    width: float
    start: str
    end: str


@dataclass(frozen=True, slots=True)
class UpTime:
    share: float | None
    """Of the time that is known; None if nothing is."""
    known_ms: int | None
    """How much of the time that is; None if all."""
    pieces: Sequence[Piece]
    start: str
    """Where the strip begins: a day ago, or when it became known."""
    width: int = _WIDTH


async def up_time(services: Services, session: Session) -> UpTime:
    """Of the last 24 hours, or of as much of them as is known."""
    end = services.clock()
    day_ago = end - DAY_MS
    changes = await services.store.sessions.states(session.id, day_ago)
    if not changes and session.state is State.CONNECTED and session.connected_at:
        changes = [(session.connected_at, session.state)]  # since before changes were written down
    spans = strip(changes, day_ago, end)
    start = spans[0].start if spans else day_ago
    known = end - start if spans else 0

    def piece(span: Span) -> Piece:
        x, width = ((part * _WIDTH) / known for part in (span.start - start, span.end - span.start))
        moments = (iso(moment, services.zone) for moment in (span.start, span.end))
        return Piece(span.state.value, round(x, 2), round(width, 2), *moments)

    return UpTime(
        share_up(spans), known if known < DAY_MS else None, [piece(span) for span in spans], iso(start, services.zone)
    )


async def trust(services: Services, session: Session) -> Mapping[str, object] | None:
    """The account's level, when the next one comes, and its pauses; None before it was ever linked."""
    now, phone = services.clock(), session.phone or ""
    account = (await services.store.accounts.look_many({phone}, now)).get(phone) if phone else None
    if account is None:
        return None
    table, first = services.policy.table, account.profile.first_connected_at
    next_at = table.next_level_at(first, now)
    shortest, longest = services.policy.limits(account.profile, now).delay_range
    return {
        "shortest": shortest,
        "longest": longest,
        "level": table.level(first, now).value,
        "next": table.level(first, next_at).value if next_at else None,
        "next_at": iso_or_none(next_at, account.profile.zone),
    }


async def queue(services: Services, session: Session) -> Mapping[str, object]:
    """What leaves next, and whether there is more."""
    if session.phone is None:
        return {"items": [], "nextCursor": None}
    return await services.reading.queue(session.id, _QUEUED, None)


async def recent(services: Services, session: str) -> list[Mapping[str, object]]:
    """Newest first, the fields as texts."""
    found: Any = (await services.views.events(session, 4 * _EVENTS, None))["items"]
    told = [event for event in found if event["type"] not in _ECHOED]
    return [{**event, "data": _texts(event["data"])} for event in told[:_EVENTS]]


def _texts(data: object) -> dict[str, str]:
    return {name: str(value) for name, value in data.items()} if isinstance(data, dict) else {}
