"""A small closed-loop HTTP load generator: n connections, each sends its next request when the last was answered.

Written on bare asyncio protocols, so that on a small machine it costs little beside the server it measures.
"""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast


@dataclass(frozen=True, slots=True)
class Load:
    requests: int
    seconds: float
    latencies_ms: list[float]
    errors: int

    @property
    def per_second(self) -> float:
        return self.requests / self.seconds


def request(method: str, path: str, headers: dict[str, str], body: bytes = b"") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "host: localhost", f"content-length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def answered(buffer: bytes) -> tuple[bool, bytes] | None:
    """Whether the answer is 200, and its body; None while it is not complete."""
    head, found, body = buffer.partition(b"\r\n\r\n")
    if not found or len(body) < int(head.lower().partition(b"content-length: ")[2].split(b"\r\n", 1)[0]):
        return None
    return head.startswith(b"HTTP/1.1 200"), body


class _Connection(asyncio.Protocol):
    def __init__(self, requests: Iterator[bytes], until: float, done: "asyncio.Future[None]") -> None:
        self._requests = requests
        self._until = until
        self._done = done
        self._buffer = b""
        self._sent_at = 0.0
        self.latencies: list[float] = []
        self.errors = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)
        self._next()

    def _next(self) -> None:
        self._sent_at = time.perf_counter()
        if self._sent_at >= self._until:
            self._transport.close()
            return
        self._transport.write(next(self._requests))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if (answer := answered(self._buffer)) is None:
            return
        self._buffer = b""
        self.latencies.append((time.perf_counter() - self._sent_at) * 1000)
        self.errors += not answer[0]
        self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_result(None)


async def drive(port: int, requests: Iterator[bytes], seconds: float, connections: int = 64) -> Load:
    loop = asyncio.get_running_loop()
    started = time.perf_counter()
    made: list[_Connection] = []
    waits: list[asyncio.Future[None]] = []
    for _ in range(connections):
        done: asyncio.Future[None] = loop.create_future()
        connection = _Connection(requests, started + seconds, done)
        await loop.create_connection(lambda c=connection: c, "127.0.0.1", port)  # type: ignore[misc]
        made.append(connection)
        waits.append(done)
    await asyncio.gather(*waits)
    latencies = [latency for connection in made for latency in connection.latencies]
    elapsed = time.perf_counter() - started
    return Load(len(latencies), elapsed, latencies, sum(connection.errors for connection in made))
