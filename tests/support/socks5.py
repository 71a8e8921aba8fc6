"""A real SOCKS5 server on loopback that can be told to misbehave, in this process or as one of its own.

It leads names to local listeners by a map, and lets nothing out of this machine.
"""

import argparse
import asyncio
import ipaddress
import signal
import socket
import struct
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NoReturn

Place = tuple[str, int]

_HTTP_ANSWER = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_NO_AUTH, _USER_AND_PASSWORD, _NO_METHOD = 0, 2, 0xFF
_IPV4, _DOMAIN, _IPV6 = 1, 3, 4
_GRANTED, _NOT_ALLOWED, _REFUSED = 0, 2, 5
_UNKNOWN_COMMAND = 7


class Step(StrEnum):
    """Where a trouble strikes: in the place of an answer, or right after one, before more is read."""

    ACCEPT = "accept"
    GREETING = "greeting"
    AFTER_GREETING = "after_greeting"
    AUTH = "auth"
    AFTER_AUTH = "after_auth"
    CONNECT = "connect"


class Trouble(StrEnum):
    HANG = "hang"
    RESET = "reset"  # RST
    CLOSE = "close"  # FIN, and it still reads


BOUND = {
    "ipv4": b"\x01\x7f\x00\x00\x01\x04\x38",
    "ipv6": b"\x04" + bytes(15) + b"\x01\x04\x38",
    "domain": b"\x03\xff" + b"a" * 255 + b"\x04\x38",
    "unknown": b"\x02\x00\x00\x00\x00\x00\x00",
}
"""What a reply says it is bound to."""


@dataclass(frozen=True, slots=True)
class Mode:
    """How the server treats a connection; one that is under way keeps the mode it began with."""

    trouble: Trouble | None = None
    at: Step = Step.ACCEPT
    rejects_everyone: bool = False
    http: bool = False
    method: int | None = None  # chosen whatever was offered; 0xFF: none is acceptable
    auth_version: int = 1
    reply: int = _GRANTED
    bound: str = "ipv4"
    garbage_at: Step | None = None
    drip_s: float | None = None  # a byte at a time, with this much in between


GOOD = Mode()
NO_METHOD = Mode(method=_NO_METHOD)


class _Over(Exception):
    """This connection has had what it gets."""


