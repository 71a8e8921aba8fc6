"""Everything that is asked about messages, queues, batches, figures and limits. No HTTP here."""

from collections.abc import Collection
from dataclasses import fields
from datetime import date, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from switchboard.domain import errors, hours
from switchboard.domain.accounts import Account
from switchboard.domain.clock import Clock
from switchboard.domain.ids import whatsapp_id
from switchboard.domain.messages import Message
from switchboard.domain.pacing import Policy, Verdict
from switchboard.domain.waiting import explain
from switchboard.store import Store
from switchboard.store.batches import Batch
from switchboard.store.messages import MessageQuery, MessageView
from switchboard.store.stats import Day
from switchboard.web.times import iso, iso_or_none

_MOST_DAYS = 92

OVERRIDE_NAMES = {
    "daily": "daily",
    "per_minute": "perMinute",
    "base_delay_ms": "baseDelayMs",
    "jitter_ms": "jitterMs",
    "hours": "hours",
}


class Reading:
    def __init__(self, store: Store, policy: Policy, zone: ZoneInfo, clock: Clock) -> None:
        self._store = store
        self._policy = policy
        self._zone = zone
        self._clock = clock

    async def status(self, message_id: str) -> tuple[Message, dict[str, object]]:
        now = self._clock()
        view = await self._store.messages.look(message_id, now)
        if view is None:
            raise errors.MessageNotFound(message_id)
        return view.message, self._show_view(view, now)

    async def messages(
        self, query: MessageQuery, limit: int, cursor: str | None, sessions: frozenset[str] = frozenset()
    ) -> dict[str, Any]:
        """Newest first, or a batch's in the order of its rows; of all sessions, or only of some.

        A page may hold fewer than `limit` and yet not be the last: only a cursor of None says so.
        """
        now = self._clock()
        page = await self._store.messages.recent(query, limit, cursor, sessions)
        views = await self._store.messages.look_many([message.id for message in page.items], now)
        return {"items": [self._show_view(view, now) for view in views], "nextCursor": page.next_cursor}

    async def text(self, message_id: str) -> str:
        """What it says: for the person who runs this, and not for whoever has a key."""
        for message in await self._store.messages.get_many([message_id]):
            return message.text
        raise errors.MessageNotFound(message_id)

    def _show_view(self, view: MessageView, now: int) -> dict[str, object]:
        return self.show(view.message, self._explain(view, now), _zone_of(view, self._zone))

    def _explain(self, view: MessageView, now: int) -> Verdict | None:
        account = view.account.account if view.account else None
        return explain(self._policy, view.message, view.position, account, now, view.received, view.connected_accounts)

    def show(self, message: Message, waiting: Verdict | None = None, zone: ZoneInfo | None = None) -> dict[str, object]:
        zone = zone or self._zone
        return {
            "messageId": message.id,
            "status": message.status,
            "to": message.to,
            "sessionId": message.session,
            "phone": message.account,
            "priority": message.priority,
            "reference": message.reference,
            "batchId": message.batch,
            "attempts": message.attempts,
            "whatsappId": whatsapp_id(message.id),
            "createdAt": iso(message.created_at, zone),
            "scheduledFor": iso_or_none(message.scheduled_for, zone),
            "sentAt": iso_or_none(message.sent_at, zone),
            "deliveredAt": iso_or_none(message.delivered_at, zone),
            "readAt": iso_or_none(message.read_at, zone),
            "error": message.error,
            "waiting": waiting
            and {
                "reason": waiting.reason,
                "until": iso_or_none(waiting.at, zone),
            },
        }

    async def queue(self, session: str, limit: int, cursor: str | None) -> dict[str, object]:
        now = self._clock()
        view = await self._store.accounts.look(session=session, now=now)
        account = view.account
        page = await self._store.messages.queue_page(account.profile.phone, limit, cursor)
        received = await self._store.messages.received([message.to for message in page.items])
        items = [
            self.show(message, explain(self._policy, message, position, account, now, got), account.profile.zone)
            for position, (message, got) in enumerate(zip(page.items, received, strict=True), page.first_position)
        ]
        return {"items": items, "nextCursor": page.next_cursor}

    async def dead_letters(
        self,
        limit: int,
        cursor: str | None,
        sessions: frozenset[str] = frozenset(),
        *,
        newest_first: bool = False,
    ) -> dict[str, object]:
        """Of all sessions, or only of some: then a page may hold fewer than `limit`."""
        page = await self._store.messages.dead_page(limit, cursor, newest_first=newest_first)
        items = [
            self.show(message) | {"failedAt": iso(int(page.scores[message.id]), self._zone)}
            for message in page.items
            if not sessions or message.session in sessions
        ]
        return {"items": items, "nextCursor": page.next_cursor}

    async def batch(self, batch_id: str) -> tuple[Batch, dict[str, object]]:
        batch = await self._store.batches.get(batch_id)
        if batch is None:
            raise errors.BatchNotFound(batch_id)
        return batch, self._show_batch(batch)

    async def batches(self, limit: int, cursor: str | None, sessions: frozenset[str] = frozenset()) -> dict[str, Any]:
        """Newest first; of all sessions, or only of some."""
        page = await self._store.batches.page(limit, cursor, sessions)
        return {"items": [self._show_batch(batch) for batch in page.items], "nextCursor": page.next_cursor}

    def _show_batch(self, batch: Batch) -> dict[str, object]:
        return {
            "batchId": batch.id,
            "sessionId": batch.session,
            "phone": batch.account,
            "total": batch.total,
            "waiting": batch.waiting,
            "sent": batch.sent,
            "delivered": batch.delivered,
            "read": batch.read,
            "failed": batch.dead + batch.unconfirmed,
            "cancelled": batch.cancelled,
            "createdAt": iso(batch.created_at, self._zone),
            "cancelledAt": iso_or_none(batch.cancelled_at, self._zone),
            "spreadMinutes": batch.spread_ms / 60_000,
        }

    async def stats(
        self,
        *,
        session: str | None = None,
        phone: str | None = None,
        on: date | None = None,
        span: tuple[date, date] | None = None,
        by_hour: bool = False,
    ) -> list[dict[str, object]]:
        """Of a session, of an account, or of the whole fleet; one day (today if none is named) or a span."""
        now = self._clock()
        zone, queue_size = self._zone, None
        if session is not None:
            await self._known_session(session)
        if phone is not None or (session is not None and (await self._linked(session))):
            view = await self._store.accounts.look(session=session or "", phone=phone or "", now=now)
            zone, queue_size = view.account.profile.zone, view.account.waiting
        elif session is None:
            queue_size = (await self._store.messages.waiting())["queue"]
        today = date.fromisoformat(hours.day_of(now, zone))
        first, last = span or (on or today, on or today)
        if last < first or (last - first).days >= _MOST_DAYS:
            raise errors.InvalidRequest(f"from, to: a span of 1 to {_MOST_DAYS} days", "to")
        dates = [(first + timedelta(days=n)).isoformat() for n in range((last - first).days + 1)]
        scope = f"session:{session}" if session else f"account:{phone}" if phone else "fleet"
        days = await self._store.stats.days(scope, dates)
        return [
            _shown_day(day, session, queue_size if day.date == today.isoformat() else None, by_hour) for day in days
        ]

    async def sessions_of(self, phone: str) -> set[str]:
        return await self._store.accounts.sessions_of(phone)

    async def _known_session(self, session: str) -> None:
        if await self._store.sessions.get(session) is None:
            raise errors.SessionNotFound(session)

    async def _linked(self, session: str) -> bool:
        found = await self._store.sessions.get(session)
        return found is not None and found.phone is not None

    async def limits(self, session: str) -> dict[str, object]:
        now = self._clock()
        view = await self._store.accounts.look(session=session, now=now)
        return self._show_limits(session, view.account, now)

    async def limits_of(self, sessions: Collection[str]) -> dict[str, dict[str, object]]:
        """The same for many at once; those that were never linked have none."""
        now = self._clock()
        phones = {one.id: one.phone for one in await self._store.sessions.get_many(list(sessions)) if one.phone}
        accounts = await self._store.accounts.look_many(set(phones.values()), now)
        return {
            session: self._show_limits(session, accounts[phone], now)
            for session, phone in phones.items()
            if phone in accounts
        }

    def _show_limits(self, session: str, account: Account, now: int) -> dict[str, object]:
        profile, table = account.profile, self._policy.table
        limits = self._policy.limits(profile, now)
        overridden = [
            OVERRIDE_NAMES[field.name]
            for field in fields(profile.overrides)
            if getattr(profile.overrides, field.name) is not None
        ]
        return {
            "sessionId": session,
            "phone": profile.phone,
            "trustLevel": table.level(profile.first_connected_at, now),
            "daily": limits.daily,
            "perMinute": limits.per_minute,
            "baseDelayMs": limits.base_delay_ms,
            "jitterMs": limits.jitter_ms,
            "hours": str(limits.hours),
            "timezone": profile.zone.key,
            "overridden": overridden + (["timezone"] if profile.own_zone else []),
            "nextLevelAt": iso_or_none(table.next_level_at(profile.first_connected_at, now), profile.zone),
            "sentToday": account.sent_today(now),
        }


def _zone_of(view: MessageView, default: ZoneInfo) -> ZoneInfo:
    return view.account.account.profile.zone if view.account else default


def _shown_day(day: Day, session: str | None, queue_size: int | None, by_hour: bool) -> dict[str, object]:
    shown: dict[str, object] = {
        "sessionId": session,
        "date": day.date,
        "sent": day.sent,
        "failed": day.failed,
        "delivered": day.delivered,
        "read": day.read,
        "avgDeliveryTime": day.avg_delivery_ms,
        "queueSize": queue_size,
    }
    return shown | ({"hours": list(day.hours)} if by_hour else {})
