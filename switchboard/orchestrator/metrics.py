"""Figures for Prometheus, read from the store when asked for. No phone number and no text is among them."""

from collections import Counter
from collections.abc import Awaitable, Callable
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest

from switchboard.domain.clock import Clock
from switchboard.domain.hours import day_of
from switchboard.domain.sessions import State
from switchboard.orchestrator.proxy_care import inventory_of
from switchboard.store import Store

Memory = Callable[[], Awaitable[dict[str, int]]]
"""What each session's worker holds in memory, in bytes."""

_STORED = [state for state in State if state not in (State.PAUSED, State.RESTRICTED)]


def metrics_routes(store: Store, memory: Memory, zone: ZoneInfo, clock: Clock) -> APIRouter:
    router = APIRouter(tags=["health"])

    @router.get("/metrics", summary="Figures for Prometheus", response_class=Response)
    async def metrics() -> Response:
        registry = CollectorRegistry()
        await _sessions(registry, store, clock)
        await _proxies(registry, store)
        await _messages(registry, store, day_of(clock(), zone))
        held = _gauge(registry, "worker_memory_bytes", "What a session's worker holds in memory", ["session"])
        for session, size in (await memory()).items():
            held.labels(session).set(size)
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return router


def _gauge(registry: CollectorRegistry, name: str, text: str, labels: list[str] | None = None) -> Gauge:
    return Gauge(f"switchboard_{name}", text, labels or [], registry=registry)


async def _sessions(registry: CollectorRegistry, store: Store, clock: Clock) -> None:
    sessions = await store.sessions.all()
    by_state = Counter(session.state for session in sessions)
    states = _gauge(registry, "sessions", "Sessions by state", ["state"])
    for state in _STORED:
        states.labels(state.value).set(by_state[state])
    age = _gauge(registry, "last_ping_age_seconds", "Since a connected session last proved that it lives", ["session"])
    for session in sessions:
        if session.state is State.CONNECTED and session.last_ping:
            age.labels(session.id).set((clock() - session.last_ping) / 1000)


async def _proxies(registry: CollectorRegistry, store: Store) -> None:
    inventory = inventory_of(await store.proxies.all())
    proxies = _gauge(registry, "proxies", "Proxies by status", ["status"])
    proxies.labels("OK").set(inventory.proxies - inventory.bad)
    proxies.labels("BAD").set(inventory.bad)
    _gauge(registry, "places_used", "Places on proxies that sessions hold").set(inventory.used)
    _gauge(registry, "places_free", "Places left on proxies that work").set(inventory.free)


async def _messages(registry: CollectorRegistry, store: Store, today: str) -> None:
    (day,) = await store.stats.days("fleet", [today])
    messages = _gauge(registry, "messages_today", "Messages of today by what became of them", ["status"])
    for status in ("sent", "delivered", "read", "failed"):
        messages.labels(status).set(getattr(day, status))
    waiting = _gauge(registry, "messages_waiting", "Messages by where they wait", ["place"])
    for place, count in (await store.messages.waiting()).items():
        waiting.labels(place).set(count)