@dataclass(slots=True)
class Socks5Server:
    user: str = ""
    password: str = field(default="", repr=False)
    leads_to: Mapping[Place, Place] = field(default_factory=dict)
    mode: Mode = GOOD
    port: int = 0
    asked: list[Place] = field(default_factory=list)
    """The hosts and ports that were asked for, as they were written."""
    offered: list[bytes] = field(default_factory=list)
    """The methods of each greeting."""
    connections: int = 0
    """How many there were."""
    open: set[asyncio.StreamWriter] = field(default_factory=set)
    _relayed: set[asyncio.StreamWriter] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def relaying(self) -> int:
        return len(self._relayed) // 2

    def drop_all(self) -> None:
        """Cuts the relayed connections in mid-session, on both sides. New ones are served as before."""
        for writer in self._relayed:
            _reset(writer)

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """The task is ours: asyncio would complain about one that `stop` cancels."""
        self.connections += 1
        self.open.add(writer)
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _Client(self, self.mode, reader, writer).serve()
        except (_Over, asyncio.IncompleteReadError, OSError):
            pass  # as it was told, or the client has gone
        finally:
            writer.transport.abort()
            self.open.discard(writer)

    async def relay(self, *ends: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
        (near_reader, near), (far_reader, far) = ends
        self._relayed |= {near, far}
        try:
            await asyncio.gather(_pump(near_reader, far), _pump(far_reader, near))
        finally:
            self._relayed -= {near, far}

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@dataclass(slots=True)
class _Client:
    server: Socks5Server
    mode: Mode
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def serve(self) -> None:
        await self._struck(Step.ACCEPT)
        _, count = await self.reader.readexactly(2)
        self.server.offered.append(await self.reader.readexactly(count))
        await self._struck(Step.GREETING)
        if self.mode.http:
            await self._say(_HTTP_ANSWER)
            await self._part()
        await self._greet()
        await self._connect()

    async def _greet(self) -> None:
        wanted = _USER_AND_PASSWORD if self.server.user else _NO_AUTH
        method = wanted if wanted in self.server.offered[-1] else _NO_METHOD
        method = method if self.mode.method is None else self.mode.method
        await self._say(bytes([5, method]))
        await self._struck(Step.AFTER_GREETING)
        if method not in (_NO_AUTH, _USER_AND_PASSWORD):
            await self._part()
        if method == _USER_AND_PASSWORD:
            await self._sign_in()

    async def _sign_in(self) -> None:
        _, size = await self.reader.readexactly(2)
        user = await self.reader.readexactly(size)
        [size] = await self.reader.readexactly(1)
        password = await self.reader.readexactly(size)
        await self._struck(Step.AUTH)
        right = (user, password) == (self.server.user.encode(), self.server.password.encode())
        let_in = right and not self.mode.rejects_everyone
        await self._say(bytes([self.mode.auth_version, 0 if let_in else 1]))
        if not let_in:
            await self._part()
        await self._struck(Step.AFTER_AUTH)

    async def _connect(self) -> None:
        _, command, _, kind = await self.reader.readexactly(4)
        host = await self._host(kind)
        asked = (host, int.from_bytes(await self.reader.readexactly(2)))
        self.server.asked.append(asked)
        await self._struck(Step.CONNECT)
        if command != 1:
            await self._refuse(_UNKNOWN_COMMAND)
        if self.mode.reply != _GRANTED:
            await self._refuse(self.mode.reply)
        place = self.server.leads_to.get(asked) or (asked if _is_loopback(host) else None)
        if place is None:
            await self._refuse(_NOT_ALLOWED)
        await self._lead(place)

    async def _lead(self, place: Place) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(*place)
        except OSError:
            await self._refuse(_REFUSED)
        try:
            await self._say(bytes([5, _GRANTED, 0]) + BOUND[self.mode.bound])
            await self.server.relay((self.reader, self.writer), (far_reader, far_writer))
        finally:
            far_writer.transport.abort()

    async def _host(self, kind: int) -> str:
        if kind == _DOMAIN:
            [size] = await self.reader.readexactly(1)
            return (await self.reader.readexactly(size)).decode("ascii")
        return str(ipaddress.ip_address(await self.reader.readexactly(4 if kind == _IPV4 else 16)))

    async def _refuse(self, reply: int) -> NoReturn:
        await self._say(bytes([5, reply, 0]) + BOUND["ipv4"])
        await self._part()

    async def _say(self, answer: bytes) -> None:
        if self.mode.drip_s is None:
            self.writer.write(answer)
        else:
            for byte in answer:
                self.writer.write(bytes([byte]))
                await self.writer.drain()
                await asyncio.sleep(self.mode.drip_s)
        await self.writer.drain()

    async def _struck(self, step: Step) -> None:
        if self.mode.garbage_at is step:
            await self._say(b"\x47")
            await self._part()
        if self.mode.trouble is None or self.mode.at is not step:
            return
        if self.mode.trouble is Trouble.RESET:
            _reset(self.writer)
            raise _Over
        if self.mode.trouble is Trouble.CLOSE:
            await self._part()
        await self.reader.read(-1)  # the client's own end
        raise _Over

    async def _part(self) -> NoReturn:
        """What is closed with something unread goes as a reset: a polite end reads on."""
        if not self.writer.is_closing():
            self.writer.write_eof()
        await self.reader.read(-1)
        raise _Over


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while some := await reader.read(65536):
            writer.write(some)
            await writer.drain()
        if not writer.is_closing():  # uvloop would raise a RuntimeError
            writer.write_eof()
    except OSError:  # one side has gone: the other shall know, which also ends the other pump
        writer.transport.abort()


def _reset(writer: asyncio.StreamWriter) -> None:
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@asynccontextmanager
async def socks5_server(
    user: str = "",
    password: str = "",
    leads_to: Mapping[Place, Place] | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
) -> AsyncIterator[Socks5Server]:
    socks = Socks5Server(user, password, leads_to or {})
    server = await asyncio.start_server(socks.accept, host, port)
    socks.port = server.sockets[0].getsockname()[1]
    try:
        yield socks
    finally:
        server.close()
        await socks.stop()
        await server.wait_closed()


def _place(text: str) -> Place:
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


async def main() -> None:
    parser = argparse.ArgumentParser(prog="socks5", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--user", default="")
    parser.add_argument("--password", default="")
    parser.add_argument("--map", action="append", default=[], metavar="HOST:PORT=HOST:PORT")
    given = parser.parse_args()
    pairs = [pair.split("=") for pair in given.map]
    leads_to = {_place(name): _place(place) for name, place in pairs}
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with socks5_server(given.user, given.password, leads_to, host=given.host, port=given.port) as server:
        sys.stdout.write(f"{server.port}\n")
        sys.stdout.flush()
        await stopped.wait()


if __name__ == "__main__":
    asyncio.run(main())
