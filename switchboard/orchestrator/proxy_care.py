"""Looks after the pool: tries proxies, marks them, and says how many places are left. Moves no session itself."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from switchboard.domain.clock import Clock
from switchboard.domain.errors import InvalidRequest, ProxyInUse, ProxyNotFound, StoreUnavailable
from switchboard.domain.proxies import Proxy, ProxyUrl, ProxyUrlError
from switchboard.domain.sessions import DIRECT
from switchboard.orchestrator.prober import Prober, Verdict
from switchboard.store import Store

_log = structlog.get_logger(__name__)
_AT_ONCE = 10


@dataclass(frozen=True, slots=True)
class Inventory:
    """`free` places are those on proxies that work."""

    proxies: int
    bad: int
    capacity: int
    used: int
    free: int


def inventory_of(proxies: Sequence[Proxy]) -> Inventory:
    return Inventory(
        proxies=len(proxies),
        bad=sum(not proxy.ok for proxy in proxies),
        capacity=sum(proxy.capacity for proxy in proxies),
        used=sum(len(proxy.sessions) for proxy in proxies),
        free=sum(proxy.room for proxy in proxies if proxy.ok),
    )


class ProxyCare:
    def __init__(self, store: Store, prober: Prober, interval_ms: int, low_below: int, clock: Clock) -> None:
        self._store = store
        self._prober = prober
        self._interval_ms = interval_ms
        self._low_below = low_below
        self._clock = clock
        self.empty = False
        """Whether the pool was, when it was last counted."""
        self._trials: set[asyncio.Task[None]] = set()
        self._limit = asyncio.Semaphore(_AT_ONCE)

    async def run(self) -> None:
        """Until cancelled: try those that are out of order, and count the places left."""
        try:
            while True:
                try:
                    await self.round()
                except StoreUnavailable:
                    _log.warning("proxies.store_away")
                await asyncio.sleep(self._interval_ms / 1000)
        finally:
            for trial in self._trials:
                trial.cancel()

    async def round(self) -> None:
        bad = [proxy.id for proxy in await self._store.proxies.all() if not proxy.ok]
        await asyncio.gather(*(self._quietly(proxy) for proxy in bad))
        await self.count()

    async def count(self) -> Inventory:
        inventory = inventory_of(await self._store.proxies.all())
        self.empty = inventory.proxies == 0
        if inventory.proxies:
            await self._store.proxies.note_places(inventory.free, inventory.capacity, self._low_below, self._clock())
        return inventory

    async def seed(self, urls: Sequence[str]) -> None:
        """The pool of the settings, as soon as the store is there."""
        while True:
            try:
                return await self._seed(urls)
            except StoreUnavailable:
                await asyncio.sleep(1)

    async def _seed(self, urls: Sequence[str]) -> None:
        """One that left the settings leaves the pool once no session is on it."""
        named = {(await self._store.proxies.add(ProxyUrl.parse(url), "settings", self._clock()))[0] for url in urls}
        for proxy in sorted(await self._store.proxies.of_source("settings") - named):
            try:
                await self._store.proxies.remove(proxy, force=False, now=self._clock())
            except ProxyInUse as used:
                _log.warning("proxy.not_in_settings_any_more", proxy=proxy, sessions=used.details["sessions"])
        for proxy in named:
            self.suspect(proxy)

    async def add(self, text: str, field: str = "url") -> tuple[Proxy, bool]:
        """Into the pool, tried at once, so that its first status is true. Also: whether it is new."""
        try:
            url = ProxyUrl.parse_pasted(text)
        except ProxyUrlError as error:
            raise InvalidRequest(f"{field}: {error}", field, reason=error.code) from None
        verdict = await self._prober.probe(url)
        fault = None if verdict.ok else verdict.code
        proxy, new = await self._store.proxies.add(url, "api", self._clock(), fault)
        if new is None:
            raise InvalidRequest(
                f"{field}: the pool has this proxy already, as '{proxy}', and what you gave does not work: "
                f"{verdict.detail} Nothing was changed.",
                field,
                reason="known",
                fault=verdict.code,
                proxyId=proxy,
            )
        if not new:
            await self._note(proxy, verdict)
        _log.info("proxy.added", proxy=proxy, new=new, verdict=verdict.code)
        await self.count()
        return await self._store.proxies.find(proxy), new

    async def remove(self, proxy: str, *, force: bool) -> None:
        await self._store.proxies.remove(proxy, force=force, now=self._clock())
        _log.info("proxy.removed", proxy=proxy)
        await self.count()

    async def probe(self, proxy: str) -> Verdict:
        """Try it now, and mark it by what was found."""
        url = await self._store.proxies.url_of(proxy)
        if url is None:
            raise ProxyNotFound(proxy)
        verdict = await self._prober.probe(url)
        await self._note(proxy, verdict)
        return verdict

    async def works(self, proxy: str) -> bool:
        """Tried right now. When that can't be told, nobody should move there."""
        try:
            return (await self._store.proxies.find(proxy)).ok and (await self.probe(proxy)).ok
        except (ProxyNotFound, OSError):
            return False

    def suspect(self, proxy: str | None) -> None:
        """A session on it went down without saying why. Was it the proxy? Found out in the background."""
        if proxy is None or proxy == DIRECT:
            return
        trial = asyncio.create_task(self._quietly(proxy), name=f"probe:{proxy}")
        self._trials.add(trial)
        trial.add_done_callback(self._trials.discard)

    async def _quietly(self, proxy: str) -> None:
        try:
            async with self._limit:
                await self.probe(proxy)
        except (ProxyNotFound, StoreUnavailable, OSError) as reason:  # the last: this machine's shortage, not its fault
            _log.warning("proxy.not_probed", proxy=proxy, error=str(reason))

    async def _note(self, proxy: str, verdict: Verdict) -> None:
        news = await self._store.proxies.mark(proxy, ok=verdict.ok, reason=verdict.code, now=self._clock())
        if news and verdict.ok:
            _log.info("proxy.recovered", proxy=proxy)
        elif news:
            _log.warning("proxy.bad", proxy=proxy, code=verdict.code, detail=verdict.detail)
