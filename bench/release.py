"""How late messages leave: 10,000 accounts, each with one message scheduled for its own moment, one real dispatcher."""

import asyncio
from random import Random

from bench.ground import FREE, free_port, linked_accounts, now_ms, opened, percentile, phone, recipient, running, valkey
from switchboard.domain.ids import new_message_id
from switchboard.store.intake import Entry, Row

ACCOUNTS = 10_000
LEAD_MS = 4_000
WINDOW_MS = 20_000


async def measure() -> dict[str, float]:
    async with valkey() as url, opened(url) as (store, _):
        await linked_accounts(store, ACCOUNTS)
        with running("dispatcher", url, free_port()):
            await _settled(store)
            chance, start = Random(7), now_ms() + LEAD_MS
            rows = [
                Row(new_message_id(), recipient(n), "hello", due=start + chance.randrange(WINDOW_MS))
                for n in range(ACCOUNTS)
            ]
            for first in range(0, ACCOUNTS, 500):
                entries = [
                    Entry([rows[n]], phone=phone(n), revision=2, daily=FREE.daily or 0)
                    for n in range(first, first + 500)
                ]
                await store.intake.enqueue(entries, now_ms())
            await asyncio.sleep((start + WINDOW_MS + 2_000 - now_ms()) / 1000)
        messages = await store.messages.get_many([row.id for row in rows])
    late = [message.handed_at - row.due for message, row in zip(messages, rows, strict=True) if message.handed_at]
    return {
        "released": len(late),
        "late_p50_ms": percentile(late, 0.5),
        "late_p99_ms": percentile(late, 0.99),
        "late_max_ms": max(late),
    }


async def _settled(store: object) -> None:
    """Give the dispatcher the time to look at 10,000 accounts that have just connected."""
    await asyncio.sleep(3)
