"""Being told at once that there is something to do, over one subscription for the whole process.

A wake-up is only a hint: whoever is woken looks at the store. A lost one is made good when the
subscription comes back, since then everyone is woken.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import structlog

from switchboard.domain.errors import StoreUnavailable
from switchboard.store.client import Redis, store_errors
from switchboard.store.keys import Keys

_log = structlog.get_logger(__name__)
_SILENCE_S = 10.0
_RETRY_S = (0.05, 0.1, 0.2, 0.5, 1.0)


class Wakeups:
    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._channel = keys("wake")
        self._listeners: dict[str, set[asyncio.Event]] = defaultdict(set)

    @asynccontextmanager
    async def listen(self, *topics: str) -> AsyncIterator[asyncio.Event]:
        """An event that is set whenever one of the topics is woken; clear it before looking."""
        event = asyncio.Event()
        for topic in topics:
            self._listeners[topic].add(event)
        try:
            yield event
        finally:
            for topic in topics:
                self._listeners[topic].discard(event)
                if not self._listeners[topic]:
                    del self._listeners[topic]

    async def run(self) -> None:
        """Serve until cancelled; reconnects for as long as the store is away."""
        failures = 0
        while True:
            try:
                async with store_errors(patience_s=None), self._client.pubsub() as subscription:
                    await subscription.subscribe(self._channel)
                    async for message in _messages(subscription):
                        failures = 0
                        if message["type"] == "message":
                            self._wake(message["data"])
                        elif message["type"] == "subscribe":
                            self._wake_all()
            except StoreUnavailable:
                if failures == 0:
                    _log.warning("store.subscription_lost")
                await asyncio.sleep(_RETRY_S[min(failures, len(_RETRY_S) - 1)])
                failures += 1

    def _wake(self, topic: str) -> None:
        for event in self._listeners.get(topic, ()):
            event.set()

    def _wake_all(self) -> None:
        for events in self._listeners.values():
            for event in events:
                event.set()


async def _messages(subscription: Any) -> AsyncIterator[dict[str, Any]]:
    """All that arrives. A connection that stays silent even after a ping has died without a word."""
    silent = False
    while True:
        message = await subscription.get_message(timeout=_SILENCE_S)
        if message is not None:
            silent = False
            yield message
        elif silent:
            raise StoreUnavailable
        else:
            silent = True
            await subscription.ping()
