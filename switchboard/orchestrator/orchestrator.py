"""Puts the orchestrator together: what serves, what watches, and its routes, from what it is given."""

import asyncio
import hashlib
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import structlog
from fastapi import APIRouter

from switchboard.domain.clock import Clock
from switchboard.domain.errors import StoreUnavailable
from switchboard.domain.pacing import Policy
from switchboard.domain.retry import RetryRules
from switchboard.domain.sessions import DIRECT, Session
from switchboard.orchestrator.actions import Actions, FleetRules
from switchboard.orchestrator.condition import Condition, ConditionRules
from switchboard.orchestrator.event_routes import event_routes
from switchboard.orchestrator.fleet import Fleet
from switchboard.orchestrator.folders import SessionFolders
from switchboard.orchestrator.link_events import LinkEvents, LinkRules
from switchboard.orchestrator.metrics import metrics_routes
from switchboard.orchestrator.overview import Overview
from switchboard.orchestrator.prober import Prober
from switchboard.orchestrator.proxy_care import ProxyCare
from switchboard.orchestrator.proxy_routes import proxy_routes
from switchboard.orchestrator.proxy_views import ProxyViews
from switchboard.orchestrator.sampler import Sampler
from switchboard.orchestrator.session_routes import (
    code_routes,
    fleet_routes,
    session_command_routes,
    session_making_routes,
    session_read_routes,
)
from switchboard.orchestrator.session_views import SessionViews
from switchboard.orchestrator.sessions import SessionService, SessionServiceRules
from switchboard.orchestrator.settlement import Settlement
from switchboard.orchestrator.watchdog import Watchdog
from switchboard.orchestrator.worker_api import worker_routes
from switchboard.orchestrator.worker_events import WorkerEvents
from switchboard.runners.base import Runner, RunnerUnavailable
from switchboard.runners.spec import WorkerSpec, worker_spec
from switchboard.store import Store
from switchboard.web.auth import Guard
from switchboard.web.signatures import worker_secret

_log = structlog.get_logger(__name__)
_AGAIN_S = 1.0
_TIDY_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class OrchestratorRules:
    """The settings that the orchestrator needs, and nothing else of them."""

    policy: Policy
    retries: RetryRules
    zone: ZoneInfo
    sessions_dir: Path
    webhook_url: str
    webhook_secret: str = field(repr=False)
    proxy_urls: Sequence[str] = field(default=(), repr=False)
    default_country: str | None = None
    fleet: FleetRules = field(default_factory=FleetRules)
    service: SessionServiceRules = field(default_factory=SessionServiceRules)
    ping_timeout_ms: int = 180_000
    watchdog_ms: int = 60_000
    probe_timeout_s: float = 10.0
    probe_ms: int = 60_000
    low_places: int = 2
    memory_mb: int = 512
    keep_alive: bool = True
    claim_wait_ms: int = 25_000
    retention_ms: int = 30 * 86_400_000
    name: str = "orchestrator"
    alone: Callable[[], bool] = lambda: True


