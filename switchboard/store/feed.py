"""The stream of events, for those who follow it live: any number of followers over one reading connection."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import structlog

from switchboard.domain.errors import StoreUnavailable
from switchboard.store.client import Redis, store_errors
from switchboard.store.keys import Keys

_log = structlog.get_logger(__name__)
_BLOCK_MS = 5_000
_PAGE = 200
_RETRY_S = 0.5


@dataclass(frozen=True, slots=True)
class Entry:
    id: str
    type: str
    fields: dict[str, str]


class Feed:
    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._key = keys("events")
        self._followers: set[asyncio.Event] = set()
        self._someone = asyncio.Event()

    async def last_id(self) -> str:
        async with store_errors():
            newest = await self._client.xrevrange(self._key, "+", "-", 1)
        return newest[0][0] if newest else "0-0"

    async def after(self, cursor: str) -> list[Entry]:
        """The next entries after this id, oldest first; up to a page of them."""
        async with store_errors():
            found = await self._client.xrange(self._key, f"({cursor}", "+", _PAGE)
        return [Entry(entry, fields.pop("type"), fields) for entry, fields in found]

    async def before(self, cursor: str | None, limit: int = _PAGE) -> list[Entry]:
        """The entries before this id (None: the newest of all), newest first."""
        if cursor is not None and _number(cursor) <= (0, 0):
            return []  # nothing is before the first of all; the store calls that a mistake
        async with store_errors():
            found = await self._client.xrevrange(self._key, f"({cursor}" if cursor else "+", "-", limit)
        return [Entry(entry, fields.pop("type"), fields) for entry, fields in found]

    async def reaches(self, cursor: str) -> bool:
        """False if entries after this id are gone already: whoever was there missed some."""
        async with store_errors():
            oldest = await self._client.xrange(self._key, "-", "+", 1)
        return not oldest or cursor == "0-0" or _number(cursor) >= _number(oldest[0][0])

    @asynccontextmanager
    async def following(self) -> AsyncIterator[asyncio.Event]:
        """An event that is set whenever there may be more; clear it before looking."""
        event = asyncio.Event()
        self._followers.add(event)
        self._someone.set()
        try:
            yield event
        finally:
            self._followers.discard(event)
            if not self._followers:
                self._someone.clear()

    async def run(self) -> None:
        """Serve until cancelled. Reads only while somebody follows."""
        while True:
            await self._someone.wait()
            try:
                cursor = await self.last_id()
                self._wake()
                while self._followers:
                    cursor = await self._read(cursor)
            except StoreUnavailable:
                await asyncio.sleep(_RETRY_S)

    async def _read(self, cursor: str) -> str:
        async with store_errors(patience_s=_BLOCK_MS / 1000 + 10):
            found = await self._client.xread({self._key: cursor}, block=_BLOCK_MS)
        if not found:
            return cursor
        self._wake()
        newest: str = found[0][1][-1][0]
        return newest

    def _wake(self) -> None:
        for event in self._followers:
            event.set()


def _number(entry: str) -> tuple[int, int]:
    moment, _, sequence = entry.partition("-")
    return int(moment), int(sequence or 0)
