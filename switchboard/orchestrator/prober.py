"""Tries a proxy step by step as a worker would, so that the operator learns which step failed.

By hand, not with a library: those only say that it did not work. The target's name is never resolved here.
"""

import asyncio
import errno
import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from switchboard.domain.proxies import ProxyUrl

Code = Literal[
    "ok", "unreachable", "timeout", "reset", "not_socks", "no_auth_method", "auth_rejected", "connect_refused"
]

_SOCKS5, _CONNECT, _AUTH_VERSION = 5, 1, 1
_NO_AUTH, _USER_AND_PASSWORD = 0, 2
_IPV4, _DOMAIN, _IPV6 = 1, 3, 4
_ADDRESS_SIZES = {_IPV4: 4, _IPV6: 16}
_REPLIES = {
    1: "a general failure",
    2: "its rules do not allow it",
    3: "the network is unreachable",
    4: "the host is unreachable or its name is unknown",
    5: "the host refused the connection",
    6: "the way there is too long (TTL expired)",
    7: "it does not know the command",
    8: "it does not take host names",
}
_OUR_OWN_FAULT = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""This machine has run out of something: that says nothing about the proxy."""

_READ_AHEAD = 1024
"""A flood is left in the kernel: no answer is longer than this."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`detail` is a sentence for the operator, without credentials."""

    ok: bool
    code: Code
    detail: str
    took_ms: int


class _Failed(Exception):
    def __init__(self, code: Code, detail: str) -> None:
        super().__init__(detail)
        self.code: Code = code
        self.detail = detail


@dataclass(slots=True)
class _Shared:
    task: asyncio.Task[Verdict]
    callers: int = 0


class Prober:
    def __init__(self, target_host: str = "web.whatsapp.com", target_port: int = 443, timeout_s: float = 10.0) -> None:
        self._target = (target_host, target_port)
        self._timeout_s = timeout_s
        self._under_way: dict[ProxyUrl, _Shared] = {}

    async def probe(self, proxy: ProxyUrl) -> Verdict:
        """Whatever the other side does becomes a verdict. Callers of the same proxy at the same time share one probe;
        it ends early only when the last of them has gone."""
        shared = self._under_way.get(proxy)
        if shared is None:
            shared = self._under_way[proxy] = _Shared(asyncio.create_task(self._judge(proxy)))
        shared.callers += 1
        try:
            return await asyncio.shield(shared.task)
        finally:
            shared.callers -= 1
            if not shared.callers:
                del self._under_way[proxy]
                shared.task.cancel()

    async def _judge(self, proxy: ProxyUrl) -> Verdict:
        clock = asyncio.get_running_loop().time
        started = clock()
        attempt = _Attempt(proxy, *self._target)
        code: Code = "ok"
        detail = f"The proxy at {proxy.address} leads to {attempt.target}."
        try:
            async with asyncio.timeout(self._timeout_s):
                await attempt.run()
        except _Failed as failed:
            code, detail = failed.code, failed.detail
        except TimeoutError:
            code = "timeout"
            detail = f"The proxy at {proxy.address} did not answer within {self._timeout_s:g} s {attempt.step}."
        return Verdict(code == "ok", code, detail, round((clock() - started) * 1000))


class _Attempt:
    """One walk through the steps. `step` says where it is, in words that end a sentence."""

    def __init__(self, proxy: ProxyUrl, target_host: str, target_port: int) -> None:
        self._proxy = proxy
        self._target_host, self._target_port = target_host.encode("ascii"), target_port
        self.target = f"{target_host}:{target_port}"
        self.step = "on connecting"

    async def run(self) -> None:
        reader, writer = await self._connect()
        try:
            await self._steps(reader, writer)
        except asyncio.IncompleteReadError:
            raise self._failed("reset", f"closed the connection {self.step}") from None
        except TimeoutError:
            raise
        except OSError:
            raise self._failed("reset", f"broke the connection {self.step}") from None
        finally:
            writer.transport.abort()  # a polite end would wait for the other side
            with suppress(OSError):
                await writer.wait_closed()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        address = self._proxy.address
        try:
            return await asyncio.open_connection(self._proxy.host, self._proxy.port, limit=_READ_AHEAD)
        except TimeoutError:
            raise
        except (socket.gaierror, UnicodeError):
            raise _Failed("unreachable", f"The host name of the proxy at {address} could not be resolved.") from None
        except ConnectionRefusedError:
            raise _Failed("unreachable", f"Nobody listens at {address}.") from None
        except (ConnectionResetError, ConnectionAbortedError, BrokenPipeError):
            raise self._failed("reset", f"broke the connection {self.step}") from None
        except OSError as error:
            if error.errno in _OUR_OWN_FAULT:
                raise
            why = f": {os.strerror(error.errno)}" if error.errno else ""
            raise self._failed("unreachable", f"cannot be reached from here{why}") from None

    async def _steps(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.step = "at the greeting"
        await self._greet(reader, writer)
        if self._proxy.user:
            self.step = "at the user and password"
            await self._sign_in(reader, writer)
        self.step = f"when asked for {self.target}"
        await self._ask(reader, writer)

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        offered = _USER_AND_PASSWORD if self._proxy.user else _NO_AUTH
        _send(writer, bytes([_SOCKS5, 1, offered]))
        await self._expect(reader, {_SOCKS5})
        [chosen] = await reader.readexactly(1)
        if chosen != offered:
            wish = "takes no user and password" if self._proxy.user else "lets nobody in without a user and password"
            raise self._failed("no_auth_method", wish)

    async def _sign_in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        user, password = self._proxy.user.encode(), self._proxy.password.encode()
        _send(writer, bytes([_AUTH_VERSION, len(user)]) + user + bytes([len(password)]) + password)
        await self._expect(reader, {_AUTH_VERSION, _SOCKS5})  # the latter is wrong, common, and taken by every client
        [status] = await reader.readexactly(1)
        if status:
            raise self._failed("auth_rejected", "rejected the user or the password")

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        name = bytes([_DOMAIN, len(self._target_host)]) + self._target_host
        _send(writer, bytes([_SOCKS5, _CONNECT, 0]) + name + self._target_port.to_bytes(2))
        await self._expect(reader, {_SOCKS5})
        [reply] = await reader.readexactly(1)
        if reply:  # some send nothing more after a refusal
            why = _REPLIES.get(reply, f"reply {reply}, which SOCKS5 does not know")
            raise self._failed("connect_refused", f"refused to connect to {self.target}: {why}")
        _, kind = await reader.readexactly(2)
        if kind == _DOMAIN:
            [size] = await reader.readexactly(1)
        elif kind in _ADDRESS_SIZES:
            size = _ADDRESS_SIZES[kind]
        else:
            raise self._not_socks()
        await reader.readexactly(size + 2)

    async def _expect(self, reader: asyncio.StreamReader, versions: set[int]) -> None:
        """Looks at the first byte alone: a stranger may never send a second."""
        [version] = await reader.readexactly(1)
        if version not in versions:
            raise self._not_socks()

    def _not_socks(self) -> _Failed:
        return _Failed("not_socks", f"What listens at {self._proxy.address} gave no SOCKS5 answer {self.step}.")

    def _failed(self, code: Code, what: str) -> _Failed:
        return _Failed(code, f"The proxy at {self._proxy.address} {what}.")


def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    """A reset that was already noticed: asyncio would drop the data in silence, uvloop raise a RuntimeError."""
    if writer.is_closing():
        raise ConnectionResetError
    writer.write(data)
