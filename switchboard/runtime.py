"""The composition root: builds the parts from the settings, runs them, stops them. Nothing else does."""

import asyncio
import errno
import gc
import os
import random
import resource
import shlex
import signal
import socket
import sys
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

import structlog
import uvicorn
import uvloop

from switchboard.dispatcher.dispatcher import Dispatcher
from switchboard.domain.errors import StoreUnavailable
from switchboard.domain.fleet import Pace
from switchboard.domain.pacing import Policy
from switchboard.domain.recipients import RecipientRules
from switchboard.domain.retry import RetryRules
from switchboard.gateway.gateway import gateway_routers
from switchboard.gateway.sending import SendRules
from switchboard.logs import configure_logs
from switchboard.orchestrator.actions import FleetRules
from switchboard.orchestrator.folders import FolderLock
from switchboard.orchestrator.orchestrator import Orchestrator, OrchestratorRules
from switchboard.orchestrator.sessions import SessionServiceRules
from switchboard.runners.base import Runner
from switchboard.runners.node import WorkerMissing, WorkerProgram, default_worker
from switchboard.runners.process import ProcessRunner
from switchboard.secrets import Secrets, ensure_secrets
from switchboard.settings import Settings, SettingsError
from switchboard.store import Store, open_store
from switchboard.store.intake import IntakeRules
from switchboard.store.messages import MessageRules
from switchboard.store.outbox import OutboxRules
from switchboard.store.pace import PaceRules
from switchboard.store.server import EmbeddedStore
from switchboard.store.sessions import SessionRules
from switchboard.store.store import StoreRules
from switchboard.web.app import Routers, create_app
from switchboard.web.auth import Guard
from switchboard.welcome import Scene, for_another_terminal, next_steps, own_command

_log = structlog.get_logger(__name__)
_DAY_S = 86_400
_DRAIN_S = 3
_SEED_S = 2


def system_clock() -> int:
    return time.time_ns() // 1_000_000


def collect_rarely() -> None:
    """Measured: with the defaults, pauses to collect garbage make the slowest hundredth of sends 2.5 times as slow."""
    gc.freeze()  # what is loaded by now stays: no need to look at it again at every collection
    gc.set_threshold(20_000, 20, 20)


def open_many_files() -> None:
    """Each worker needs two: the one it waits on, and the one that tells us it ended. The usual limit is 1,024."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def run(settings: Settings, parts: frozenset[str]) -> None:
    """Serve until SIGINT or SIGTERM."""
    configure_logs()
    collect_rarely()
    open_many_files()
    uvloop.run(_run(settings, parts))


class Stop(asyncio.Event):
    """Set once we are to end. A person at the terminal (SIGINT) ends the workers, too; anyone else leaves them
    running, to be found again: an upgrade disturbs no session."""

    by_hand = False

    def by_person(self) -> None:
        self.by_hand = True
        self.set()


async def _run(settings: Settings, parts: frozenset[str]) -> None:
    stop = Stop()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop.by_person)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    listener = _listen(settings, parts)
    async with opened_store(settings) as store:
        # Not before all that may fail: a start that fails must not use up the one showing of a new key.
        secrets = ensure_secrets(settings)
        await _serve(settings, secrets, store, parts, listener, stop)
    _log.info("stopped")


async def _serve(
    settings: Settings,
    secrets: Secrets,
    store: Store,
    parts: frozenset[str],
    listener: socket.socket | None,
    stop: Stop,
) -> None:
    worker = worker_of(settings) if "orchestrator" in parts else None
    orchestrator = _orchestrator(settings, secrets, store, worker, stop) if worker else None
    if orchestrator and settings.take_over:
        await orchestrator.take_over()
    async with asyncio.TaskGroup() as group:
        serving = [group.create_task(store.wakeups.run(), name="wakeups")]
        if "dispatcher" in parts:
            serving.append(group.create_task(_dispatcher(settings, store).run(), name="dispatcher"))
        if orchestrator:
            serving += [group.create_task(run(), name=name) for name, run in orchestrator.tasks().items()]
            with suppress(TimeoutError):  # whoever asks first should find the pool of the settings
                await asyncio.wait_for(orchestrator.seeded.wait(), _SEED_S)
        server = _server(routers(settings, secrets, store, parts, orchestrator), store, parts)
        steps = await _next_steps(settings, store, worker) if worker else []
        http = group.create_task(server.serve(sockets=[listener]), name="http") if listener else None
        _announce(settings, secrets, parts, steps)
        await stop.wait()
        # First no new requests, then no new hand-overs and starts; the store is closed last.
        server.should_exit = True
        if http:
            await http
        for task in serving:
            task.cancel()
        await asyncio.wait(serving)
        if orchestrator and orchestrator.fleet.leading:
            if stop.by_hand:
                await orchestrator.fleet.stop_workers()
            else:
                _log.info("workers.go_on", hint="they are found again at the next start")


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


def _dispatcher(settings: Settings, store: Store) -> Dispatcher:
    chance = random.SystemRandom()
    return Dispatcher(store, policy_of(settings), retry_rules_of(settings), system_clock, chance)


def _orchestrator(
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


def routers(
    settings: Settings, secrets: Secrets, store: Store, parts: frozenset[str], orchestrator: Orchestrator | None
) -> Routers:
    chosen: Routers = []
    if "gateway" in parts:
        rules = SendRules(
            max_text=settings.max_text,
            max_rows=settings.batch_max_rows,
            room=settings.queue_room,
            default_country=settings.default_country,
        )
        chosen = gateway_routers(
            store,
            policy_of(settings),
            rules,
            api_key=secrets.api_key,
            per_minute=settings.api_rate_per_minute,
            zone=settings.timezone,
            clock=system_clock,
        )
    if orchestrator:
        guard = Guard(store, secrets.api_key, settings.api_rate_per_minute, system_clock)
        chosen = [*chosen, *orchestrator.routers(guard)]
    return chosen


class _Server(uvicorn.Server):
    """Leaves signals to us: what stops, and in which order, is decided in one place."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _server(chosen: Routers, store: Store, parts: frozenset[str]) -> _Server:
    app = create_app(store, sorted(parts), chosen)
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=_DRAIN_S)
    return _Server(config)


