"""The live log: what it shows of the event stream, what it never shows, and how new rows come."""

import asyncio
import csv
import io
import json
import re
from typing import Any
from urllib.parse import parse_qsl

import httpx
import pytest

from switchboard.dashboard.pages.log_rows import LogRow
from switchboard.dashboard.pages.log_stream import new_rows
from switchboard.store.feed import Entry
from tests.support.board import PHONES, Board, running
from tests.support.dashboard import Desk, dashboard_app
from tests.support.gateway import OWN_KEY
from tests.support.serving import serving

pytestmark = pytest.mark.anyio

SECRET = "zanzibar-is-what-they-wrote"


async def tell(board: Board, kind: str, **fields: object) -> str:
    given: dict[Any, Any] = {"type": kind, "at": str(board.now)} | {name: str(value) for name, value in fields.items()}
    return str(await board.client.xadd(board.prefix + "events", given))


async def some(board: Board) -> list[str]:
    """One of each kind; the last one is new."""
    return [
        await tell(board, "session.connected", sessionId="worker_1", account=PHONES[1]),
        await tell(board, "proxy.bad", proxyId="proxy_1", reason="unreachable"),
        await tell(board, "message.sent", sessionId="worker_1", account=PHONES[1], messageId="ab" * 9),
        await tell(board, "message.dead", sessionId="worker_2", account=PHONES[2], messageId="cd" * 9),
        await tell(board, "message.received", sessionId="worker_2", account=PHONES[2], text=SECRET),
        await tell(board, "account.paused", account=PHONES[2], reason="by_request"),
    ]


def shown(html: str) -> list[str]:
    return re.findall(r'<tr id="e-([0-9-]+)"', html)


async def test_nothing_has_happened_yet(desk: Desk) -> None:
    page = await desk.page("/log")
    assert "Nothing has happened yet" in page.text
    assert 'data-log-source="/log/stream?after=0-0"' in page.html


async def test_the_newest_is_on_top_and_each_is_a_sentence(board: Board, desk: Desk) -> None:
    told = await some(board)
    page = await desk.page("/log")
    assert shown(page.html) == told[::-1]
    assert "A message was sent" in page.text
    assert "proxy_1 does not work: can't be reached: check its address" in page.text
    assert "Connected as" in page.text
    assert "+972 50-000-0001" in page.text
    assert {"/sessions/worker_1", f"/messages/{'ab' * 9}"} <= set(page.links)
    assert f"after={told[-1]}" in page.html, "the stream goes on where the page ends"


async def test_what_people_wrote_is_never_shown(board: Board, desk: Desk) -> None:
    await some(board)
    for path in ("/log", "/log/download", "/log/download?format=ndjson"):
        answer = await desk.page(path)
        assert "message.received" in answer.html
        assert SECRET not in answer.html
    assert shown((await desk.page(f"/log?q={SECRET}")).html) == []


@pytest.mark.parametrize(
    ("query", "places"),
    [
        ("kind=sessions", [5, 0]),
        ("kind=messages", [4, 3, 2]),
        ("kind=proxies", [1]),
        ("kind=trouble", [3, 1]),
        ("session=worker_2", [4, 3]),
        ("session=worker_2&kind=trouble", [3]),
        ("q=DOES+not+proxy_1", [1]),
        (f"q={'ab' * 9}", [2]),
        (f"q={PHONES[2]}", [5, 4, 3]),
        ("q=nowhere", []),
    ],
)
async def test_only_what_is_asked_for(board: Board, desk: Desk, query: str, places: list[int]) -> None:
    told = await some(board)
    page = await desk.page(f"/log?{query}")
    assert shown(page.html) == [told[place] for place in places]
    [source] = [one["data-log-source"] for one in page.attributes if "data-log-source" in one]
    assert set(parse_qsl(query)) < set(parse_qsl((source or "").partition("?")[2])), "its stream is asked for the same"
    assert ("Nothing like this" in page.text) == ("Nothing has happened yet" not in page.text)


async def test_the_search_of_the_page_finds_what_ours_found(board: Board, desk: Desk) -> None:
    """It looks at the text of a row: what we search in must be in it."""
    await some(board)
    page = await desk.page(f"/log?q={PHONES[1]}+message.sent")
    [row] = re.findall(r"<tr id=.*?</tr>", page.html, re.DOTALL)
    text = re.sub(r"<[^>]*>", "", row)
    assert PHONES[1] in text
    assert "message.sent" in text


async def test_older_ones_page_by_page(board: Board, desk: Desk) -> None:
    told = [await tell(board, "session.starting", sessionId="worker_1", n=n) for n in range(203)]
    page = await desk.page("/log")
    assert shown(page.html) == told[:2:-1]
    [more] = [link for link in page.links if "before=" in link]
    older = await desk.page(more)
    assert shown(older.html) == told[2::-1]
    assert "data-log-source" not in older.html, "an older page stands still"


