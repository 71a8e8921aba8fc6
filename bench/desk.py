"""The server that workers talk to while they are measured: holds their claims, has no messages, notes what they tell.

Answers as the orchestrator does. It takes the orchestrator's place so that two processors are left to the workers.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from bench.hearing import Hearing


@asynccontextmanager
async def desk(hearing: Hearing) -> AsyncIterator[str]:
    """Gives the URL for a worker's WEBHOOK_URL."""
    visitors: set[asyncio.Task[None]] = set()

    async def welcome(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (task := asyncio.current_task()) is not None:
            visitors.add(task)
            task.add_done_callback(visitors.discard)
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while True:
                await _serve_one(reader, writer, hearing)
        writer.close()

    server = await asyncio.start_server(welcome, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/api/webhook"
    finally:
        server.close()
        for visitor in list(visitors):
            visitor.cancel()


async def _serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hearing: Hearing) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
    body = json.loads(await reader.readexactly(length))
    if "/outbox/claim" in head:
        await asyncio.sleep(body["waitMs"] / 1000)
        answer = b'{"message":null}'
    else:
        text = str((body.get("data") or {}).get("qr", ""))
        await hearing.note(body["sessionId"], body["type"], text)
        answer = b'{"accepted":true}'
    writer.write(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(answer) + answer
    )
    await writer.drain()
