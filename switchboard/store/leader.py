"""At most one orchestrator runs a fleet. The place is held by name, so a restarted one takes it back at once."""

from switchboard.store.client import Redis, store_errors
from switchboard.store.keys import Keys


class Leader:
    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._key = keys("leader")

    async def hold(self, name: str, lease_s: int) -> bool:
        """Take the place, or keep it, for some more seconds. False while another one has it."""
        async with store_errors():
            if await self._client.set(self._key, name, nx=True, ex=lease_s):
                return True
            # Only the holder of a name renews it, and nobody takes a place that is held: no race to lose here.
            return bool(await self._client.get(self._key) == name and await self._client.expire(self._key, lease_s))
