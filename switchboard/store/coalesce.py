"""Many callers, one round trip: what arrives while a call is under way goes out together in the next one.

The client library, not the store, is what costs; one script call carries any number of requests.
An idle gateway adds no delay: the first caller's request leaves at once.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Generic, TypeVar

_CALLS_AT_ONCE = 2
"""While one call is being served, the next is already on its way: neither side ever waits for the other."""

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Coalescer(Generic[Item, Answer]):
    def __init__(self, call: Callable[[Sequence[Item]], Coroutine[Any, Any, list[Answer]]], at_most: int = 128) -> None:
        self._call = call
        self._at_most = at_most
        self._waiting: list[tuple[Item, asyncio.Future[Answer]]] = []
        self._sending = 0
        self._senders: set[asyncio.Task[None]] = set()

    async def submit(self, item: Item) -> Answer:
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._sending < _CALLS_AT_ONCE:
            self._sending += 1
            sender = asyncio.create_task(self._send())
            self._senders.add(sender)  # a task nobody holds may vanish
            sender.add_done_callback(self._senders.discard)
        return await future

    async def _send(self) -> None:
        try:
            while self._waiting:
                together, self._waiting = self._waiting[: self._at_most], self._waiting[self._at_most :]
                await self._send_together(together)
        finally:
            self._sending -= 1  # at once, not when the task is done: what is submitted in between needs a sender

    async def _send_together(self, together: list[tuple[Item, asyncio.Future[Answer]]]) -> None:
        try:
            answers = await self._call([item for item, _ in together])
        except BaseException as error:
            for _, future in together:
                if not future.done():
                    future.set_exception(error)
            if not isinstance(error, Exception):
                raise
        else:
            for (_, future), answer in zip(together, answers, strict=True):
                if not future.done():
                    future.set_result(answer)
