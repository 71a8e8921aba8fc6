"""The life of the crash test's fleet: up, killed at random, at rest. Waits for conditions, never for a time."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from random import Random
from zoneinfo import ZoneInfo

import httpx

from switchboard.domain.errors import StoreUnavailable
from switchboard.store import Store, open_store
from switchboard.store.client import Redis, connect
from switchboard.store.store import StoreRules
from tests.support.crash_fleet import NUMBERS, PREFIX, Fleet, zone_at_noon
from tests.support.processes import Processes

PATIENCE_S = 60.0
KILLS = {"valkey": 8, "gateway": 4, "dispatcher": 6, "orchestrator": 3, "worker": 1}
"""How often each single process of a kind is killed."""


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[tuple[Store, Redis]]:
    """The store as Switchboard sees it, and as it is."""
    store, redis = open_store(url, PREFIX, StoreRules(ZoneInfo(zone_at_noon()))), connect(url)
    try:
        yield store, redis
    finally:
        await redis.aclose()
        await store.close()


async def start(fleet: Fleet, processes: Processes, store: Store) -> None:
    """Returns when every session is linked, every limit is set and both gateways answer."""
    processes.start(fleet.valkey())
    await answers(store)
    for number in NUMBERS:
        for session in number.sessions:
            await store.sessions.register(session, now_ms())
    for program in fleet.parts() + fleet.workers():
        processes.start(program)
    for number in NUMBERS:
        for session in number.sessions:
            await until_linked(store, processes, session)
        await store.accounts.override(number.phone, number.overrides, None, now_ms())
    async with httpx.AsyncClient(trust_env=False) as http:
        for url in fleet.gateway_urls:
            await until_healthy(http, url, processes)


async def answers(store: Store) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return await store.ping()
        except StoreUnavailable:
            assert time.monotonic() < deadline, "the store does not answer"
            await asyncio.sleep(0.02)


async def until_linked(store: Store, processes: Processes, session: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while (found := await store.sessions.get(session)) is None or found.state != "connected":
        processes.check()
        assert time.monotonic() < deadline, f"{session} is not linked: {found}"
        await asyncio.sleep(0.05)


async def until_healthy(http: httpx.AsyncClient, url: str, processes: Processes) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            if (await http.get(f"{url}/health/ready")).status_code == httpx.codes.OK:
                return
        except httpx.TransportError:
            processes.check()
        assert time.monotonic() < deadline, f"{url} is not ready"
        await asyncio.sleep(0.05)


async def kill_at_random(processes: Processes, over_s: float, random: Random) -> None:
    """Every single process at least once; each comes back soon after."""
    victims = [program.name for program in processes.programs for _ in range(KILLS[program.kind])]
    random.shuffle(victims)
    started = time.monotonic()
    moments = sorted(random.uniform(0, over_s) for _ in victims)
    async with asyncio.TaskGroup() as group:
        down: set[str] = set()
        for moment, name in zip(moments, victims, strict=True):
            await asyncio.sleep(max(0.0, started + moment - time.monotonic()))
            while name in down:
                await asyncio.sleep(0.02)
            processes.kill(name)
            down.add(name)
            group.create_task(_bring_back(processes, name, random.uniform(0, 0.6), down))


async def _bring_back(processes: Processes, name: str, after_s: float, down: set[str]) -> None:
    await asyncio.sleep(after_s)
    processes.restart(name)
    down.discard(name)


async def until_settled(redis: Redis, processes: Processes) -> None:
    """Every message has ended, or stands in the queue of an account that has sent its day's allowance."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        messages, accounts = await read_hashes(redis, "message:*"), await read_hashes(redis, "account:97*")
        full = {phone for phone, account in accounts.items() if has_spent_its_day(phone, account)}
        left = Counter(
            (m.get("account"), m["place"])
            for m in messages.values()
            if m["place"] not in {"done", "dead"} and not (m["place"] == "queue" and m["account"] in full)
        )
        if not left:
            return
        processes.check()
        assert time.monotonic() < deadline, f"still not settled: {left}, {accounts}"
        await asyncio.sleep(0.5)


def has_spent_its_day(phone: str, account: Mapping[str, str]) -> bool:
    daily = next(number.daily for number in NUMBERS if number.phone == phone)
    return "inflight" not in account and int(account.get("dayCount", 0)) >= daily


async def read_hashes(redis: Redis, pattern: str) -> dict[str, dict[str, str]]:
    keys = [key async for key in redis.scan_iter(match=PREFIX + pattern, count=5_000)]
    pipeline = redis.pipeline(transaction=False)
    for key in keys:
        pipeline.hgetall(key)
    found = zip(keys, await pipeline.execute(), strict=True)
    return {key.rpartition(":")[2]: value for key, value in found if value}


def now_ms() -> int:
    return time.time_ns() // 1_000_000
