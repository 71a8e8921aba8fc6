"""The fleet's figures over time: one sample a minute, kept for a week."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from switchboard.domain.hours import DAY_MS, MINUTE_MS
from switchboard.store.client import Redis, store_errors
from switchboard.store.keys import Keys

_KEPT_MS = 7 * DAY_MS


@dataclass(frozen=True, slots=True)
class Sample:
    at: int
    figures: Mapping[str, int]


class Samples:
    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._key = keys("samples")

    async def add(self, at: int, figures: Mapping[str, int]) -> None:
        """The newest one: what is there for this moment or a later one (the clock was wrong) gives way to it."""
        async with store_errors():
            pipeline = self._client.pipeline(transaction=True)
            pipeline.zremrangebyscore(self._key, at, "+inf")
            pipeline.zadd(self._key, {f"{at} {json.dumps(figures, separators=(',', ':'))}": at})
            pipeline.zremrangebyscore(self._key, "-inf", at - _KEPT_MS)
            await pipeline.execute()

    async def since(self, at: int, most: int = 360) -> list[Sample]:
        """Oldest first, thinned evenly to at most so many. Those that stay do so while time goes on, but the last."""
        async with store_errors():
            found: list[str] = await self._client.zrange(self._key, at, "+inf", byscore=True)
        if not found:
            return []
        rows = [(int(moment), figures) for moment, _, figures in (entry.partition(" ") for entry in found)]
        step = _step(rows[-1][0] - rows[0][0], most)
        last_of = {moment // step: (moment, figures) for moment, figures in rows}
        return [Sample(moment, json.loads(figures)) for moment, figures in last_of.values()]


def _step(span: int, most: int) -> int:
    """Whole minutes, so long that a span touches at most so many of them."""
    return MINUTE_MS * max(1, -(-span // (MINUTE_MS * max(1, most - 1))))
