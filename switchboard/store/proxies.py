"""The pool of proxies. Only `url_of` gives credentials away, to those who start workers or probe."""

from collections.abc import Sequence

from switchboard.domain.errors import ProxyInUse, ProxyNotFound
from switchboard.domain.proxies import Proxy, ProxyUrl
from switchboard.store.client import Redis, store_errors
from switchboard.store.keys import Keys
from switchboard.store.scripts import Scripts


class Proxies:
    def __init__(self, client: Redis, keys: Keys, scripts: Scripts, capacity: int) -> None:
        self._client = client
        self._keys = keys
        self._scripts = scripts
        self.capacity = capacity

    async def all(self) -> list[Proxy]:
        async with store_errors():
            ids = sorted(await self._client.smembers(self._keys("proxies")))
        return [proxy for proxy in await self._read(ids) if proxy]

    async def find(self, proxy: str) -> Proxy:
        (found,) = await self._read([proxy])
        if found is None:
            raise ProxyNotFound(proxy)
        return found

    async def _read(self, ids: Sequence[str]) -> list[Proxy | None]:
        async with store_errors():
            pipeline = self._client.pipeline(transaction=True)
            for proxy in ids:
                pipeline.hmget(self._keys("proxy", proxy), ["host", "status", "badAt", "reason"])
                pipeline.smembers(self._keys("proxy_sessions", proxy))
            answers = await pipeline.execute()
        found: list[Proxy | None] = []
        for proxy, (host, status, bad_at, reason), sessions in zip(ids, answers[::2], answers[1::2], strict=True):
            bad = int(bad_at) if bad_at else None
            known = Proxy(proxy, host or "", status == "OK", bad, frozenset(sessions), self.capacity, reason or None)
            found.append(known if status else None)
        return found

    async def url_of(self, proxy: str) -> ProxyUrl | None:
        async with store_errors():
            url = await self._client.hget(self._keys("proxy", proxy), "url")
        return ProxyUrl.parse(url) if url else None

    async def sticky(self, phone: str) -> str | None:
        async with store_errors():
            found: str | None = await self._client.get(self._keys("phone_proxy", phone))
        return found

    async def add(self, url: ProxyUrl, source: str, now: int, fault: str | None = None) -> tuple[str, bool | None]:
        """Its id, and whether it is new. With a fault a new one begins as BAD, and a known one is left alone: None."""
        place = f"{url.host.lower()} {url.port} {url.user or ''}"
        status = "BAD" if fault else "OK"
        proxy, new = await self._scripts.run("add_proxy", url.url, url.address, place, source, now, status, fault or "")
        return proxy, None if new == -1 else bool(new)

    async def of_source(self, source: str) -> set[str]:
        async with store_errors():
            ids = sorted(await self._client.smembers(self._keys("proxies")))
            pipeline = self._client.pipeline(transaction=False)
            for proxy in ids:
                pipeline.hget(self._keys("proxy", proxy), "source")
            return {proxy for proxy, found in zip(ids, await pipeline.execute(), strict=True) if found == source}

    async def mark(self, proxy: str, *, ok: bool, reason: str, now: int) -> bool:
        """True if that is news."""
        return bool(await self._scripts.run("mark_proxy", proxy, "OK" if ok else "BAD", reason, now))

    async def remove(self, proxy: str, *, force: bool, now: int) -> None:
        outcome, *sessions = await self._scripts.run("remove_proxy", proxy, int(force), now)
        if outcome == "NOT_FOUND":
            raise ProxyNotFound(proxy)
        if outcome == "IN_USE":
            raise ProxyInUse(proxy, sorted(sessions))

    async def note_places(self, free: int, capacity: int, low_below: int, now: int) -> bool:
        """Tell once when few places are left, and once when there are enough again; True if that is news."""
        return bool(await self._scripts.run("inventory", free, capacity, low_below, now))
