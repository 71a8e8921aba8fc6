"""The people who must not be written to."""

from switchboard.store.client import Redis, store_errors
from switchboard.store.keys import Keys


class Suppressions:
    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    async def add(self, phone: str) -> None:
        async with store_errors():
            await self._client.sadd(self._keys("suppressions"), phone)

    async def remove(self, phone: str) -> None:
        async with store_errors():
            await self._client.srem(self._keys("suppressions"), phone)
