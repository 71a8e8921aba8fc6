"""The stream that keeps open pages current: what it tells, from when on, and when it ends."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from switchboard.dashboard.live import changes, topics_of
from switchboard.store.feed import Entry
from tests.support.board import Board, opened_board
from tests.support.dashboard import opened_desk

pytestmark = pytest.mark.anyio


@pytest.fixture
async def board(valkey_url: str, prefix: str, tmp_path: Path) -> AsyncIterator[Board]:
    async with opened_board(valkey_url, prefix, tmp_path) as board:
        running = asyncio.create_task(board.store.feed.run())
        yield board
        running.cancel()


class Stream:
    """Reads what a page would be told."""

    def __init__(self, board: Board, only: str | None = None, begin: str | None = None) -> None:
        self.may = True
        self._told = changes(board.store, board.stopping, self._still_may, only, begin)

    async def _still_may(self) -> bool:
        return self.may

    async def next(self) -> set[str]:
        async with asyncio.timeout(20):
            async for told in self._told:
                if "event: changed" in told:
                    return set(json.loads(told.partition("data: ")[2])["topics"])
        return set()

    async def hello(self) -> None:
        assert "event: hello" in await anext(self._told)


async def test_what_changes_is_named_not_told(board: Board) -> None:
    stream = Stream(board)
    await stream.hello()
    waiting = asyncio.create_task(stream.next())
    await asyncio.sleep(0)
    await board.proxy()
    session = await board.provision()
    topics = await waiting
    while f"session:{session}" not in topics:
        topics |= await stream.next()
    assert {"log", "proxies", "sessions", f"session:{session}"} <= topics


async def test_what_happened_since_the_page_was_made_is_told_at_once(board: Board) -> None:
    before = await board.store.feed.last_id()
    await board.proxy()
    stream = Stream(board, begin=before)
    await stream.hello()
    assert "proxies" in await stream.next()


async def test_one_topic_only(board: Board) -> None:
    await board.proxy()
    session = await board.provision()
    stream = Stream(board, only=f"session:{session}", begin="0-0")
    await stream.hello()
    assert await stream.next() == {f"session:{session}"}


async def test_it_ends_with_the_sign_in(board: Board) -> None:
    stream = Stream(board, begin="0-0")
    await stream.hello()
    stream.may = False
    assert await stream.next() == set()


async def test_nothing_goes_on_when_the_page_is_left(board: Board) -> None:
    stream = Stream(board)
    await stream.hello()
    before = asyncio.all_tasks()
    watching = asyncio.create_task(stream.next())
    while len(asyncio.all_tasks() - before) < 3:  # it waits, for news and for the end
        await asyncio.sleep(0.01)
    watching.cancel()  # as the server does when a browser is gone
    await asyncio.wait([watching])
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_it_ends_when_we_stop(board: Board) -> None:
    stream = Stream(board)
    await stream.hello()
    waiting = asyncio.create_task(stream.next())
    board.stopping.set()
    assert await waiting == set()


async def test_nobody_listens_without_a_sign_in(board: Board) -> None:
    async with opened_desk(board) as desk:
        desk.http.cookies.clear()
        answer = await desk.http.get("/live", headers={"Accept": "text/event-stream"})
        assert answer.status_code == 401


@pytest.mark.parametrize("since", ["99999999999999999999999999", "-1", "x"])
async def test_a_moment_that_can_be_none_is_refused(board: Board, since: str) -> None:
    async with opened_desk(board) as desk:
        assert (await desk.http.get(f"/live?since={since}")).status_code == 400


@pytest.mark.parametrize(
    ("kind", "fields", "topics"),
    [
        ("session.connected", {"sessionId": "w", "account": "97"}, {"log", "sessions", "session:w", "account:97"}),
        ("message.read", {"messageId": "m", "sessionId": ""}, {"log", "messages", "message:m"}),
        ("account.burst", {"account": "97"}, {"log", "sessions", "account:97"}),
        ("inventory.low", {}, {"log", "proxies"}),
        ("proxy.bad", {"proxyId": "proxy_1"}, {"log", "proxies", "proxy:proxy_1"}),
    ],
)
def test_what_an_event_is_about(kind: str, fields: dict[str, str], topics: set[str]) -> None:
    assert topics_of(Entry("1-0", kind, fields)) == topics
