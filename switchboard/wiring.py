"""From the settings to the parts, each given what it needs and nothing else. What runs when is `runtime.py`'s."""

import asyncio
import os
import random
import shlex
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from switchboard.dashboard.access.passwords import Passwords
from switchboard.dashboard.access.scan_links import ScanLinks
from switchboard.dashboard.access.signing import Signer
from switchboard.dashboard.dashboard import DashboardRules, dashboard_routers
from switchboard.dashboard.services import Services, SimulatedPhone
from switchboard.dispatcher.dispatcher import Dispatcher
from switchboard.domain.fleet import Pace
from switchboard.domain.pacing import Policy
from switchboard.domain.recipients import RecipientRules
from switchboard.domain.retry import RetryRules
from switchboard.gateway.gateway import gateway_routers, gateway_services
from switchboard.gateway.sending import SendRules
from switchboard.orchestrator.actions import FleetRules
from switchboard.orchestrator.folders import FolderLock
from switchboard.orchestrator.orchestrator import Orchestrator, OrchestratorRules
from switchboard.orchestrator.sessions import SessionServiceRules
from switchboard.runners.base import Runner
from switchboard.runners.node import WorkerMissing, WorkerProgram, default_worker
from switchboard.runners.process import ProcessRunner
from switchboard.secrets import Secrets
from switchboard.settings import Settings
from switchboard.store import Store, open_store
from switchboard.store.intake import IntakeRules
from switchboard.store.messages import MessageRules
from switchboard.store.outbox import OutboxRules
from switchboard.store.pace import PaceRules
from switchboard.store.server import EmbeddedStore
from switchboard.store.sessions import SessionRules
from switchboard.store.store import StoreRules
from switchboard.web.app import Routers
from switchboard.web.auth import Guard
from switchboard.welcome import for_another_terminal, own_command, place_of_the_key

_DAY_S = 86_400


def system_clock() -> int:
    return time.time_ns() // 1_000_000


def policy_of(settings: Settings) -> Policy:
    return Policy(
        table=settings.trust_table(),
        recipients=RecipientRules(settings.recipient_daily_cap, settings.recipient_hours),
        burst_factor=settings.burst_factor,
        burst_slowdown=settings.burst_slowdown,
        outbox_lease_ms=settings.outbox_lease_ms,
    )


def retry_rules_of(settings: Settings) -> RetryRules:
    return RetryRules(
        max_attempts=settings.max_attempts,
        base_gap_ms=settings.retry_base_ms,
        rate_limit_pause_ms=settings.rate_limit_pause_ms,
    )


def store_rules_of(settings: Settings) -> StoreRules:
    retention_s = settings.message_retention_days * _DAY_S
    return StoreRules(
        default_zone=settings.timezone,
        intake=IntakeRules(settings.queue_room, settings.idempotency_hours * 3600, settings.burst_window_ms),
        pace=PaceRules(settings.queue_room, settings.burst_window_ms, retention_s),
        outbox=OutboxRules(settings.outbox_lease_ms, retention_s, settings.stats_days * _DAY_S),
        messages=MessageRules(settings.queue_room, retention_s),
        sessions=SessionRules(settings.max_sessions_per_proxy, settings.max_sessions_per_phone),
    )


@asynccontextmanager
async def opened_store(settings: Settings) -> AsyncIterator[Store]:
    """The store the settings name: an external one, or our own, started for as long as this lasts."""
    if settings.redis_url is not None:
        store = open_store(settings.redis_url.get_secret_value(), settings.key_prefix, store_rules_of(settings))
        try:
            yield store
        finally:
            await store.close()
        return
    embedded = EmbeddedStore(settings.data_dir, settings.store_fsync)
    await embedded.start()
    watcher = asyncio.create_task(embedded.supervise(), name="store")
    store = open_store(embedded.url, settings.key_prefix, store_rules_of(settings))
    try:
        yield store
    finally:
        watcher.cancel()
        with suppress(asyncio.CancelledError):
            await watcher
        await store.close()
        await embedded.stop()


def dispatcher_of(settings: Settings, store: Store) -> Dispatcher:
    chance = random.SystemRandom()
    return Dispatcher(store, policy_of(settings), retry_rules_of(settings), system_clock, chance)


def orchestrator_of(
    settings: Settings, secrets: Secrets, store: Store, worker: WorkerProgram | WorkerMissing, stop: asyncio.Event
) -> Orchestrator:
    return Orchestrator(store, _runner(settings, worker), orchestrator_rules_of(settings, secrets), system_clock, stop)


def worker_of(settings: Settings) -> WorkerProgram | WorkerMissing:
    """What to run for a session, or why there is nothing. Sessions can be made, and looked at, all the same."""
    if settings.worker_command is not None:
        return WorkerProgram(tuple(shlex.split(settings.worker_command)))
    try:
        return default_worker()
    except WorkerMissing as missing:
        return missing