async def test_the_search_is_folded_away_on_a_phone_unless_it_is_used(desk: Desk) -> None:
    for query, used in (("", False), ("?kind=trouble", False), ("?q=x", True), ("?session=worker_1", True)):
        page = await desk.page(f"/log{query}")
        [switch] = [one for one in page.attributes if one.get("id") == "show-filters"]
        assert ("checked" in switch) == used
        assert "show-filters" in [one.get("for") for one in page.attributes if one["tag"] == "label"]


async def test_before_the_first_of_all_there_is_nothing(desk: Desk) -> None:
    await desk.page("/log?before=0-0")


@pytest.mark.parametrize("query", ["kind=all", "session=a%20b", "before=x", "after=1", "q=" + "x" * 101])
async def test_what_can_not_be_asked(desk: Desk, query: str) -> None:
    await desk.page(f"/log/stream?{query}" if query.startswith("after") else f"/log?{query}", status=400)


async def test_an_event_of_another_program_is_shown_as_it_is(board: Board, desk: Desk) -> None:
    await tell(board, "other.<b>thing</b>", sessionId="worker_1")
    page = await desk.page("/log")
    assert "other.<b>thing</b>" in page.text
    assert "<b>thing" not in page.html


async def test_a_file_for_a_spreadsheet(board: Board, desk: Desk) -> None:
    told = await some(board)
    await tell(board, "=cmd()", sessionId="worker_1")
    answer = await desk.http.get("/log/download?session=worker_1")
    assert answer.headers["content-type"].startswith("text/csv")
    assert "attachment" in answer.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.text.removeprefix("\ufeff"))))
    assert [row["id"] for row in rows[:2]] == [told[0], told[2]], "oldest first"
    assert rows[0]["session"] == "worker_1"
    assert rows[0]["time"] == "2026-06-09T12:00:00+00:00"
    assert rows[2]["type"] == "'=cmd()", "no formula"


async def test_a_file_for_a_program(board: Board, desk: Desk) -> None:
    told = await some(board)
    answer = await desk.http.get("/log/download?format=ndjson&kind=proxies")
    [line] = map(json.loads, answer.text.splitlines())
    assert line == {
        "id": told[1],
        "type": "proxy.bad",
        "at": "2026-06-09T12:00:00+00:00",
        "proxyId": "proxy_1",
        "reason": "unreachable",
    }


async def test_in_hebrew(board: Board, desk: Desk) -> None:
    await some(board)
    page = await desk.page("/log", language="he")
    assert 'dir="rtl"' in page.html
    assert "הודעה נשלחה" in page.text


class TestTheStream:
    async def test_new_rows_come_as_rows_of_the_table(self, board: Board) -> None:
        """What was missed comes first."""
        told = await some(board)
        async with (
            running(board.store.feed.run()),
            serving(dashboard_app(board)) as served,
            httpx.AsyncClient(base_url=served.url, timeout=30, trust_env=False) as http,
        ):
            await http.post("/sign-in", data={"secret": OWN_KEY}, headers={"Origin": served.url})
            async with http.stream("GET", f"/log/stream?kind=trouble&after={told[0]}") as answer:
                assert answer.headers["content-type"].startswith("text/event-stream")
                lines = answer.aiter_lines()
                seen = [await anext(lines) for _ in range(20)]
                assert [line for line in seen if line.startswith("id:")] == [f"id: {told[1]}", f"id: {told[3]}"]
                assert f'data: <tr id="e-{told[1]}" class="trouble">' in seen
                new = await tell(board, "session.failed", sessionId="worker_3", reason="<i>")
                async for line in lines:
                    if line == f"id: {new}":
                        break
                row = [await anext(lines) for _ in range(8)]
                assert any("&lt;i&gt;" in line for line in row)
            board.stopping.set()

    async def test_one_after_the_other_until_the_sign_in_ends(self, board: Board) -> None:
        told = await some(board)
        signed_in = True

        async def still_may() -> bool:
            return signed_in

        def row_of(entry: Entry) -> LogRow | None:
            wanted = entry.type != "proxy.bad"
            return LogRow(entry.id, entry.type, "", "", "", "", "", trouble=False) if wanted else None

        async with running(board.store.feed.run()):
            stream = new_rows(
                board.store.feed, told[0], row_of, lambda row: f"<tr>\n{row.type}</tr>", still_may, board.stopping
            )
            assert await anext(stream) == "retry: 1000\n\n"
            first = f"id: {told[2]}\nevent: row\ndata: <tr>\ndata: message.sent</tr>\n\n"
            assert await anext(stream) == first
            for expected in told[3:]:
                assert (await anext(stream)).startswith(f"id: {expected}\n")
            waiting = asyncio.ensure_future(anext(stream))
            new = await tell(board, "session.starting", sessionId="worker_3")
            assert (await waiting).startswith(f"id: {new}\nevent: row\n")
            signed_in = False
            await tell(board, "session.starting", sessionId="worker_4")
            with pytest.raises(StopAsyncIteration):
                await anext(stream)

    async def test_nobody_who_is_not_signed_in_gets_one(self, desk: Desk) -> None:
        desk.http.cookies.clear()
        answer = await desk.http.get("/log/stream", headers={"Accept": "text/event-stream"})
        assert answer.status_code == 401
