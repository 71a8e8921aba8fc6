"""Runs the parts together and stops them in order: signals, tasks, the web server. `wiring.py` builds them."""

import asyncio
import errno
import gc
import os
import resource
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import structlog
import uvicorn
import uvloop

from switchboard.dashboard.access.one_time_links import one_time_url
from switchboard.dashboard.services import SimulatedPhone
from switchboard.domain.errors import StoreUnavailable
from switchboard.logs import configure_logs
from switchboard.runners.node import WorkerMissing, WorkerProgram
from switchboard.secrets import EVERYWHERE, WITH_DASHBOARD, Secrets, ensure_secrets
from switchboard.settings import Settings, SettingsError
from switchboard.store import Store
from switchboard.web.app import Routers, create_app
from switchboard.welcome import Scene, for_another_terminal, next_steps, own_command
from switchboard.wiring import dispatcher_of, opened_store, orchestrator_of, routers, system_clock, worker_of

_log = structlog.get_logger(__name__)
_DRAIN_S = 3
_SEED_S = 2


def collect_rarely() -> None:
    """Measured: with the defaults, pauses to collect garbage make the slowest hundredth of sends 2.5 times as slow."""
    gc.freeze()  # what is loaded by now stays: no need to look at it again at every collection
    gc.set_threshold(20_000, 20, 20)


def open_many_files() -> None:
    """Each worker needs two: the one it waits on, and the one that tells us it ended. The usual limit is 1,024."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def run(settings: Settings, parts: frozenset[str], phone: SimulatedPhone | None = None) -> None:
    """Serve until SIGINT or SIGTERM. The demo brings a phone to scan with."""
    configure_logs()
    collect_rarely()
    open_many_files()
    uvloop.run(_run(settings, parts, phone))


class Stop(asyncio.Event):
    """Set once we are to end. A person at the terminal (SIGINT) ends the workers, too; anyone else leaves them
    running, to be found again: an upgrade disturbs no session."""

    by_hand = False

    def by_person(self) -> None:
        self.by_hand = True
        self.set()


async def _run(settings: Settings, parts: frozenset[str], phone: SimulatedPhone | None) -> None:
    stop = Stop()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop.by_person)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    listener = _listen(settings, parts)
    async with opened_store(settings) as store:
        # Not before all that may fail: a start that fails must not use up the one showing of a new key.
        secrets = ensure_secrets(settings, WITH_DASHBOARD if "orchestrator" in parts else EVERYWHERE)
        await _serve(settings, secrets, store, parts, listener, stop, phone)
    _log.info("stopped")


async def _serve(
    settings: Settings,
    secrets: Secrets,
    store: Store,
    parts: frozenset[str],
    listener: socket.socket | None,
    stop: Stop,
    phone: SimulatedPhone | None,
) -> None:
    worker = worker_of(settings) if "orchestrator" in parts else None
    orchestrator = orchestrator_of(settings, secrets, store, worker, stop) if worker else None
    if orchestrator and settings.take_over:
        await orchestrator.take_over()
    async with asyncio.TaskGroup() as group:
        serving = [group.create_task(store.wakeups.run(), name="wakeups")]
        if "dispatcher" in parts:
            serving.append(group.create_task(dispatcher_of(settings, store).run(), name="dispatcher"))
        if orchestrator:
            serving += [group.create_task(run(), name=name) for name, run in orchestrator.tasks().items()]
            with suppress(TimeoutError):  # whoever asks first should find the pool of the settings
                await asyncio.wait_for(orchestrator.seeded.wait(), _SEED_S)
        server = _server(settings, routers(settings, secrets, store, parts, orchestrator, stop, phone), store, parts)
        steps = await _next_steps(settings, store, worker) if worker else []
        http = group.create_task(server.serve(sockets=[listener]), name="http") if listener else None
        _announce(settings, secrets, parts, steps, to_person=sys.stdout.isatty())
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


class _Server(uvicorn.Server):
    """Leaves signals to us: what stops, and in which order, is decided in one place."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _server(settings: Settings, chosen: Routers, store: Store, parts: frozenset[str]) -> _Server:
    app = create_app(store, sorted(parts), chosen)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=_DRAIN_S,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=settings.trusted_proxies,
    )
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


def _announce(
    settings: Settings, secrets: Secrets, parts: frozenset[str], further: list[str], *, to_person: bool
) -> None:
    """What a person wants to see first. A secret that was just made is shown here, once, and never again.

    A link that signs in is for eyes only: what is not a terminal is a log, which many may read.
    """
    lines = []
    url = settings.own_url(_port(settings, parts)).replace("127.0.0.1", "localhost")
    if parts & {"gateway", "orchestrator"}:
        lines.append(f"Switchboard ({', '.join(sorted(parts))}) answers on {url}")
    if "api_key" in secrets.generated:
        lines.append(f"Your API key, shown only this once: {secrets.api_key}")
        lines.append(f"It is kept in {settings.data_dir / 'secrets.json'}, readable by you alone.")
    if "orchestrator" in parts and to_person:
        link = one_time_url(url, secrets.dashboard_secret, system_clock())
        lines.append(f"Dashboard: {link}  (good once, for 10 minutes; later sign in with the API key)")
    elif "orchestrator" in parts:
        command = for_another_terminal(own_command(), os.environ)
        lines.append(f"Dashboard: {url}  (sign in with the API key, or have a link made: {command} open)")
    sys.stdout.write("".join(line + "\n" for line in [*lines, *further]))
    sys.stdout.flush()
