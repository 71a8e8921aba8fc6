"""The people who must not be written to."""

from collections.abc import Sequence

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

    async def among(self, phones: Sequence[str]) -> set[str]:
        """Those of these that must not be written to."""
        if not phones:
            return set()
        async with store_errors():
            found = await self._client.smismember(self._keys("suppressions"), list(phones))
        return {phone for phone, member in zip(phones, found, strict=True) if member}
