"""The link for the phone's owner: it shows one code to whoever has it, tells nothing else, and ends in time."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from switchboard.dashboard.access.scan_links import ScanLinks
from switchboard.dashboard.access.signing import Signer
from tests.support.board import PHONES, SCAN_MS, Board, opened_board, running
from tests.support.dashboard import SECRET, Shown, dashboard_app, opened_desk
from tests.support.serving import serving

pytestmark = pytest.mark.anyio
MINE = PHONES[1]
LIFE = 3_600_000
HTML = {"Accept": "text/html", "Accept-Language": "en"}
HTMX = HTML | {"HX-Request": "true"}


@pytest.fixture
async def board(valkey_url: str, prefix: str, tmp_path: Path) -> AsyncIterator[Board]:
    async with opened_board(valkey_url, prefix, tmp_path) as board:
        await board.proxy()
        yield board


@pytest.fixture
async def stranger(board: Board) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(dashboard_app(board), client=("192.0.2.9", 50_000))
    async with httpx.AsyncClient(transport=transport, base_url="http://switchboard.test") as http:
        yield http


async def waiting(board: Board) -> str:
    session = await board.running(name="Secret Project")
    await board.qr(session)
    return session


async def link(board: Board, session: str) -> str:
    links = ScanLinks(Signer(SECRET), board.clock, LIFE)
    return f"/scan/{links.make(await board.look(session)).token}"


async def test_whoever_has_the_link_sees_the_code_and_the_steps(board: Board, stranger: httpx.AsyncClient) -> None:
    path = await link(board, await waiting(board))
    page = Shown(await stranger.get(path, headers=HTML))
    assert page.status == 200
    assert "Scan this code with your phone" in page.text
    assert "Linked devices" in page.text
    assert "<svg viewBox" in page.html
    assert f'data-live="{path}/live"' in page.html


async def test_it_tells_nothing_else(board: Board, stranger: httpx.AsyncClient) -> None:
    session = await waiting(board)
    other = await board.linked(MINE)
    page = Shown(await stranger.get(await link(board, session), headers=HTML))
    for secret in ("Secret Project", "proxy_1", MINE, other, "2@qr", "csrf", 'id="menu"', "/sessions"):
        assert secret not in page.html, secret
    assert not page.actions
    assert page.links == ["?language=he"]


async def test_it_is_kept_from_others(board: Board, stranger: httpx.AsyncClient) -> None:
    path = await link(board, await waiting(board))
    for address in (path, "/scan/nonsense"):
        headers = (await stranger.get(address, headers=HTML)).headers
        assert headers["referrer-policy"] == "no-referrer"
        assert "noindex" in headers["x-robots-tag"]
        assert headers["cache-control"] == "no-store"
        assert "set-cookie" not in headers


async def test_an_open_page_says_that_it_worked_and_a_later_one_only_that_it_is_over(
    board: Board, stranger: httpx.AsyncClient
) -> None:
    session = await waiting(board)
    path = await link(board, session)
    board.now += 1
    await board.connected(session, MINE)
    waited = Shown(await stranger.get(path, headers=HTMX))
    assert waited.status == 200
    assert "Your phone is linked" in waited.text
    assert "data-on" not in waited.html.partition('id="scan"')[2], "it does not ask again"
    later = Shown(await stranger.get(path, headers=HTML))
    assert later.status == 410
    assert "This link was used already" in later.text
    assert MINE not in waited.html + later.html
    assert "<svg viewBox" not in later.html.partition("<main")[2].replace("icon-svg", "")


async def test_too_old_is_gone(board: Board, stranger: httpx.AsyncClient) -> None:
    session = await waiting(board)
    path = await link(board, session)
    board.now += LIFE - 1
    await board.qr(session)
    assert (await stranger.get(path, headers=HTML)).status_code == 200
    board.now += 1
    await board.qr(session)
    page = Shown(await stranger.get(path, headers=HTML))
    assert page.status == 410
    assert "no longer good" in page.text
    assert 'id="scan"' in page.html, "it takes the place of the code on an open page"
    assert 'class="qr"' not in page.html


@pytest.mark.parametrize("token", ["nonsense", "a.b", "%F0%9F%98%80", "a."])
async def test_what_is_no_link_of_ours_looks_like_an_old_one(stranger: httpx.AsyncClient, token: str) -> None:
    page = Shown(await stranger.get(f"/scan/{token}", headers=HTML))
    assert page.status == 410
    assert "Ask whoever sent it" in page.text


async def test_a_changed_link_is_none(board: Board, stranger: httpx.AsyncClient) -> None:
    path = await link(board, await waiting(board))
    changed = path[:-1] + ("A" if path[-1] != "A" else "B")
    assert (await stranger.get(changed, headers=HTML)).status_code == 410
    forged = ScanLinks(Signer("another secret"), board.clock, LIFE).make(await board.look("worker_1"))
    assert (await stranger.get(f"/scan/{forged.token}", headers=HTML)).status_code == 410


async def test_a_session_that_was_deleted_takes_its_links_with_it(board: Board, stranger: httpx.AsyncClient) -> None:
    session = await waiting(board)
    path = await link(board, session)
    await board.ask("DELETE", f"/api/sessions/{session}")
    page = Shown(await stranger.get(path, headers=HTML))
    assert "No code can be shown right now" in page.text, "while it is being deleted"
    await board.up()
    assert await board.store.sessions.get(session) is None
    assert (await stranger.get(path, headers=HTML)).status_code == 410
    assert (await stranger.get(f"{path}/live")).status_code == 410


async def test_a_later_session_of_the_same_name_is_another_one(board: Board, stranger: httpx.AsyncClient) -> None:
    session = await waiting(board)
    path = await link(board, session)
    await board.client.hset(f"{board.prefix}session:{session}", "createdAt", str(board.now + 5))
    assert (await stranger.get(path, headers=HTML)).status_code == 410


async def test_without_a_code_it_says_whether_to_wait_or_to_ask(board: Board, stranger: httpx.AsyncClient) -> None:
    session = await waiting(board)
    path = await link(board, session)
    board.now += 60_001
    assert "on its way" in Shown(await stranger.get(path, headers=HTML)).text
    await board.up(SCAN_MS)
    page = Shown(await stranger.get(path, headers=HTML))
    assert page.status == 200
    assert "to start again" in page.text
    assert "data-on" in page.html, "it goes on by itself when it was started again"


async def test_in_the_language_one_chooses(board: Board, stranger: httpx.AsyncClient) -> None:
    path = await link(board, await waiting(board))
    answer = await stranger.get(f"{path}?language=he", headers=HTML)
    assert (answer.status_code, answer.headers["location"]) == (303, path)
    page = Shown(await stranger.get(path, headers=HTML))
    assert 'dir="rtl"' in page.html
    assert "סרקו את הקוד" in page.text
    assert (await stranger.get(f"{path}?language=xx", headers=HTML)).status_code == 200


async def test_the_demos_phone_is_not_offered_here(board: Board) -> None:
    class Phone:
        async def scan(self, qr: str) -> str:
            raise AssertionError(qr)

    path = await link(board, await waiting(board))
    async with opened_desk(board, phone=Phone()) as desk:
        assert "demo" not in (await desk.page(path)).html


async def test_whatever_goes_wrong_the_link_is_not_logged(
    board: Board, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = await link(board, await waiting(board))
    transport = httpx.ASGITransport(dashboard_app(board), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://switchboard.test") as http:
        monkeypatch.setattr(ScanLinks, "read", None)
        assert (await http.get(path, headers=HTML)).status_code == 500
    said = capsys.readouterr().out
    assert "http.unexpected" in said
    assert "/scan/{token}" in said
    assert path.rpartition("/")[2] not in said


# As it happens.


class Lines:
    def __init__(self, response: httpx.Response) -> None:
        self._lines = aiter(response.aiter_lines())

    async def event(self) -> tuple[str, str] | None:
        """The next one with its data; None at the end. Empty words that only keep the line open are passed over."""
        kind = ""
        async for line in self._lines:
            name, _, value = line.partition(": ")
            if name == "event":
                kind = value
            elif name == "data":
                return kind, value
        return None


@asynccontextmanager
async def followed(board: Board, path: str) -> AsyncIterator[Lines]:
    async with (
        running(board.store.feed.run()),
        serving(dashboard_app(board)) as served,
        httpx.AsyncClient(base_url=served.url, timeout=20, trust_env=False) as http,
        http.stream("GET", f"{path}/live") as response,
    ):
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["referrer-policy"] == "no-referrer"
        lines = Lines(response)
        assert await lines.event() == ("hello", "{}")
        yield lines


async def test_only_its_own_session_is_told_of(board: Board) -> None:
    session = await waiting(board)
    changed = ("changed", json.dumps({"topics": [f"session:{session}"]}))
    async with asyncio.timeout(20), followed(board, await link(board, session)) as lines:
        other = await board.provision()
        await board.qr(session, "2@another")
        assert await lines.event() == changed
        assert other != session


async def test_the_scan_is_told_last_and_ends_the_stream(board: Board) -> None:
    session = await waiting(board)
    path = await link(board, session)
    async with asyncio.timeout(20), followed(board, path) as lines:
        board.now += 1
        await board.connected(session, MINE)
        assert await lines.event() == ("changed", json.dumps({"topics": [f"session:{session}"]}))
        rest = [event async for event in _rest(lines)]
        assert all(kind == "changed" for kind, _ in rest)


async def test_a_link_that_grows_too_old_ends_its_stream(board: Board) -> None:
    session = await waiting(board)
    async with asyncio.timeout(20), followed(board, await link(board, session)) as lines:
        board.now += LIFE
        await board.qr(session)  # something happens, so that it looks
        told = [event async for event in _rest(lines)]
        assert told, "so that the page looks once more and says that it is over"


async def _rest(lines: Lines) -> AsyncIterator[tuple[str, str]]:
    while (event := await lines.event()) is not None:
        yield event


async def test_a_link_that_is_over_has_no_stream(board: Board, stranger: httpx.AsyncClient) -> None:
    session = await waiting(board)
    path = await link(board, session)
    board.now += 1
    await board.connected(session, MINE)
    assert (await stranger.get(f"{path}/live")).status_code == 410
    assert (await stranger.get("/scan/nonsense/live")).status_code == 404
    board.now += LIFE
    assert (await stranger.get(f"{path}/live")).status_code == 410
