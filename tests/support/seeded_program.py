"""The real program on a store full of life, for measuring pages and for looking at them. It has no workers.

async with seeded_program(sessions=1_000, messages=100_000) as it:
    visit = await open_page(it.url, secret=API_KEY)
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom

import redis

from tests.support.premises import SETTINGS, now_ms
from tests.support.process import running
from tests.support.processes import free_ports
from tests.support.seeded import Seeded, seed
from tests.support.valkey import start_valkey

_PREFIX = "switchboard:"


@dataclass(frozen=True, slots=True)
class SeededProgram:
    url: str
    seeded: Seeded
    store: "redis.Redis"


@asynccontextmanager
async def seeded_program(
    sessions: int = 1_000, messages: int = 100_000, **settings: str
) -> AsyncIterator[SeededProgram]:
    [port] = free_ports(1, SystemRandom())
    with tempfile.TemporaryDirectory(prefix="sb-", ignore_cleanup_errors=True) as folder:
        server = start_valkey(Path(folder), "--appendonly", "no")
        client = redis.Redis(unix_socket_path=f"{folder}/s", decode_responses=True)
        try:
            seeded = await asyncio.to_thread(seed, client, _PREFIX, now_ms(), sessions=sessions, messages=messages)
            given = SETTINGS | {"REDIS_URL": f"unix://{folder}/s", "PROBE_INTERVAL_MS": "600000"} | settings
            with running(Path(folder) / "program", port, **given) as program:
                yield SeededProgram(program.url, seeded, client)
        finally:
            client.close()
            server.terminate()
            server.wait()
