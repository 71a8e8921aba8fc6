"""A day's figures of a session, an account or the whole fleet, also by hour."""

from collections.abc import Sequence
from dataclasses import dataclass

from switchboard.store.client import Redis, store_errors
from switchboard.store.keys import Keys

FIGURES = ("sent", "failed", "delivered", "read")


@dataclass(frozen=True, slots=True)
class Day:
    date: str
    sent: int
    failed: int
    delivered: int
    read: int
    avg_delivery_ms: int | None
    hours: tuple[dict[str, int], ...]


class Stats:
    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    async def days(self, scope: str, dates: Sequence[str]) -> list[Day]:
        """`scope` is `session:<id>`, `account:<phone>` or `fleet`."""
        async with store_errors():
            pipeline = self._client.pipeline(transaction=False)
            for date in dates:
                pipeline.hgetall(self._keys("stats", f"{scope}:{date}"))
            rows = await pipeline.execute()
        return [_day(date, row) for date, row in zip(dates, rows, strict=True)]


def _day(date: str, raw: dict[str, str]) -> Day:
    hours = tuple({figure: int(raw.get(f"{figure}:{hour:02}", 0)) for figure in FIGURES} for hour in range(24))
    total = {figure: sum(hour[figure] for hour in hours) for figure in FIGURES}
    delivered = total["delivered"]
    return Day(
        date=date,
        avg_delivery_ms=round(int(raw.get("deliveryMs", 0)) / delivered) if delivered else None,
        hours=hours,
        **total,
    )
