"""An app behind a real uvicorn on a loopback port, in this process; and waiting for what is true sooner or later."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

import uvicorn
from fastapi import FastAPI


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # they are pytest's


@dataclass(frozen=True, slots=True)
class Served:
    url: str
    server: uvicorn.Server

    def connections(self) -> int:
        return len(self.server.server_state.connections)


@asynccontextmanager
async def serving(app: FastAPI) -> AsyncIterator[Served]:
    # Named TCP: asyncio asks for no delay only on a socket that says it is one.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    server = _Server(uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=1))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await until(lambda: server.started)
        yield Served(f"http://127.0.0.1:{listener.getsockname()[1]}", server)
    finally:
        server.should_exit = True
        await task
        listener.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


async def until(condition: Callable[[], bool | Awaitable[bool]], within_s: float = 20) -> None:
    deadline = time.monotonic() + within_s
    while True:
        answer = condition()
        if answer if isinstance(answer, bool) else await answer:
            return
        assert time.monotonic() < deadline, "it did not come true in time"
        await asyncio.sleep(0.01)
