"""Batches of 10,000 rows over HTTP, beside raw pipelined writes of the same bytes, in turns."""

import json
import time
from statistics import median
from typing import Any

import httpx

from bench.ground import API_KEY, free_port, linked_accounts, opened, recipient, running, session, valkey
from switchboard.store.client import Redis

ROWS = 10_000
HEADERS = {"x-api-key": API_KEY, "content-type": "application/json"}
ROUNDS = 4


async def measure() -> dict[str, float]:
    port = free_port()
    async with valkey() as url, opened(url) as (store, client):
        await linked_accounts(store, ROUNDS + 1)
        with running("gateway", url, port):
            ingest, raw = [], []
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=120) as http:
                await _post(http, ROUNDS)  # warm up
                for turn in range(ROUNDS):
                    ingest.append(await _post(http, turn))
                    raw.append(await _write_raw(client, await _written(client)))
    rate, bare = median(ingest), median(raw)
    return {"batch_per_s": rate, "raw_per_s": bare, "batch_to_raw": rate / bare}


async def _post(http: httpx.AsyncClient, turn: int) -> float:
    rows = [{"to": recipient(turn * ROWS + n), "text": f"hello number {n}, your order is ready"} for n in range(ROWS)]
    body = json.dumps({"messages": rows, "sessionId": session(turn), "spreadMinutes": 600}).encode()
    started = time.perf_counter()
    answer = await http.post("/api/v1/send/batch", content=body, headers=HEADERS)
    answer.raise_for_status()
    return ROWS / (time.perf_counter() - started)


async def _written(client: Redis) -> dict[str, dict[str, str]]:
    """What the product has just written for one batch: the same bytes are written again, bare."""
    names = [name async for name in client.scan_iter("bench:message:*", count=5_000)][:ROWS]
    pipeline = client.pipeline(transaction=False)
    for name in names:
        pipeline.hgetall(name)
    return dict(zip(names, await pipeline.execute(), strict=True))


async def _write_raw(client: Redis, messages: dict[str, dict[str, Any]]) -> float:
    started = time.perf_counter()
    items = list(messages.items())
    for start in range(0, len(items), 1_000):
        pipeline = client.pipeline(transaction=False)
        for name, fields in items[start : start + 1_000]:
            pipeline.hset(f"raw:{name}", mapping=fields)
            pipeline.zadd("raw:scheduled", {name: float(fields["due"])})
        await pipeline.execute()
    return len(items) / (time.perf_counter() - started)
