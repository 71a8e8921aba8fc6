"""`POST /api/v1/send` beside a no-op endpoint of the same server, in turns."""

import itertools
import json
from collections.abc import Iterator
from statistics import median

from bench import load
from bench.ground import API_KEY, free_port, linked_accounts, opened, percentile, recipient, running, session, valkey
from switchboard.domain.trust import Overrides

ACCOUNTS = 1_000
ROUNDS = 4
SECONDS = 3.0


def _noop() -> Iterator[bytes]:
    return itertools.repeat(load.request("GET", "/health/live", {}))


def _sends() -> Iterator[bytes]:
    headers = {"x-api-key": API_KEY, "content-type": "application/json"}
    for number in itertools.count():
        body = {"to": recipient(number), "message": f"hello number {number}", "sessionId": session(number % ACCOUNTS)}
        yield load.request("POST", "/api/v1/send", headers, json.dumps(body).encode())


async def measure() -> dict[str, float]:
    port = free_port()
    async with valkey() as url, opened(url) as (store, _):
        await linked_accounts(store, ACCOUNTS, Overrides())
        with running("gateway", url, port):
            sends = _sends()
            await load.drive(port, sends, 1.0)  # warm up
            bare, full = [], []
            for _ in range(ROUNDS):
                bare.append(await load.drive(port, _noop(), SECONDS))
                full.append(await load.drive(port, sends, SECONDS))
    latencies = [latency for one in full for latency in one.latencies_ms]
    rate, noop = median(one.per_second for one in full), median(one.per_second for one in bare)
    return {
        "send_per_s": rate,
        "noop_per_s": noop,
        "send_to_noop": rate / noop,
        "send_p50_ms": percentile(latencies, 0.5),
        "send_p99_ms": percentile(latencies, 0.99),
        "errors": sum(one.errors for one in full + bare),
    }
