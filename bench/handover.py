"""Hand-overs with 10 to 10,000 accounts; then full cycles (hand-over, claim, ack) beside bare script calls."""

import asyncio
import itertools
import time
from collections.abc import Sequence
from random import Random
from statistics import median

from bench.ground import FREE, POLICY, linked_accounts, now_ms, opened, phone, recipient, valkey
from switchboard.dispatcher.dispatcher import BREATH_S, Dispatcher
from switchboard.domain.ids import new_message_id
from switchboard.domain.messages import Status
from switchboard.domain.pacing import HandOver
from switchboard.domain.retry import RetryRules
from switchboard.store import Store
from switchboard.store.client import Redis
from switchboard.store.intake import Entry, Row

SIZES = (10, 100, 1_000, 10_000)
HAND_OVERS = 10_000
CYCLES = 8_000
CALLERS = 64
ROUNDS = 3


async def measure() -> dict[str, float]:
    results: dict[str, float] = {}
    for size in SIZES:
        async with valkey() as url, opened(url) as (store, _):
            await linked_accounts(store, size)
            results[f"handover_us_{size}"] = await _cost_of_hand_over(store, size)
    async with valkey() as url, opened(url) as (store, client):
        await linked_accounts(store, 1_000)
        bare, cycles, clock = [], [], _Clock()
        for _ in range(ROUNDS):
            bare.append(await _bare_calls(client))
            cycles.append(await _cycles(store, 1_000, clock))
        results |= {"evalsha_per_s": median(bare), "cycles_per_s": median(cycles)}
    results["cycles_to_evalsha"] = results["cycles_per_s"] / results["evalsha_per_s"]
    results["handover_10000_to_10"] = results["handover_us_10000"] / results["handover_us_10"]
    return results


async def _fill(store: Store, accounts: int, messages: int) -> None:
    numbers = itertools.count()
    for start in range(0, messages, 500):
        entries = [
            Entry(
                [Row(new_message_id(), recipient(next(numbers)), "hello, your order is ready")],
                phone=phone(n % accounts), revision=2, daily=FREE.daily or 0,
            )
            for n in range(start, min(start + 500, messages))
        ]  # fmt: skip
        await store.intake.enqueue(entries, now_ms())


class _Clock:
    """Moves on by three seconds each round, the pace of a hot account: no hand-over ever waits for time."""

    def __init__(self) -> None:
        self.now = now_ms()

    def next(self) -> int:
        self.now += 3_000
        return self.now


async def _cost_of_hand_over(store: Store, accounts: int) -> float:
    """Microseconds of a dispatcher's round for each message it hands over; settling them is not counted."""
    await _fill(store, accounts, HAND_OVERS)
    clock = _Clock()
    dispatcher = Dispatcher(store, POLICY, RetryRules(), lambda: clock.now, Random(1))
    spent, handed = 0.0, 0
    while handed < HAND_OVERS:
        now = clock.next()
        started = time.perf_counter()
        done = await dispatcher.round(now)
        spent += time.perf_counter() - started
        handed += len(done.handed)
        await _settle(store, done.handed, now)
    return spent / handed * 1e6


async def _settle(store: Store, handed: Sequence[HandOver], now: int) -> None:
    waiting = iter(handed)

    async def worker() -> None:
        for one in waiting:
            await _settle_one(store, one, now)

    await asyncio.gather(*(worker() for _ in range(CALLERS)))


async def _settle_one(store: Store, one: HandOver, now: int) -> None:
    claimed = await store.outbox.claim(one.session, "bench-worker", now)
    if claimed:
        await store.outbox.confirm(one.session, claimed.message_id, Status.SENT, now, now)


async def _cycles(store: Store, accounts: int, clock: _Clock) -> float:
    """Hand-over, claim and ack of each message, as in life: a dispatcher at work beside many workers."""
    await _fill(store, accounts, CYCLES)
    dispatcher = Dispatcher(store, POLICY, RetryRules(), lambda: clock.now, Random(1))
    outboxes: asyncio.Queue[HandOver | None] = asyncio.Queue()

    async def dispatch() -> None:
        handed = 0
        while handed < CYCLES:
            done = await dispatcher.round(clock.next())
            handed += len(done.handed)
            for one in done.handed:
                outboxes.put_nowait(one)
            await asyncio.sleep(0 if done.full else BREATH_S)
        for _ in range(CALLERS):
            outboxes.put_nowait(None)

    async def worker() -> None:
        while (one := await outboxes.get()) is not None:
            await _settle_one(store, one, clock.now)

    started = time.perf_counter()
    await asyncio.gather(dispatch(), *(worker() for _ in range(CALLERS)))
    return CYCLES / (time.perf_counter() - started)


async def _bare_calls(client: Redis) -> float:
    """`return 1`, from as many awaiting callers, through the same client."""
    digest = await client.script_load("return 1")
    left = iter(range(20_000))

    async def caller() -> None:
        for _ in left:
            await client.evalsha(digest, 0)

    started = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    return 20_000 / (time.perf_counter() - started)
