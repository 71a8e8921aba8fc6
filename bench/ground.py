"""The ground a benchmark stands on: a real Valkey as in production, real processes, accounts that may always send."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from zoneinfo import ZoneInfo

from switchboard.domain.hours import ALWAYS, DAY_MS
from switchboard.domain.pacing import Policy
from switchboard.domain.recipients import RecipientRules
from switchboard.domain.trust import STANDARD, Overrides, TrustTable
from switchboard.store import Store, open_store
from switchboard.store.client import Redis, connect
from switchboard.store.intake import IntakeRules
from switchboard.store.messages import MessageRules
from switchboard.store.pace import PaceRules
from switchboard.store.server import EmbeddedStore
from switchboard.store.store import StoreRules

API_KEY = "sk_bench"
SECRET = "whsec_bench"
PREFIX = "bench:"
ROOM = 10_000_000
UTC = ZoneInfo("UTC")

POLICY = Policy(TrustTable(STANDARD), recipients=RecipientRules(1_000_000, ALWAYS), burst_factor=1e9)
FREE = Overrides(daily=1_000_000, per_minute=30, base_delay_ms=0, jitter_ms=0, hours=ALWAYS)

_ENV = {
    "API_KEY": API_KEY,
    "WEBHOOK_SECRET": SECRET,
    "API_RATE_PER_MINUTE": "1000000000",
    "QUEUE_ROOM": str(ROOM),
    "BURST_FACTOR": "1000000",
    "RECIPIENT_DAILY_CAP": "1000000",
    "RECIPIENT_HOURS": "00:00-24:00",
    "KEY_PREFIX": PREFIX,
    "TIMEZONE": "UTC",
}


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def phone(number: int) -> str:
    return f"97250{number:07d}"


def recipient(number: int) -> str:
    return f"97254{number % 10_000_000:07d}"


def session(number: int) -> str:
    return f"worker_{number}"


@asynccontextmanager
async def valkey() -> AsyncIterator[str]:
    """A fresh embedded store with its production settings (AOF, fsync always). Gives its URL."""
    with tempfile.TemporaryDirectory(prefix="sb-bench-") as folder:
        server = EmbeddedStore(Path(folder))
        await server.start()
        try:
            yield server.url
        finally:
            await server.stop()


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[tuple[Store, Redis]]:
    rules = StoreRules(UTC, intake=IntakeRules(room=ROOM), pace=PaceRules(room=ROOM), messages=MessageRules(room=ROOM))
    store, client = open_store(url, PREFIX, rules), connect(url)
    try:
        yield store, client
    finally:
        await store.close()
        await client.aclose()


async def linked_accounts(store: Store, count: int, overrides: Overrides = FREE) -> None:
    """`count` connected accounts, long hot; by default with overrides that hold nothing back."""
    for start in range(0, count, 200):
        await asyncio.gather(*(_linked(store, n, overrides) for n in range(start, min(start + 200, count))))


async def _linked(store: Store, number: int, overrides: Overrides) -> None:
    born = now_ms() - 30 * DAY_MS
    await store.sessions.register(session(number), born)
    await store.sessions.connect(session(number), phone(number), born)
    await store.accounts.override(phone(number), overrides, None, now_ms())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running(part: str, url: str, port: int) -> Iterator[int]:
    """`switchboard <part>` as a real process on that store; ready when it answers, gone afterwards. Gives its pid."""
    with tempfile.TemporaryDirectory(prefix="sb-bench-") as folder:
        ports = {"GATEWAY_PORT": str(port), "ORCH_PORT": str(port)}
        process = subprocess.Popen(
            [sys.executable, "-m", "switchboard", part],
            env=os.environ | _ENV | ports | {"REDIS_URL": url, "DATA_DIR": folder},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            if part != "dispatcher":
                _await_health(port, process)
            yield process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(15)


def _await_health(port: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and process.poll() is None:
        with (
            contextlib.suppress(urllib.error.URLError, OSError),
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2),
        ):
            return
        time.sleep(0.05)
    raise RuntimeError("the server under test did not start")


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
