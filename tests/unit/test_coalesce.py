"""Many callers, one round trip."""

import asyncio
from collections.abc import Sequence

import pytest

from switchboard.store import coalesce
from switchboard.store.coalesce import Coalescer

pytestmark = pytest.mark.anyio


class Calls:
    """Doubles numbers, and remembers which were asked together."""

    def __init__(self) -> None:
        self.together: list[list[int]] = []

    async def double(self, numbers: Sequence[int]) -> list[int]:
        self.together.append(list(numbers))
        await asyncio.sleep(0)
        if 13 in numbers:
            raise ValueError("thirteen")
        return [2 * number for number in numbers]


@pytest.mark.parametrize("calls_at_once", [1, 2])
async def test_each_caller_gets_its_own_answer_however_they_come(
    calls_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Callers that come back at once, again and again: none is ever left without a sender."""
    monkeypatch.setattr(coalesce, "_CALLS_AT_ONCE", calls_at_once)
    calls = Calls()
    coalescer = Coalescer[int, int](calls.double)

    async def caller(number: int) -> None:
        for turn in range(200):
            assert await coalescer.submit(1000 * number + turn) == 2 * (1000 * number + turn)

    async with asyncio.timeout(10):
        await asyncio.gather(*(caller(number) for number in range(1, 8)))
    assert len(calls.together) < 7 * 200


async def test_what_comes_while_calls_are_under_way_goes_out_together() -> None:
    calls = Calls()
    coalescer = Coalescer[int, int](calls.double, at_most=4)
    answers = await asyncio.gather(*(coalescer.submit(number) for number in range(10)))
    assert answers == [2 * number for number in range(10)]
    assert max(map(len, calls.together)) == 4


async def test_an_error_reaches_all_who_were_asked_for_and_nobody_else() -> None:
    calls = Calls()
    coalescer = Coalescer[int, int](calls.double)
    with pytest.raises(ValueError, match="thirteen"):
        await coalescer.submit(13)
    assert await coalescer.submit(2) == 4


async def test_a_caller_that_gives_up_does_not_disturb_the_others() -> None:
    coalescer = Coalescer[int, int](Calls().double)
    impatient = asyncio.create_task(coalescer.submit(1))
    patient = asyncio.create_task(coalescer.submit(2))
    await asyncio.sleep(0)
    impatient.cancel()
    assert await patient == 4
