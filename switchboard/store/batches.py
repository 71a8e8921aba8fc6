"""Batches: their totals, and cancelling what is left of one."""

from collections.abc import Mapping
from dataclasses import dataclass

from switchboard.store.client import Redis, store_errors
from switchboard.store.index import Index, WalkRules
from switchboard.store.keys import Keys
from switchboard.store.scripts import Scripts

_ENDS = ("sent", "delivered", "read", "dead", "unconfirmed", "cancelled")


@dataclass(frozen=True, slots=True)
class Batch:
    id: str
    total: int
    created_at: int
    spread_ms: int
    account: str | None
    session: str | None
    cancelled_at: int | None
    sent: int
    delivered: int
    read: int
    dead: int
    unconfirmed: int
    cancelled: int

    @property
    def waiting(self) -> int:
        return self.total - self.sent - self.dead - self.unconfirmed - self.cancelled


@dataclass(frozen=True, slots=True)
class BatchPage:
    """Batches, newest first, and where the list goes on; None at its end."""

    items: list[Batch]
    next_cursor: str | None


class Batches:
    def __init__(self, client: Redis, keys: Keys, scripts: Scripts, walk: WalkRules) -> None:
        self._client = client
        self._keys = keys
        self._index = Index(scripts, "batches", walk)

    async def get(self, batch_id: str) -> Batch | None:
        async with store_errors():
            raw = await self._client.hgetall(self._keys("batch", batch_id))
        return _batch_of(batch_id, raw) if raw else None

    async def page(self, limit: int, cursor: str | None, sessions: frozenset[str] = frozenset()) -> BatchPage:
        """Of all sessions, or only of some."""
        found = await self._index.find(limit, cursor, among={"session": sessions} if sessions else {})
        async with store_errors():
            pipeline = self._client.pipeline(transaction=False)
            for batch_id in found.ids:
                pipeline.hgetall(self._keys("batch", batch_id))
            rows = await pipeline.execute()
        items = [_batch_of(batch_id, row) for batch_id, row in zip(found.ids, rows, strict=True) if row]
        return BatchPage(items, found.next_cursor)

    async def tidy(self, before: int) -> int:
        """How many of those accepted before this moment, and forgotten since, left the index."""
        return await self._index.tidy(before)

    async def mark_cancelled(self, batch_id: str, now: int) -> None:
        """From here on nothing of it is released, even if whoever cancels the rest dies half-way."""
        async with store_errors():
            if await self._client.exists(self._keys("batch", batch_id)):
                await self._client.hsetnx(self._keys("batch", batch_id), "cancelled_at", str(now))

    async def rows(self, batch_id: str, start: int, count: int) -> list[str]:
        async with store_errors():
            return list(await self._client.lrange(self._keys("batch_rows", batch_id), start, start + count - 1))


def _batch_of(batch_id: str, raw: Mapping[str, str]) -> Batch:
    return Batch(
        id=batch_id,
        total=int(raw["total"]),
        created_at=int(raw["created"]),
        spread_ms=int(raw["spreadMs"]),
        account=raw.get("account") or None,
        session=raw.get("session") or None,
        cancelled_at=int(raw["cancelled_at"]) if "cancelled_at" in raw else None,
        **{end: int(raw.get(end, 0)) for end in _ENDS},
    )
