"""At most one orchestrator runs a fleet: the one whose folder holds the sessions. Another takes over if told to."""

from switchboard.store.client import Redis, store_errors
from switchboard.store.keys import Keys


class Leader:
    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._key = keys("leader")

    async def hold(self, name: str) -> bool:
        """Take the place if it is free; False while another one has it. It has no end: the auth data stays put, too."""
        async with store_errors():
            return bool(await self._client.set(self._key, name, nx=True) or await self._client.get(self._key) == name)

    async def take_over(self, name: str) -> None:
        async with store_errors():
            await self._client.set(self._key, name)