def _runner(settings: Settings, worker: WorkerProgram | WorkerMissing) -> Runner:
    known = worker if isinstance(worker, WorkerProgram) else WorkerProgram(())
    return ProcessRunner(
        known.command,
        reserved_mb=known.reserved_mb,
        missing=str(worker) if isinstance(worker, WorkerMissing) else "",
        sessions_dir=settings.sessions_dir,
        run_dir=settings.data_dir / "run",
        log_dir=settings.data_dir / "logs",
        grace_s=settings.worker_stop_grace_ms / 1000,
        clock=system_clock,
    )


def orchestrator_rules_of(settings: Settings, secrets: Secrets) -> OrchestratorRules:
    url = settings.worker_webhook_url or f"{settings.own_url(settings.orch_port)}/api/webhook"
    return OrchestratorRules(
        policy=policy_of(settings),
        retries=retry_rules_of(settings),
        zone=settings.timezone,
        sessions_dir=settings.sessions_dir,
        webhook_url=url,
        webhook_secret=secrets.webhook_secret,
        proxy_urls=[url.get_secret_value() for url in settings.proxy_urls],
        default_country=settings.default_country,
        fleet=FleetRules(
            monitor_ms=settings.monitor_interval_ms,
            allow_direct=settings.allow_direct,
            pace=Pace(settings.provisioning_interval_ms, settings.max_starts_at_once),
        ),
        service=SessionServiceRules(settings.scan_timeout_ms, settings.allow_direct),
        ping_timeout_ms=settings.ping_timeout_ms,
        watchdog_ms=settings.watchdog_interval_ms,
        probe_timeout_s=settings.probe_timeout_ms / 1000,
        probe_ms=settings.probe_interval_ms,
        low_places=settings.low_inventory_places,
        memory_mb=settings.worker_memory_mb,
        keep_alive=settings.enable_keep_alive,
        claim_wait_ms=settings.claim_wait_ms,
        retention_ms=settings.message_retention_days * _DAY_S * 1000,
        name=_installation(settings),
        alone=FolderLock(settings.data_dir / "orchestrator.lock").hold,
    )


def _installation(settings: Settings) -> str:
    """Names this data folder, wherever and however often it is run from."""
    path = settings.data_dir / "orchestrator.id"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists() or not path.read_text():
        path.write_text(uuid.uuid4().hex)
    return path.read_text()


def send_rules_of(settings: Settings) -> SendRules:
    return SendRules(
        max_text=settings.max_text,
        max_rows=settings.batch_max_rows,
        room=settings.queue_room,
        default_country=settings.default_country,
    )


def routers(
    settings: Settings,
    secrets: Secrets,
    store: Store,
    parts: frozenset[str],
    orchestrator: Orchestrator | None,
    stopping: asyncio.Event,
    phone: SimulatedPhone | None = None,
) -> Routers:
    chosen: Routers = []
    if "gateway" in parts:
        chosen = gateway_routers(
            store,
            policy_of(settings),
            send_rules_of(settings),
            api_key=secrets.api_key,
            per_minute=settings.api_rate_per_minute,
            zone=settings.timezone,
            clock=system_clock,
        )
    if orchestrator:
        guard = Guard(store, secrets.api_key, settings.api_rate_per_minute, system_clock)
        services = dashboard_services(settings, secrets, store, orchestrator, guard, parts, phone)
        command = f"{for_another_terminal(own_command(), os.environ)} open"
        rules = DashboardRules(secrets.dashboard_secret, place_of_the_key(settings), command)
        chosen = [*chosen, *orchestrator.routers(guard), *dashboard_routers(services, guard, rules, stopping)]
    return chosen


def dashboard_services(
    settings: Settings,
    secrets: Secrets,
    store: Store,
    orchestrator: Orchestrator,
    guard: Guard,
    parts: frozenset[str],
    phone: SimulatedPhone | None,
) -> Services:
    """Pages ask the gateway's functions as well, whether or not its API is served here."""
    policy = policy_of(settings)
    gateway = gateway_services(store, policy, send_rules_of(settings), guard, settings.timezone, system_clock)
    return Services(
        store=store,
        policy=policy,
        zone=settings.timezone,
        clock=system_clock,
        reading=gateway.reading,
        changing=gateway.changing,
        sending=gateway.sending,
        overview=orchestrator.overview,
        views=orchestrator.views,
        sessions=orchestrator.service,
        proxy_care=orchestrator.care,
        proxy_views=orchestrator.proxy_views,
        scan_links=ScanLinks(Signer(secrets.dashboard_secret), system_clock, settings.scan_link_minutes * 60_000),
        passwords=Passwords(store.sign_ins, system_clock),
        condition=orchestrator.condition(settings.data_dir, sorted(parts)),
        configuration=settings.effective(),
        defaults=settings.defaults(),
        default_country=settings.default_country,
        max_text=settings.max_text,
        max_rows=settings.batch_max_rows,
        allow_direct=settings.allow_direct,
        phone=phone,
    )
