"""A customer who must know: repeats a request, under the same Idempotency-Key, until there is an answer."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any, Self

import httpx

from tests.support.crash_fleet import API_KEY, BY_THE_DAY, BY_THE_MINUTE, FROM_ANYONE, TROUBLED, UNHURRIED, Number

_AT_ONCE = 12
_PATIENCE_S = 3.0
_GAPS_S = (0.05, 0.1, 0.2, 0.3)
_ASKED_TWICE = 0.1
_TOO_LATE = 10


@dataclass(frozen=True, slots=True)
class Order:
    """One request. Each of its messages is known by its reference, and has a recipient of its own."""

    key: str
    path: str
    body: Mapping[str, Any]
    messages: Mapping[str, str]  # reference -> recipient


class Client:
    """`answers` holds what an order was told; `refused` those whose account had its day's allowance already."""

    def __init__(self, gateways: Sequence[str], random: Random) -> None:
        self.answers: dict[str, str] = {}
        self.refused: set[str] = set()
        self.repeated = 0
        self._gateways = gateways
        self._random = random
        self._http = httpx.AsyncClient(timeout=_PATIENCE_S, trust_env=False, headers={"X-API-Key": API_KEY})

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def send_all(self, orders: Sequence[Order], over_s: float) -> None:
        """In their order, evenly spread; some are asked twice at the same time, as impatient people do."""
        started = time.monotonic()
        waiting = iter(enumerate(orders))

        async def one_after_another() -> None:
            for n, order in waiting:
                await asyncio.sleep(max(0.0, started + n * over_s / len(orders) - time.monotonic()))
                times = 2 if self._random.random() < _ASKED_TWICE else 1
                await asyncio.gather(*(self.send(order) for _ in range(times)))

        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(one_after_another())

    async def send(self, order: Order) -> None:
        """A second 200 must name the very same message."""
        response = await self._until_answered(
            "POST", order.path, json=order.body, headers={"Idempotency-Key": order.key}
        )
        answer = response.json()
        if response.status_code == httpx.codes.TOO_MANY_REQUESTS and answer["error"] == "DAILY_LIMIT_REACHED":
            if order.key not in self.answers:
                self.refused.add(order.key)
            return
        assert response.status_code == httpx.codes.OK, f"{order.key}: {response.status_code} {response.text}"
        told = answer.get("messageId") or answer["batchId"]
        assert self.answers.setdefault(order.key, told) == told, f"{order.key} was accepted twice"
        self.refused.discard(order.key)  # its other request came while there was allowance left

    async def get(self, path: str) -> dict[str, Any]:
        response = await self._until_answered("GET", path)
        assert response.status_code == httpx.codes.OK, f"{path}: {response.status_code} {response.text}"
        return dict(response.json())

    async def _until_answered(self, method: str, path: str, **request: Any) -> httpx.Response:
        for attempt in count():
            try:
                response = await self._http.request(method, self._random.choice(self._gateways) + path, **request)
                if response.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                    return response
            except httpx.TransportError:
                pass  # nobody knows whether it arrived
            self.repeated += 1
            await asyncio.sleep(_GAPS_S[min(attempt, len(_GAPS_S) - 1)])
        raise AssertionError("unreachable: it is asked for as long as it takes")


def orders(random: Random) -> list[Order]:
    """All 2,000 messages. Those of the tight accounts come first, in batches, while there is allowance left.

    A few more for accounts that will have spent their day by then: these may be refused, and must not half exist.
    """
    book = _OrderBook()
    tight = [
        book.batch(number.orders // len(number.sessions), session)
        for number in BY_THE_MINUTE + BY_THE_DAY
        for session in number.sessions
    ]
    rest: list[Order] = [book.single(None) for _ in range(FROM_ANYONE)]
    for number in UNHURRIED + TROUBLED:
        third = number.orders // 3
        rest += [book.batch(third // 2, number.sessions[0]), book.batch(third - third // 2, number.sessions[-1])]
        rest += [book.single(number) for _ in range(number.orders - third)]
    rest += [book.single(number) for number in BY_THE_DAY for _ in range(_TOO_LATE)]
    random.shuffle(rest)
    return tight + rest


class _OrderBook:
    def __init__(self) -> None:
        self._numbers = count()

    def single(self, number: Number | None) -> Order:
        n, reference, to = self._next()
        sender = {} if number is None else {"sessionId": number.sessions[n % len(number.sessions)]}
        body = {"to": to, "message": f"message {reference}", "priority": n % 3 + 1, "reference": reference, **sender}
        return Order(f"key {reference}", "/api/v1/send", body, {reference: to})

    def batch(self, size: int, session: str) -> Order:
        rows = [self._next() for _ in range(size)]
        messages = {reference: to for _, reference, to in rows}
        body = {
            "messages": [{"to": to, "text": f"message {ref}", "reference": ref} for ref, to in messages.items()],
            "sessionId": session,
            "spreadMinutes": rows[0][0] % 2 / 20,
        }
        return Order(f"key {rows[0][1]}", "/api/v1/send/batch", body, messages)

    def _next(self) -> tuple[int, str, str]:
        n = next(self._numbers)
        return n, f"order-{n}", f"97254{n:07}"