def _port(settings: Settings, parts: frozenset[str]) -> int:
    return settings.gateway_port if parts == {"gateway"} else settings.orch_port


def _listen(settings: Settings, parts: frozenset[str]) -> socket.socket | None:
    """Bound before anything starts: a port that is taken is told at once, in one sentence."""
    if not parts & {"gateway", "orchestrator"}:
        return None
    port = _port(settings, parts)
    family = socket.AF_INET6 if ":" in settings.orch_host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.orch_host, port))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        name = "GATEWAY_PORT" if parts == {"gateway"} else "ORCH_PORT"
        told = f"{name}: can't listen on {settings.orch_host}:{port} ({error.strerror})"
        if error.errno == errno.EADDRINUSE:
            command = f"switchboard {min(parts)}" if len(parts) == 1 else "make run"
            other = f"{name}={port + 100 if port < 65_000 else 3100}"
            told += f": is Switchboard or the demo running? Choose another one: {other} {command}"
        raise SettingsError(told) from None
    return listener


async def _next_steps(settings: Settings, store: Store, worker: WorkerProgram | WorkerMissing) -> list[str]:
    missing = str(worker) if isinstance(worker, WorkerMissing) else None
    with suppress(StoreUnavailable):  # then there is nothing to say yet, and no reason to fail
        pool, sessions = await store.proxies.all(), await store.sessions.ids()
        command = for_another_terminal(own_command(), os.environ)
        return next_steps(Scene(missing, len(pool), len(sessions), settings.allow_direct), command)
    return []


def _announce(settings: Settings, secrets: Secrets, parts: frozenset[str], further: list[str]) -> None:
    """What a person wants to see first. A secret that was just made is shown here, once, and never again."""
    lines = []
    if parts & {"gateway", "orchestrator"}:
        url = settings.own_url(_port(settings, parts)).replace("127.0.0.1", "localhost")
        lines.append(f"Switchboard ({', '.join(sorted(parts))}) answers on {url}")
    if "api_key" in secrets.generated:
        lines.append(f"Your API key, shown only this once: {secrets.api_key}")
        lines.append(f"It is kept in {settings.data_dir / 'secrets.json'}, readable by you alone.")
    sys.stdout.write("".join(line + "\n" for line in [*lines, *further]))
    sys.stdout.flush()
