"""The fleet as a whole: its figures, and its sessions in the order in which a person should look at them."""

import asyncio
import re
from collections import Counter
from collections.abc import Collection
from heapq import nsmallest
from typing import NamedTuple

from switchboard.domain.attention import Attention, Rank, attention, rank
from switchboard.domain.clock import Clock
from switchboard.domain.errors import InvalidRequest
from switchboard.domain.figures import FleetFigures
from switchboard.domain.ids import natural
from switchboard.domain.pacing import Policy
from switchboard.domain.sessions import State, shown_state
from switchboard.orchestrator.session_views import SessionViews
from switchboard.store import Store
from switchboard.store.glance import SessionGlance

_CURSOR = re.compile(r"([0-9])-(.+)")
_NO_PHONE = re.compile(r"[^0-9+() .-]")


class _Place(NamedTuple):
    """Of a session in the list. It depends on that session alone, so it holds while others come and go."""

    rank: int
    order: tuple[list[str | int], str]

    @property
    def cursor(self) -> str:
        return f"{self.rank}-{self.order[1]}"


class Overview:
    def __init__(self, store: Store, views: SessionViews, policy: Policy, clock: Clock) -> None:
        self._store = store
        self._views = views
        self._policy = policy
        self._clock = clock

    async def figures(self) -> FleetFigures:
        now = self._clock()
        glance, waiting = await asyncio.gather(self._store.glances.take(), self._store.messages.waiting())
        by_state = Counter(shown_state(one.state, one.account, now) for one in glance.sessions)
        in_use = {one.phone: one.account for one in glance.sessions if one.account}
        return FleetFigures(
            sessions={state: by_state[state] for state in State},
            attention=sum(attention(one.state, one.reason, one.account) is not None for one in glance.sessions),
            accounts=len(in_use),
            sent_today=sum(account.sent_today(now) for account in glance.accounts.values()),
            allowance_today=sum(self._policy.limits(account.profile, now).daily for account in in_use.values()),
            waiting=waiting["queue"],
            scheduled=waiting["scheduled"],
            jobs=waiting["jobs"],
            dead=waiting["dead"],
        )

    async def needing(self, limit: int) -> list[dict[str, object]]:
        """The first of those that need a person, as the plain list has them, each with `attention`: what for."""
        found = {
            one.id: why
            for one in (await self._store.glances.take()).sessions
            if (why := attention(one.state, one.reason, one.account))
        }
        items = await self._views.show(nsmallest(limit, found, key=natural))
        return [{**item, "attention": found[str(item["sessionId"])].value} for item in items]

    async def waiting_for_proxy(self) -> int:
        """Sessions that would go on if the pool had a place for them."""
        found = (await self._store.glances.take()).sessions
        return sum(attention(one.state, one.reason, one.account) is Attention.WAITING_FOR_PROXY for one in found)

    async def page(
        self,
        states: Collection[str] = (),
        search: str = "",
        limit: int = 50,
        cursor: str | None = None,
        attention_first: bool = True,
        *,
        only: Collection[str] = (),
    ) -> dict[str, object]:
        """Those that show one of these states and match the search; all if neither is given. As the plain list has
        them, and how many match in all. `only` these if any are named.
        """
        now = self._clock()
        after = _place_of(cursor) if cursor else None
        wanted = _Search(search)
        found = [
            _Place(rank(one.state, one.reason, one.account, now) if attention_first else Rank(0), natural(one.id))
            for one in (await self._store.glances.take()).sessions
            if (not only or one.id in only)
            and (not states or shown_state(one.state, one.account, now) in states)
            and wanted.finds(one)
        ]
        rest = nsmallest(limit + 1, (place for place in found if after is None or place > after))
        items = await self._views.show([place.order[1] for place in rest[:limit]])
        return {
            "items": items,
            "nextCursor": rest[limit - 1].cursor if len(rest) > limit else None,
            "total": len(found),
        }


def _place_of(cursor: str) -> _Place:
    parts = _CURSOR.fullmatch(cursor)
    if parts is None:
        raise InvalidRequest("cursor: is none of this list", "cursor")
    return _Place(int(parts[1]), natural(parts[2]))


class _Search:
    """A part of an id or a name, in whatever case; or of a phone number, however it is written."""

    def __init__(self, text: str) -> None:
        self._text = text.strip().casefold()
        digits = "" if _NO_PHONE.search(self._text) else re.sub(r"[^0-9]", "", self._text)
        self._digits = digits.removeprefix("00").removeprefix("0") or digits  # as it is dialled at home or from abroad

    def finds(self, session: SessionGlance) -> bool:
        if self._text in session.id.casefold() or self._text in session.name.casefold():
            return True
        return bool(self._digits) and self._digits in session.phone