class Orchestrator:
    def __init__(
        self, store: Store, runner: Runner, rules: OrchestratorRules, clock: Clock, stopping: asyncio.Event
    ) -> None:
        self._store = store
        self._runner = runner
        self._rules = rules
        self._clock = clock
        self._stopping = stopping
        self.seeded = asyncio.Event()
        self._tidied_at = 0
        self.care = ProxyCare(store, Prober(timeout_s=rules.probe_timeout_s), rules.probe_ms, rules.low_places, clock)
        folders = SessionFolders(rules.sessions_dir)
        told = hashlib.sha256(f"{rules.webhook_url} {rules.webhook_secret}".encode()).hexdigest()[:12]
        fleet_rules = replace(rules.fleet, told=told)
        actions = Actions(store, runner, folders, self._describe, self.care.works, fleet_rules, clock)
        self.fleet = Fleet(store, runner, actions, fleet_rules, clock, rules.name, rules.alone)
        self.watchdog = Watchdog(
            store, rules.fleet.restarts, rules.ping_timeout_ms, rules.watchdog_ms, clock, lambda: self.fleet.leading
        )
        self.views = SessionViews(store, rules.policy, rules.zone, clock)
        self.overview = Overview(store, self.views, rules.policy, clock)
        self.proxy_views = ProxyViews(store, self.care, rules.zone, rules.service.allow_direct)
        self.service = SessionService(store, self.care, rules.service, clock)
        self.sampler = Sampler(store, self.overview, clock, lambda: self.fleet.leading)

    def tasks(self) -> dict[str, Callable[[], Coroutine[Any, Any, None]]]:
        """What runs for as long as the orchestrator does."""
        loops = {
            "feed": self._store.feed.run,
            "fleet": self.fleet.run,
            "watchdog": self.watchdog.run,
            "sampler": self.sampler.run,
            "proxies": self._proxies,
            "housekeeping": self._housekeeping,
        }
        return {name: partial(_for_ever, name, run) for name, run in loops.items()}

    def condition(self, data_dir: Path, parts: Sequence[str]) -> Condition:
        """Of this process, of which we are one part."""
        rules = ConditionRules(data_dir, parts, self._rules.low_places, self._rules.service.allow_direct)
        return Condition(self._store, self.overview, self._runner, lambda: self.fleet.leading, rules, self._clock)

    def routers(self, guard: Guard) -> list[APIRouter]:
        store, rules, clock = self._store, self._rules, self._clock
        views, service = self.views, self.service
        settlement = Settlement(store, rules.retries, clock)
        links = LinkEvents(
            store, self.care, LinkRules(rules.ping_timeout_ms, rules.service.scan_ms, rules.fleet.restarts), clock
        )
        return [
            worker_routes(
                store,
                settlement,
                WorkerEvents(store, settlement, links, clock),
                master_secret=rules.webhook_secret,
                wait_ms=rules.claim_wait_ms,
                clock=clock,
                stopping=self._stopping,
            ),
            session_read_routes(guard, views, self.overview),
            fleet_routes(guard, self.overview),
            session_making_routes(guard, service, views, rules.default_country),
            session_command_routes(guard, service, views),
            code_routes(guard, service, rules.zone, rules.default_country),
            proxy_routes(guard, self.care, self.proxy_views),
            event_routes(guard, store, self._stopping),
            metrics_routes(store, self._memory, rules.zone, clock),
        ]

    async def take_over(self) -> None:
        """From an installation that is gone for good; as soon as the store is there."""
        while True:
            try:
                return await self._store.leader.take_over(self._rules.name)
            except StoreUnavailable:
                await asyncio.sleep(_AGAIN_S)

    async def _describe(self, session: Session) -> WorkerSpec | None:
        """With its proxy's credentials and its own secret, and nobody else's."""
        url = None
        if session.proxy != DIRECT:
            proxy = await self._store.proxies.url_of(session.proxy or "")
            if proxy is None:
                return None
            url = proxy.url
        elif not self._rules.service.allow_direct:
            return None
        return worker_spec(
            session.id,
            session.generation,
            proxy_url=url,
            secret=worker_secret(self._rules.webhook_secret, session.id),
            webhook_url=self._rules.webhook_url,
            device_name=session.device,
            keep_alive=self._rules.keep_alive,
            memory_mb=self._rules.memory_mb,
        )

    async def _memory(self) -> dict[str, int]:
        try:
            seen = await self._runner.list()
        except RunnerUnavailable:
            return {}  # the figures of the store are worth having all the same
        return {one.session_id: one.memory_bytes for one in seen if one.memory_bytes is not None}

    async def _proxies(self) -> None:
        await self.care.seed(self._rules.proxy_urls)
        self.seeded.set()
        await self.care.run()

    async def _housekeeping(self) -> None:
        while True:
            await self.fleet.tend()
            await self.tidy()
            await asyncio.sleep(self._rules.fleet.monitor_ms / 1000)

    async def tidy(self) -> None:
        """About once an hour: what the store has forgotten leaves the lists of all messages and batches."""
        now = self._clock()
        if now - self._tidied_at < _TIDY_MS:
            return
        try:
            await self._store.messages.tidy(now - self._rules.retention_ms)
            await self._store.batches.tidy(now - self._rules.retention_ms)
            self._tidied_at = now
        except StoreUnavailable:
            _log.info("orchestrator.not_tidied")  # there is no hurry: the next round tries again


async def _for_ever(name: str, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """A mistake in one loop must not end the others, nor stop for ever what it does."""
    while True:
        try:
            await run()
        except Exception:  # noqa: BLE001 - logged with its trace, and begun again
            _log.exception("orchestrator.loop_failed", loop=name)
        await asyncio.sleep(_AGAIN_S)
