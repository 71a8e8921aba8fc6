"""Looking at messages and queues, and taking back what has not left."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from switchboard.domain.messages import Message
from switchboard.store.client import Redis, store_errors
from switchboard.store.index import Index, WalkRules
from switchboard.store.keys import Keys
from switchboard.store.scripts import Scripts
from switchboard.store.views import AccountView, account_view, message_of, pairs


class Received(NamedTuple):
    """How many messages a recipient was given on the day that ends then."""

    got: int
    day_ends_at: int


@dataclass(frozen=True, slots=True)
class MessageView:
    """A message, its position in the queue it is in (1 is next, 0 in none), and its account."""

    message: Message
    position: int
    account: AccountView | None
    connected_accounts: int
    received: Received


@dataclass(frozen=True, slots=True)
class Page:
    """Messages, the place of the first in its queue (from 1; 0 in none), and where it goes on; None at its end."""

    items: list[Message]
    first_position: int
    next_cursor: str | None
    scores: Mapping[str, float] = field(default_factory=dict)  # what a queue or the dead letters are ordered by


@dataclass(frozen=True, slots=True)
class MessageQuery:
    """Which messages to find; what is empty does not matter."""

    statuses: frozenset[str] = frozenset()
    account: str = ""
    session: str = ""
    to: str = ""  # digits that the recipient's number holds
    batch: str = ""
    reference: str = ""


@dataclass(frozen=True, slots=True)
class MessageRules:
    room: int = 1000
    retention_s: int = 30 * 86_400
    walk: WalkRules = field(default_factory=WalkRules)


class Messages:
    def __init__(
        self, client: Redis, keys: Keys, scripts: Scripts, rules: MessageRules, default_zone: ZoneInfo
    ) -> None:
        self._client = client
        self._keys = keys
        self._scripts = scripts
        self._rules = rules
        self._zone = default_zone
        self._index = Index(scripts, "messages", rules.walk)

    async def look(self, message_id: str, now: int) -> MessageView | None:
        return self._view(message_id, await self._scripts.run("look", message_id, now))

    async def look_many(self, ids: Sequence[str], now: int) -> list[MessageView]:
        """The same for those that still exist, in one round trip."""
        raw = await self._scripts.run_together([("look", (message_id, now)) for message_id in ids])
        views = (self._view(message_id, one) for message_id, one in zip(ids, raw, strict=True))
        return [view for view in views if view is not None]

    def _view(self, message_id: str, raw: Sequence[Any]) -> MessageView | None:
        if not raw:
            return None
        fields, position, view, connected, (day_ends, count) = raw
        account = account_view(view, self._zone) if view else None
        return MessageView(
            message_of(message_id, pairs(fields)),
            int(position),
            account,
            int(connected),
            Received(int(count or 0), int(day_ends or 0)),
        )

    async def get_many(self, ids: Sequence[str]) -> list[Message]:
        """The messages that still exist, in the order asked for."""
        async with store_errors():
            pipeline = self._client.pipeline(transaction=False)
            for message_id in ids:
                pipeline.hgetall(self._keys("message", message_id))
            rows = await pipeline.execute()
        return [message_of(message_id, row) for message_id, row in zip(ids, rows, strict=True) if row]

    async def received(self, recipients: Sequence[str]) -> list[Received]:
        async with store_errors():
            pipeline = self._client.pipeline(transaction=False)
            for phone in recipients:
                pipeline.hmget(self._keys("recipient", phone), ["dayEnds", "count"])
            rows = await pipeline.execute()
        return [Received(int(count or 0), int(day_ends or 0)) for day_ends, count in rows]

    async def recent(
        self, query: MessageQuery, limit: int, cursor: str | None, sessions: frozenset[str] = frozenset()
    ) -> Page:
        """Newest first, or a batch's in the order of its rows; of all sessions, or only of some."""
        own = sessions & {query.session} if sessions and query.session else sessions or {query.session} - {""}
        if sessions and not own:
            return Page([], 0, None)
        among = {
            "status": query.statuses,
            "account": {query.account} - {""},
            "session": own,
            "reference": {query.reference} - {""},
        }
        found = await self._index.find(
            limit,
            cursor,
            rows=query.batch,
            among={name: values for name, values in among.items() if values},
            holding={"to": query.to} if query.to else {},
        )
        return Page(await self.get_many(found.ids), 0, found.next_cursor)

    async def tidy(self, before: int) -> int:
        """How many of those accepted before this moment, and forgotten since, left the index."""
        return await self._index.tidy(before)

    async def queue_page(self, phone: str, limit: int, cursor: str | None) -> Page:
        """What waits for an account, in the order it will leave."""
        return await self._page(self._keys("queue", phone), limit, cursor)

    async def dead_page(self, limit: int, cursor: str | None, *, newest_first: bool = False) -> Page:
        """Dead letters and unconfirmed messages by the moment when they were given up, which is their score."""
        return await self._page(self._keys("dead"), limit, cursor, newest_first)

    async def _page(self, key: str, limit: int, cursor: str | None, descending: bool = False) -> Page:
        """The cursor is the score and id of the last one shown, so it holds while others come and go."""
        after, _, last_id = cursor.partition("_") if cursor else ("", "", "")
        rows = await self._after(key, after or ("+inf" if descending else "-inf"), last_id, limit + 1, descending)
        shown = rows[:limit]
        more = len(rows) > limit
        items = await self.get_many([message_id for message_id, _ in shown])
        async with store_errors():
            rank = await self._client.zrank(key, shown[0][0]) if shown else None
        return Page(items, (rank or 0) + 1, f"{shown[-1][1]:.3f}_{shown[-1][0]}" if more else None, dict(shown))

    async def _after(
        self, key: str, score: str, last_id: str, count: int, descending: bool = False
    ) -> list[tuple[str, float]]:
        """At least `count` members that come after this one, if there are; any number may share its score."""
        rows: list[tuple[str, float]] = []
        offset, step, end = 0, count + 64, "-inf" if descending else "+inf"
        while len(rows) < count:
            async with store_errors():
                part: list[tuple[str, float]] = await self._client.zrange(
                    key, score, end, byscore=True, desc=descending, offset=offset, num=step, withscores=True
                )
            last = (float(score), last_id)
            rows += [(i, at) for i, at in part if ((at, i) < last if descending else (at, i) > last)]
            if len(part) < step:
                break
            offset += step
        return rows

    async def waiting(self) -> dict[str, int]:
        """How many messages wait, by place."""
        queue, scheduled, jobs, dead = await self._scripts.run("waiting")
        return {"queue": queue, "scheduled": scheduled, "jobs": jobs, "dead": dead}

    async def dead(self) -> int:
        """How many dead letters and unconfirmed messages there are."""
        async with store_errors():
            return int(await self._client.zcard(self._keys("dead")))

    async def cancel(self, ids: Sequence[str], now: int, reason: str, phone: str = "") -> list[str]:
        """OK, LEFT:<status> or UNKNOWN for each; with a phone, only messages of that account."""
        rules = self._rules
        return list(await self._scripts.run("cancel", now, rules.room, rules.retention_s, reason, phone, *ids))

    async def redrive(self, message_id: str, now: int) -> tuple[str, str]:
        return await self._decide(message_id, "retry", now)

    async def discard(self, message_id: str, now: int) -> tuple[str, str]:
        return await self._decide(message_id, "discard", now)

    async def _decide(self, message_id: str, what: str, now: int) -> tuple[str, str]:
        rules = self._rules
        outcome, detail = await self._scripts.run("redrive", message_id, what, now, rules.room, rules.retention_s)
        return outcome, detail
