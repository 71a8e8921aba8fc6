"""500 workers long-polling one orchestrator: how soon a message reaches its worker, PINGs a second, memory.

The workers are real HTTP clients with one waiting claim each. A real dispatcher hands one message to each of them; the
delay is counted from the moment of the hand-over, as the store noted it, to the moment the worker has it in hand.
"""

import asyncio
import itertools
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from bench.ground import (
    FREE,
    SECRET,
    free_port,
    linked_accounts,
    now_ms,
    opened,
    percentile,
    phone,
    recipient,
    running,
    session,
    valkey,
)
from bench.load import answered, drive, request
from switchboard.domain.ids import new_message_id
from switchboard.store import Store
from switchboard.store.intake import Entry, Row
from switchboard.web.signatures import sign, worker_secret

WORKERS = 500
ROUNDS = 3
SINGLE = 100
PING_S = 4.0
PINGS = 40_000


async def measure() -> dict[str, float]:
    async with valkey() as url, opened(url) as (store, _):
        await linked_accounts(store, WORKERS)
        port = free_port()
        with running("orchestrator", url, port) as orchestrator, running("dispatcher", url, free_port()):
            alone = _rss(orchestrator)
            workers = [_Worker(number) for number in range(WORKERS)]
            await asyncio.gather(*(worker.connect(port) for worker in workers))
            await asyncio.sleep(3)  # all of them wait, and the dispatcher has seen every account
            waiting = _rss(orchestrator)
            single = [await _round(store, workers[n : n + 1]) for n in range(SINGLE)]
            delays = [await _round(store, workers) for _ in range(ROUNDS)]
            noop = await drive(port, itertools.repeat(request("GET", "/health/live", {})), PING_S)
            ping = await drive(port, _pings(), PING_S)
    alone_ms, together_ms = list(itertools.chain(*single)), list(itertools.chain(*delays))
    return {
        "claims_received": len(alone_ms) + len(together_ms),
        "claim_p50_ms": percentile(alone_ms, 0.5),
        "claim_p99_ms": percentile(alone_ms, 0.99),
        "claim_500_at_once_p50_ms": percentile(together_ms, 0.5),
        "claim_500_at_once_p99_ms": percentile(together_ms, 0.99),
        "ping_per_s": ping.per_second,
        "ping_errors": ping.errors,
        "ping_p99_ms": percentile(ping.latencies_ms, 0.99),
        "ping_noop_per_s": noop.per_second,
        "ping_to_noop": ping.per_second / noop.per_second,
        "orchestrator_mb": alone / 2**20,
        "orchestrator_kb_per_worker": (waiting - alone) / WORKERS / 1024,
    }


async def _round(store: Store, workers: "list[_Worker]") -> list[float]:
    """One message for each of these, queued in one go."""
    rows = {worker.number: Row(new_message_id(), recipient(worker.number), "hello") for worker in workers}
    got = [worker.next_message() for worker in workers]
    entries = [Entry([row], phone=phone(number), revision=2, daily=FREE.daily or 0) for number, row in rows.items()]
    await store.intake.enqueue(entries, now_ms())
    received = dict(await asyncio.wait_for(asyncio.gather(*got), 60))
    messages = await store.messages.get_many([row.id for row in rows.values()])
    await asyncio.gather(*(worker.acked.wait() for worker in workers))
    return [received[message.id] - message.handed_at for message in messages if message.handed_at]


def _signed(number: int, path: str, body: dict[str, object]) -> bytes:
    raw = json.dumps({"sessionId": session(number), **body}).encode()
    headers = sign(
        worker_secret(SECRET, session(number)), raw, message_id=secrets.token_hex(12), timestamp=now_ms() // 1000
    )
    return request("POST", path, {**headers, "content-type": "application/json"}, raw)


def _pings() -> Iterator[bytes]:
    """Signed beforehand: the server's work is what is measured."""
    data: dict[str, object] = {"socketOpen": True, "lastInboundAt": now_ms()}
    made = [
        _signed(n % WORKERS, "/api/webhook", {"type": "PING", "timestamp": now_ms(), "data": data})
        for n in range(PINGS)
    ]
    return iter(made)


class _Worker(asyncio.Protocol):
    """Claims, notes when it got a message, acks it, claims again."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.acked = asyncio.Event()
        self._outbox = f"/api/worker/sessions/{session(number)}/outbox"
        self._instance = secrets.token_hex(8)
        self._buffer = b""
        self._next: asyncio.Future[tuple[str, int]] | None = None

    async def connect(self, port: int) -> None:
        await asyncio.get_running_loop().create_connection(lambda: self, "127.0.0.1", port)

    def next_message(self) -> "asyncio.Future[tuple[str, int]]":
        self._next = asyncio.get_running_loop().create_future()
        return self._next

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)
        self._claim()

    def _claim(self) -> None:
        self._transport.write(
            _signed(self.number, f"{self._outbox}/claim", {"instance": self._instance, "waitMs": 25_000})
        )

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if (complete := answered(self._buffer)) is None:
            return
        self._buffer = b""
        good, body = complete
        assert good, body
        answer = json.loads(body)
        if "settled" in answer:
            self.acked.set()
        if not (message := answer.get("message")):
            self._claim()
            return
        self.acked.clear()
        if self._next and not self._next.done():
            self._next.set_result((message["messageId"], now_ms()))
        ack = {"messageId": message["messageId"], "attempt": message["attempt"], "timestamp": now_ms()}
        self._transport.write(_signed(self.number, f"{self._outbox}/ack", ack))


def _rss(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
