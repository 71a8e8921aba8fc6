"""Sessions as they are shown: the record, with what its account may still do today."""

import json
from bisect import bisect
from collections.abc import Collection, Sequence
from zoneinfo import ZoneInfo

from switchboard.domain.accounts import Account
from switchboard.domain.clock import Clock
from switchboard.domain.errors import SessionNotFound
from switchboard.domain.ids import natural
from switchboard.domain.pacing import Policy
from switchboard.domain.sessions import Session, held_until, hold_reason, shown
from switchboard.store import Store
from switchboard.web.times import iso, iso_or_none


class SessionViews:
    def __init__(self, store: Store, policy: Policy, zone: ZoneInfo, clock: Clock) -> None:
        self._store = store
        self._policy = policy
        self._zone = zone
        self._clock = clock

    async def one(self, session_id: str) -> dict[str, object]:
        for shape in await self.show([session_id]):
            return shape
        raise SessionNotFound(session_id)

    async def page(self, limit: int, cursor: str | None, only: Collection[str] = ()) -> dict[str, object]:
        """By id, worker_2 before worker_10; `only` these if any are named."""
        places = sorted(natural(one) for one in await self._store.sessions.ids() if not only or one in only)
        rest = [one for _, one in (places[bisect(places, natural(cursor)) :] if cursor else places)]
        return {
            "items": await self.show(rest[:limit]),
            "nextCursor": rest[limit - 1] if len(rest) > limit else None,
        }

    async def show(self, ids: Sequence[str]) -> list[dict[str, object]]:
        """Those of these that exist, in this order; in two round trips, however many they are."""
        now = self._clock()
        sessions = await self._store.sessions.get_many(ids)
        accounts = await self._store.accounts.look_many({one.phone for one in sessions if one.phone}, now)
        return [self._shape(session, accounts.get(session.phone or ""), now) for session in sessions]

    def _shape(self, session: Session, account: Account | None, now: int) -> dict[str, object]:
        state, hold_ends = shown(session, account, now)
        zone = account.profile.zone if account else self._zone
        return {
            "sessionId": session.id,
            "name": session.name,
            "status": state.value,
            "phone": session.phone,
            "proxyId": session.proxy,
            "deviceName": session.device or None,
            "trustLevel": account and self._policy.table.level(account.profile.first_connected_at, now),
            "limits": account and self._limits(account, now),
            "sentToday": account.sent_today(now) if account else 0,
            "queueSize": account.waiting if account else 0,
            "createdAt": iso(session.created_at, zone),
            "connectedAt": iso_or_none(session.connected_at, zone),
            "lastPing": iso_or_none(session.last_ping, zone),
            "paused": bool(account and held_until(account.paused_until, now)),
            "pausedUntil": iso_or_none(hold_ends, zone),
            "pausedReason": hold_reason(account, now) if account else None,
            "scanBy": iso_or_none(session.scan_by, zone),
            "reason": session.reason,
        }

    def _limits(self, account: Account, now: int) -> dict[str, object]:
        limits = self._policy.limits(account.profile, now)
        return {
            "daily": limits.daily,
            "perMinute": limits.per_minute,
            "baseDelayMs": limits.base_delay_ms,
            "jitterMs": limits.jitter_ms,
            "hours": str(limits.hours),
        }

    async def events(self, session_id: str, limit: int, cursor: str | None) -> dict[str, object]:
        """Newest first."""
        await self._store.sessions.find(session_id)
        found = await self._store.sessions.events(session_id, limit, cursor)
        items = [self._event(entry, fields) for entry, fields in found]
        return {"items": items, "nextCursor": found[-1][0] if len(found) == limit else None}

    def _event(self, entry: str, fields: dict[str, str]) -> dict[str, object]:
        kind, at = fields.pop("type"), int(fields.pop("at"))
        data: object = json.loads(fields["data"]) if "data" in fields else fields
        return {"id": entry, "type": kind, "at": iso(at, self._zone), "data": data}
