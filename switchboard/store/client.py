"""The connection to Valkey or Redis, and what its failures mean to everyone else."""

import asyncio
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from redis import exceptions as redis_errors
from redis.asyncio import BlockingConnectionPool
from redis.asyncio import Redis as _Redis
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff

from switchboard.domain.errors import StoreUnavailable

Redis = Any
"""A redis-py client. Its stubs call every answer `bytes | str`; ours decodes, and each noun says what it gets."""

_AWAY = ("MISCONF", "LOADING", "READONLY", "MASTERDOWN", "OOM", "CLUSTERDOWN", "NOREPLICAS", "BUSY ", "UNBLOCKED")
_GONE = (
    redis_errors.ConnectionError,
    redis_errors.TimeoutError,
    redis_errors.BusyLoadingError,
    redis_errors.ReadOnlyError,
    redis_errors.OutOfMemoryError,
    OSError,
)


def connect(url: str, connections: int = 32) -> Redis:
    """A client that never repeats a call by itself: a move whose answer was lost is not run twice blindly."""
    options: dict[str, Any] = {
        "decode_responses": True,
        # The time limit is in `store_errors`: redis-py's own swallows a cancellation on Python 3.11.
        "socket_timeout": None,
        "socket_connect_timeout": 5,
        "retry": Retry(NoBackoff(), 0),
    }
    if url.startswith("redis+sentinel://"):
        return _through_sentinel(url, options)
    pool = BlockingConnectionPool.from_url(url, max_connections=connections, timeout=10, **options)
    return _Redis(connection_pool=pool)


def _through_sentinel(url: str, options: dict[str, Any]) -> Redis:
    """`redis+sentinel://user:pass@host1:26379,host2:26379/service/0`"""
    parts = urlsplit(url)
    credentials, _, hosts = parts.netloc.rpartition("@")
    user, _, password = credentials.partition(":")
    service, _, database = parts.path.strip("/").partition("/")
    nodes = [(host.partition(":")[0], int(host.partition(":")[2] or 26379)) for host in hosts.split(",")]
    sentinel: Any = Sentinel(nodes, socket_timeout=5)  # type: ignore[no-untyped-call]
    return sentinel.master_for(
        service or "mymaster", db=int(database or 0), username=user or None, password=password or None, **options
    )


def is_away(error: BaseException) -> bool:
    """Whether an error means that the store can't serve right now, rather than that a call was wrong."""
    return isinstance(error, _GONE) or (isinstance(error, redis_errors.ResponseError) and str(error).startswith(_AWAY))


class store_errors:  # noqa: N801 - reads as a verb where it is used
    """Turns every way a store can be away (down, silent, loading, full disk, failing over) into one error."""

    __slots__ = ("_timeout",)

    def __init__(self, patience_s: float | None = 15.0) -> None:
        self._timeout = asyncio.timeout(patience_s)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError as late:
            raise StoreUnavailable from late
        if isinstance(error, _GONE) or (isinstance(error, redis_errors.ResponseError) and str(error).startswith(_AWAY)):
            raise StoreUnavailable from error
