"""The live stream: nothing is lost or told twice to who comes back, and nobody sees what is not theirs."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.board import PHONES, Board, opened_board, refused, running
from tests.support.gateway import OWN_KEY
from tests.support.serving import until
from tests.support.valkey import start_valkey

pytestmark = pytest.mark.anyio

EVENTS = "/api/events"


@dataclass(frozen=True, slots=True)
class Told:
    id: str | None
    type: str
    data: dict[str, Any]


@dataclass
class Follower:
    """Reads server-sent events as a browser does."""

    lines: AsyncIterator[str]
    raw: list[str] = field(default_factory=list)

    async def block(self) -> dict[str, str] | None:
        """The fields of the next block, comments under ''; None at the end."""
        found: dict[str, str] = {}
        async for line in self.lines:
            self.raw.append(line)
            if not line:
                return found
            name, _, value = line.partition(":")
            found[name] = value.removeprefix(" ")
        return None

    async def next(self) -> Told:
        while True:
            block = await asyncio.wait_for(self.block(), 10)
            assert block is not None, "the stream ended"
            if "event" in block:
                return Told(block.get("id"), block["event"], json.loads(block["data"]))

    async def several(self, count: int) -> list[Told]:
        return [await self.next() for _ in range(count)]


@asynccontextmanager
async def follow(board: Board, last: str | None = None, key: str = OWN_KEY, **params: str) -> AsyncIterator[Follower]:
    headers = {"X-API-Key": key} | ({"Last-Event-ID": last} if last else {})
    async with board.http.stream("GET", EVENTS, headers=headers, params=params) as response:
        assert response.status_code == 200, await response.aread()
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["cache-control"] == "no-store"
        follower = Follower(aiter(response.aiter_lines()))
        first = await follower.block()  # from here on it follows
        assert first is not None
        assert first["retry"] == "2000"
        yield follower


@pytest.fixture
async def board(valkey_url: str, prefix: str, tmp_path: Path) -> AsyncIterator[Board]:
    async with opened_board(valkey_url, prefix, tmp_path) as board, running(board.store.feed.run()):
        await board.proxy()
        yield board


async def stream(board: Board) -> list[tuple[str, str]]:
    found: Any = await board.client.xrange(board.prefix + "events")
    return [(entry, fields["type"]) for entry, fields in found]


async def test_what_happens_is_told_as_it_happens(board: Board) -> None:
    async with follow(board) as follower:
        session = await board.provision()
        told = await follower.next()
        assert told.type == "session.starting"
        assert told.data == {
            "sessionId": session, "at": board.now, "account": "", "reason": "", "proxyId": "proxy_1",
        }  # fmt: skip
        assert told.id == (await stream(board))[-1][0]
        await board.up()
        await board.qr(session)
        assert [one.type for one in await follower.several(2)] == ["session.qr_ready", "session.qr"]


async def test_who_comes_back_goes_on_where_they_were(board: Board) -> None:
    async with follow(board) as follower:
        await board.provision()
        before = [await follower.next()]
    for _ in range(3):
        await board.provision()
    async with follow(board, last=before[0].id) as follower:
        missed = await follower.several(3)
        await board.proxy()
        missed.append(await follower.next())
    everything = await stream(board)
    start = everything.index((str(before[0].id), before[0].type))
    assert [(one.id, one.type) for one in before + missed] == everything[start : start + 5]
    async with follow(board, since=str(before[0].id)) as follower:
        assert [one.id for one in await follower.several(3)] == [one.id for one in missed[:3]]


async def test_a_long_absence_is_made_good_page_by_page(board: Board) -> None:
    for n in range(500):
        await board.store.proxies.note_places(n % 2 * 5, 8, 2, board.now + n)
    everything = await stream(board)
    assert len(everything) > 500
    async with follow(board, last=everything[0][0]) as follower:
        assert [(one.id, one.type) for one in await follower.several(len(everything) - 1)] == everything[1:]


async def test_that_older_events_are_gone_is_told(board: Board) -> None:
    last = (await stream(board))[0][0]
    await board.provision()
    await board.provision()
    await board.client.xtrim(board.prefix + "events", maxlen=1, approximate=False)
    async with follow(board, last=last) as follower:
        gap, newest = await follower.several(2)
    assert (gap.type, gap.id) == ("gap", None)
    assert gap.data == {"message": "Older events are gone; load the current state anew."}
    assert newest.type == "session.starting"
    async with follow(board, last=newest.id) as follower:
        await board.proxy()
        assert (await follower.next()).type == "proxy.added"


async def test_only_what_was_asked_for_is_told(board: Board) -> None:
    async with AsyncExitStack() as stack:
        by_name = await stack.enter_async_context(follow(board, types="proxy.added,session.qr_ready"))
        by_stem = await stack.enter_async_context(follow(board, types="session.*"))
        first = await board.running()
        second = await board.provision()
        await board.proxy()
        await board.qr(first)
        by_session = await stack.enter_async_context(follow(board, last="0-1", sessionId=second))
        assert [one.type for one in await by_name.several(2)] == ["proxy.added", "session.qr_ready"]
        stems = [one.type for one in await by_stem.several(4)]
        assert stems == ["session.starting", "session.starting", "session.qr_ready", "session.qr"]
        told = await by_session.several(2)  # the first says that 0-1 is before all that is known
        assert [(one.type, one.data.get("sessionId")) for one in told] == [
            ("gap", None),
            ("session.starting", second),
        ]


async def test_a_key_that_is_bound_to_sessions_sees_only_theirs(board: Board) -> None:
    mine, other = await board.running(), await board.provision()
    key = await board.key("read", sessions=(mine,))
    async with follow(board, key=key) as follower:
        await board.proxy()
        await board.command(other, "stop")
        await board.qr(mine)
        told = await follower.several(2)
    assert [(one.type, one.data["sessionId"]) for one in told] == [("session.qr_ready", mine), ("session.qr", mine)]
    assert other not in "".join(follower.raw)
    refused(await board.ask("GET", EVENTS, params={"sessionId": other}, key=key), 403, "FORBIDDEN")
    sender = await board.key("send")
    refused(await board.ask("GET", EVENTS, key=sender), 403, "FORBIDDEN")
    refused(await board.ask("GET", EVENTS, key=None), 401, "UNAUTHORIZED")


async def test_what_people_write_is_never_shown(board: Board) -> None:
    session = await board.linked()
    async with follow(board) as follower:
        data = {"from": PHONES[5], "whatsappId": "3A", "text": "zanzibar", "timestamp": board.now}
        await board.tell(session, "MESSAGE_RECEIVED", data)
        told = await follower.next()
    assert told.type == "message.received"
    assert told.data["from"] == PHONES[5]
    assert "text" not in told.data
    assert "zanzibar" not in "".join(follower.raw)


@pytest.mark.parametrize("given", [{"headers": {"Last-Event-ID": "x"}}, {"params": {"since": "1"}}])
async def test_a_place_that_can_not_be_one_is_refused(board: Board, given: dict[str, Any]) -> None:
    refused(await board.ask("GET", EVENTS, **given), 400, "INVALID_REQUEST")


async def test_it_ends_when_we_stop(board: Board) -> None:
    async with follow(board) as follower:
        board.stopping.set()
        assert await asyncio.wait_for(follower.block(), 10) is None


async def reads(board: Board) -> int:
    return sum("xread" in str(one["cmd"]) for one in await board.client.client_list())


async def test_any_number_of_followers_share_one_reader_and_none_means_none(board: Board) -> None:
    async with AsyncExitStack() as stack:
        followers = [await stack.enter_async_context(follow(board)) for _ in range(12)]

        async def reading() -> bool:
            return await reads(board) == 1

        await until(reading)
        await board.provision()
        told = [await follower.next() for follower in followers]
        assert len({one.id for one in told}) == 1
        assert await reads(board) <= 1


async def test_a_follower_survives_a_restart_of_the_store(prefix: str, tmp_path: Path) -> None:
    """Its process ends and another takes up its data: whoever follows sees no event twice and misses none."""
    store = tmp_path / "v"
    store.mkdir()
    options = ("--appendonly", "yes", "--appendfsync", "always")
    server = start_valkey(store, *options)
    try:
        async with opened_board(f"unix://{store}/s", prefix, tmp_path) as board, running(board.store.feed.run()):
            await board.proxy()
            async with follow(board) as follower:
                await board.provision()
                first = await follower.next()
                server.kill()
                server.wait()
                refused(await board.ask("GET", "/api/sessions"), 503, "STORE_UNAVAILABLE")
                server = start_valkey(store, *options)
                await board.provision()
                second = await follower.next()
            assert [first.data["sessionId"], second.data["sessionId"]] == ["worker_1", "worker_2"]
            assert [one for one, kind in await stream(board) if kind == first.type] == [first.id, second.id]
    finally:
        server.terminate()
        server.wait()
