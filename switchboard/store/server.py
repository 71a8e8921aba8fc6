"""The embedded store: one valkey-server for one data folder, started, shared, adopted, restarted, stopped.

Only about the server's life. What is kept in it is the business of the other modules here.
"""

import asyncio
import os
import time
from pathlib import Path

import structlog
from redis.exceptions import RedisError

from switchboard.store.folder import StoreFolder, try_lock
from switchboard.store.valkey import Answer, Fsync, StoreStartError, ValkeyServer

__all__ = ["EmbeddedStore", "StoreStartError"]

_POLL_S = 0.02
_WATCH_S = 0.2
_FIRST_GAP_S, _LAST_GAP_S = 0.2, 30.0

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("store")


class EmbeddedStore:
    """Shared by every Switchboard process that uses the data folder; exactly one of them owns it.

    The owner holds `owner.lock`: it starts, restarts and stops the server. The lock vanishes with its
    holder, however that ends, and another process may then take over the server as it runs.
    """

    def __init__(
        self,
        data_dir: Path,
        fsync: Fsync = "always",
        *,
        binary: Path | None = None,
        patience_s: float = 30.0,
    ) -> None:
        self._folder = StoreFolder(data_dir.absolute())
        self._server = ValkeyServer(self._folder, fsync, binary)
        self._patience_s = patience_s
        self._owner_lock: int | None = None

    @property
    def url(self) -> str:
        return f"unix://{self._folder.socket}"

    @property
    def owned(self) -> bool:
        return self._owner_lock is not None

    async def start(self) -> None:
        """Return when the store answers: started, adopted from a dead owner, or shared with a live one."""
        try:
            self._folder.prepare()
            if self._take_ownership():
                await self._ensure_running()
            else:
                await self._until_ready()
        except (OSError, RedisError) as error:
            await self.stop()
            raise StoreStartError(f"The store can't use {self._folder.path} {_why(error)}") from error
        except BaseException:
            await self.stop()
            raise

    async def supervise(self) -> None:
        """Bring the server back whenever it dies, and take over when its owner is gone.

        Runs until cancelled; cancel it before `stop`.
        """
        gap, since = _FIRST_GAP_S, time.monotonic()
        while True:
            await asyncio.sleep(_WATCH_S)
            if not self._take_ownership() or self._server.running():
                continue
            if time.monotonic() - since > _LAST_GAP_S:
                gap = _FIRST_GAP_S
            log.error("store_died", folder=str(self._folder.path), restart_in_s=gap)
            await asyncio.sleep(gap)
            gap = min(gap * 2, _LAST_GAP_S)
            try:
                await self._ensure_running()
                log.info("store_restarted", folder=str(self._folder.path))
            except (StoreStartError, RedisError, OSError) as error:
                log.error("store_restart_failed", error=str(error))
            since = time.monotonic()

    async def stop(self) -> None:
        """The owner shuts the server down cleanly, everything on disk; anyone else leaves it alone."""
        if self._owner_lock is None:
            return
        try:
            if self._server.running():
                await self._server.shut_down()
        finally:
            os.close(self._owner_lock)
            self._owner_lock = None

    async def end_orphan(self) -> bool:
        """Shut down what a dead owner left running. Whether nothing runs now: False when its owner lives."""
        if not self._folder.path.is_dir():
            return True
        if not self._take_ownership():
            return False
        await self.stop()
        return not self._server.running()

    def _take_ownership(self) -> bool:
        if self._owner_lock is None:
            self._owner_lock = try_lock(self._folder.owner_lock)
        return self._owner_lock is not None

    async def _ensure_running(self) -> None:
        started = self._server.spawn()
        await self._until_ready()
        if not started:
            log.info("store_adopted", folder=str(self._folder.path))
            await self._server.configure()

    async def _until_ready(self) -> None:
        """Loading a large file may take its time; a server that says nothing may not."""
        deadline = time.monotonic() + self._patience_s
        while (answer := await self._server.ask()) is not Answer.READY:
            if not self.owned and self._take_ownership():
                await self._ensure_running()
                return
            if self.owned and not self._server.running():
                raise StoreStartError(
                    f"The store's server ended: {self._folder.last_words()}. Set REDIS_URL to use another store."
                )
            if answer is Answer.LOADING:
                deadline = time.monotonic() + self._patience_s
            elif time.monotonic() > deadline:
                raise StoreStartError(
                    f"The data folder {self._folder.data_dir} is in use, but its store does not answer. "
                    f"Stop the process that uses it, or set DATA_DIR to another folder. Its log: {self._folder.log}"
                )
            await asyncio.sleep(_POLL_S)


def _why(error: OSError | RedisError) -> str:
    if isinstance(error, RedisError):
        return f"(its server says: {error})."
    advice = "Make it a folder that you may write to, or set DATA_DIR to another one."
    return f"({error.strerror or error}). {advice}"
