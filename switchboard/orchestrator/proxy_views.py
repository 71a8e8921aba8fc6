"""Proxies as they are shown: by id and host, never with their credentials."""

from dataclasses import asdict
from zoneinfo import ZoneInfo

from switchboard.domain.ids import natural
from switchboard.domain.proxies import Proxy
from switchboard.orchestrator.proxy_care import ProxyCare
from switchboard.store import Store
from switchboard.web.times import iso_or_none


class ProxyViews:
    def __init__(self, store: Store, care: ProxyCare, zone: ZoneInfo, allow_direct: bool) -> None:
        self._store = store
        self._care = care
        self._zone = zone
        self._allow_direct = allow_direct

    async def all(self) -> dict[str, object]:
        pool = sorted(await self._store.proxies.all(), key=lambda proxy: natural(proxy.id))
        return {"items": [self.show(proxy) for proxy in pool], "nextCursor": None}

    async def page(self, limit: int, cursor: str | None) -> dict[str, object]:
        """Those out of order first. A page goes on after the place of its cursor, whoever is there by now."""
        pool = sorted(await self._store.proxies.all(), key=_place)
        rest = [proxy for proxy in pool if cursor is None or _place(proxy) > _parsed(cursor)]
        last = f"{int(rest[limit - 1].ok)}-{rest[limit - 1].id}" if len(rest) > limit else None
        return {"items": [self.show(proxy) for proxy in rest[:limit]], "nextCursor": last}

    async def inventory(self) -> dict[str, object]:
        counted = await self._care.count()
        return {**asdict(counted), "direct": self._allow_direct and not counted.proxies}

    async def probe(self, proxy: str) -> dict[str, object]:
        verdict = await self._care.probe(proxy)
        return {
            "proxyId": proxy,
            "ok": verdict.ok,
            "code": verdict.code,
            "detail": verdict.detail,
            "tookMs": verdict.took_ms,
        }

    def show(self, proxy: Proxy) -> dict[str, object]:
        return {
            "proxyId": proxy.id,
            "host": proxy.host,
            "status": "OK" if proxy.ok else "BAD",
            "badAt": iso_or_none(proxy.bad_at, self._zone),
            "reason": proxy.reason,
            "sessions": sorted(proxy.sessions, key=natural),
            "capacity": proxy.capacity,
        }


_Place = tuple[bool, tuple[list[str | int], str]]


def _place(proxy: Proxy) -> _Place:
    return proxy.ok, natural(proxy.id)


def _parsed(cursor: str) -> _Place:
    ok, _, proxy = cursor.partition("-")
    return ok == "1", natural(proxy)
