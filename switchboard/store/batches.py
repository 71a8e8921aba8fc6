"""Batches: their totals, and cancelling what is left of one."""

from dataclasses import dataclass

from switchboard.store.client import Redis, store_errors
from switchboard.store.keys import Keys

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


class Batches:
    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    async def get(self, batch_id: str) -> Batch | None:
        async with store_errors():
            raw = await self._client.hgetall(self._keys("batch", batch_id))
        if not raw:
            return None
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

    async def mark_cancelled(self, batch_id: str, now: int) -> None:
        """From here on nothing of it is released, even if whoever cancels the rest dies half-way."""
        async with store_errors():
            if await self._client.exists(self._keys("batch", batch_id)):
                await self._client.hsetnx(self._keys("batch", batch_id), "cancelled_at", str(now))

    async def rows(self, batch_id: str, start: int, count: int) -> list[str]:
        async with store_errors():
            return list(await self._client.lrange(self._keys("batch_rows", batch_id), start, start + count - 1))
