"""How the store itself does: what its INFO says, how fast it answers, and what it says the time is."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from switchboard.store.client import Redis, store_errors
from switchboard.store.keys import Keys

_SECTIONS = ("server", "memory", "clients", "persistence")


@dataclass(frozen=True, slots=True)
class StoreHealth:
    took_ms: int
    at: int  # by its own clock
    name: str
    version: str
    up_ms: int
    used_bytes: int
    most_bytes: int  # 0: no limit
    evicts: bool
    clients: int
    most_clients: int  # 0: it does not say
    keeps: bool  # writes down what it is told
    written: bool  # and could the last time
    rewritten: bool  # so it was with the whole of it
    file_bytes: int
    late_ms: int
    """For how long the first of what is due has been so, and no dispatcher took it."""


class Health:
    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    async def look(self, now: int) -> StoreHealth:
        async with store_errors():
            began = time.perf_counter()
            await self._client.ping()
            took_ms = round((time.perf_counter() - began) * 1000)
            pipeline = self._client.pipeline(transaction=False)
            pipeline.time()
            pipeline.zrange(self._keys("due"), 0, 0, withscores=True)
            pipeline.zrange(self._keys("scheduled"), 0, 0, withscores=True)
            for section in _SECTIONS:
                pipeline.info(section)
            (seconds, micros), due, scheduled, *sections = await pipeline.execute()
        info: dict[str, Any] = {name: value for section in sections for name, value in section.items()}
        first = min((score for _, score in [*due, *scheduled]), default=now)
        return _health(info, took_ms, int(seconds) * 1000 + int(micros) // 1000, max(0, int(now - first)))


def _health(info: Mapping[str, Any], took_ms: int, at: int, late_ms: int) -> StoreHealth:
    """Valkey and Redis name the same things; what an older or a hosted one leaves out is taken as good."""
    most = int(info.get("maxmemory", 0))
    kept = bool(info.get("aof_enabled", 0))
    valkey = "valkey_version" in info
    return StoreHealth(
        took_ms=took_ms,
        at=at,
        name="Valkey" if valkey else "Redis",
        version=str(info.get("valkey_version" if valkey else "redis_version", "?")),
        up_ms=int(info.get("uptime_in_seconds", 0)) * 1000,
        used_bytes=int(info.get("used_memory", 0)),
        most_bytes=most,
        evicts=str(info.get("maxmemory_policy", "noeviction")) != "noeviction",
        clients=int(info.get("connected_clients", 0)),
        most_clients=int(info.get("maxclients", 0)),
        keeps=kept,
        written=info.get("aof_last_write_status", "ok") == "ok",
        rewritten=info.get("aof_last_bgrewrite_status", "ok") == "ok",
        file_bytes=int(info.get("aof_current_size", 0)),
        late_ms=late_ms,
    )
