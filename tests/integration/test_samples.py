"""The figures of the week: one sample a minute, thinned for a chart, taken by whoever leads."""

import asyncio
from itertools import pairwise

import pytest

from switchboard.domain.errors import StoreUnavailable
from switchboard.domain.figures import FleetFigures
from switchboard.orchestrator.overview import Overview
from switchboard.orchestrator.sampler import Sampler, minute, until_next
from switchboard.store import Store
from switchboard.store.samples import Sample
from tests.support.board import PHONES, POLICY, Board, running
from tests.support.driver import DAY, HOUR, MINUTE, NOON, UNHURRIED, Driver

pytestmark = pytest.mark.anyio


async def moments(store: Store, since: int, most: int = 1_000) -> list[int]:
    return [(sample.at - NOON) // MINUTE for sample in await store.samples.since(since, most)]


async def fill(store: Store, minutes: range) -> None:
    for n in minutes:
        await store.samples.add(NOON + n * MINUTE, {"waiting": n})


async def test_samples_come_back_oldest_first_with_their_figures(store: Store) -> None:
    assert await store.samples.since(0) == []
    await store.samples.add(NOON, {"waiting": 1, "sent": 2})
    await store.samples.add(NOON + MINUTE, {"waiting": 1, "sent": 2})
    assert await store.samples.since(NOON) == [
        Sample(NOON, {"waiting": 1, "sent": 2}),
        Sample(NOON + MINUTE, {"waiting": 1, "sent": 2}),
    ]
    assert await moments(store, NOON + 1) == [1]


@pytest.mark.parametrize("most", [2, 3, 7, 50, 99, 100, 1_000])
async def test_no_more_come_than_were_asked_for_spread_evenly_and_the_newest_is_among_them(
    store: Store, most: int
) -> None:
    await fill(store, range(100))
    found = await moments(store, NOON, most)
    assert len(found) <= most
    assert found[-1] == 99
    gaps = [later - earlier for earlier, later in pairwise(found[:-1])]
    assert len(set(gaps)) <= 1
    assert max(gaps, default=1) <= 100 // (most - 1) + 1


async def test_those_that_are_shown_stay_the_same_while_time_goes_on(store: Store) -> None:
    await fill(store, range(100))
    before = await moments(store, NOON, 20)
    await fill(store, range(100, 102))
    after = await moments(store, NOON + 2 * MINUTE, 20)
    assert set(before[:-1]) <= set(after)


async def test_a_week_is_kept(store: Store) -> None:
    for n in range(10):
        await store.samples.add(NOON + n * DAY, {})
    assert [(sample.at - NOON) // DAY for sample in await store.samples.since(0)] == [3, 4, 5, 6, 7, 8, 9]


async def test_a_minute_has_one_sample_and_a_clock_that_was_ahead_leaves_none(store: Store) -> None:
    await fill(store, range(3))
    await store.samples.add(NOON + 300 * DAY, {"waiting": 9})
    assert len(await store.samples.since(0)) == 1, "nobody can tell yet that this is not now"
    await fill(store, range(3))
    await store.samples.add(NOON + 2 * MINUTE, {"waiting": 7})
    assert [(sample.at, sample.figures["waiting"]) for sample in await store.samples.since(0)][-1] == (
        NOON + 2 * MINUTE, 7,
    )  # fmt: skip
    assert await moments(store, 0) == [0, 1, 2]


# Taking them.


async def test_a_sample_says_what_waits_and_what_is_connected(board: Board) -> None:
    await board.proxy()
    session = await board.linked(PHONES[1])
    await board.running()
    await board.store.accounts.override(PHONES[1], UNHURRIED, None, board.now)
    driver = Driver(board.store, board.client, board.prefix)
    driver.now = board.now
    for _ in range(3):
        await driver.send(session)
    await driver.send(None)
    await driver.send(session, due=board.now + HOUR)
    sent = await driver.attempt(session)
    await driver.confirm(sent.message_id, session=session)
    await board.store.accounts.pause(PHONES[1], None, board.now)
    board.orchestrator.fleet.leading = True
    await board.orchestrator.sampler.take()
    [sample] = await board.store.samples.since(0)
    assert sample.figures == {
        "waiting": 2, "scheduled": 1, "jobs": 1, "dead": 0, "connected": 1, "sessions": 2, "sent": 1,
    }  # fmt: skip
    assert sample.at % MINUTE == 0


async def test_only_who_leads_takes_samples(board: Board) -> None:
    await board.orchestrator.sampler.take()
    assert await board.store.samples.since(0) == []
    await Sampler(board.store, board.orchestrator.overview, board.clock).take()
    assert [sample.at for sample in await board.store.samples.since(0)] == [NOON]


async def test_one_is_taken_at_every_minute_and_a_store_that_was_away_is_asked_again(board: Board) -> None:
    asked: list[int] = []

    class Away(Overview):
        async def figures(self) -> FleetFigures:
            asked.append(board.now)
            board.now += MINUTE
            if len(asked) == 1:
                raise StoreUnavailable
            return await board.orchestrator.overview.figures()

    board.now = NOON - 5
    overview = Away(board.store, board.orchestrator.views, POLICY, board.clock)
    async with running(Sampler(board.store, overview, board.clock).run()), asyncio.timeout(10):
        while len(found := await moments(board.store, 0)) < 2:
            await asyncio.sleep(0.01)
    assert found[:2] == [1, 2]


def test_samples_are_taken_as_minutes_begin() -> None:
    assert until_next(NOON) == MINUTE
    assert until_next(NOON + 1) == MINUTE - 1
    assert until_next(NOON - 20) == 20
    assert minute(NOON - 20) == minute(NOON + 20) == NOON
