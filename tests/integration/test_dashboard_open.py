"""Links that sign in by themselves: once, for ten minutes, and only for a person who meant it."""

import logging
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from switchboard.dashboard.access.one_time_links import LIFETIME_MS, one_time_url
from switchboard.dashboard.access.passwords import Passwords
from switchboard.dashboard.dashboard import DashboardRules
from switchboard.dashboard.services import PhoneRefused
from tests.support.board import Board
from tests.support.dashboard import ORIGIN, QUICK, SECRET, Shown, dashboard_app

pytestmark = pytest.mark.anyio
HTML = {"Accept": "text/html", "Accept-Language": "en"}
OURS = HTML | {"Origin": ORIGIN}
HTMX = OURS | {"HX-Request": "true"}


@pytest.fixture
async def browser(board: Board) -> AsyncIterator[httpx.AsyncClient]:
    async with fresh(board) as http:
        yield http


def fresh(board: Board, rules: DashboardRules | None = None, **changes: Any) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(dashboard_app(board, rules, **changes), client=("192.0.2.1", 50_000))
    return httpx.AsyncClient(transport=transport, base_url=ORIGIN)


def link(board: Board, secret: str = SECRET) -> str:
    return one_time_url("", secret, board.now)


async def is_in(http: httpx.AsyncClient) -> bool:
    return (await http.get("/proxies", headers=HTML)).status_code == 200


def by_itself(answer: httpx.Response) -> bool:
    return 'hx-trigger="load, submit"' in answer.text


async def test_it_opens_the_dashboard_without_a_secret(board: Board, browser: httpx.AsyncClient) -> None:
    path = link(board)
    page = await browser.get(path, headers=HTML)
    assert page.status_code == 200
    assert by_itself(page)
    assert path in Shown(page).actions
    assert not await is_in(browser), "to look at it signs nobody in"
    answer = await browser.post(path, headers=HTMX)
    assert answer.headers["hx-redirect"] == "/"
    assert await is_in(browser)


async def test_without_scripts_a_button_does_it(board: Board, browser: httpx.AsyncClient) -> None:
    answer = await browser.post(link(board), headers=OURS)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert await is_in(browser)


async def test_it_is_good_once(board: Board, browser: httpx.AsyncClient) -> None:
    path = link(board)
    await browser.post(path, headers=HTMX)
    async with fresh(board) as another:
        answer = await another.post(path, headers=HTMX)
        assert answer.status_code == 410
        assert "switchboard open" in answer.text
        assert "set-cookie" not in answer.headers
        assert not await is_in(another)


async def test_who_had_a_link_is_told_how_to_get_another(board: Board) -> None:
    rules = DashboardRules(SECRET, open_command="DATA_DIR=/srv/x .venv/bin/switchboard open")
    path = link(board)
    board.now += LIFETIME_MS
    async with fresh(board, rules) as http:
        had = await http.get(path, headers=HTML)
        never = await http.get("/open/nonsense", headers=HTML)
    assert rules.open_command in had.text
    assert "/srv/x" not in never.text, "where things are on the server is nobody else's business"
    assert "switchboard open" in never.text


async def test_in_the_demo_the_terminal_has_another(board: Board) -> None:
    async with fresh(board, phone=NoPhone()) as http:
        page = Shown(await http.get("/open/nonsense", headers=HTML))
        sign_in = Shown(await http.get("/sign-in", headers=HTML))
    assert "terminal in which the demo runs shows a fresh one" in page.text
    assert "switchboard open" not in page.text
    assert "the terminal shows a link that opens the dashboard" in sign_in.text


@pytest.mark.parametrize(
    ("file", "said"), [("data/secrets.json", "is kept in data/secrets.json"), (None, "was started with (API_KEY)")]
)
async def test_the_sign_in_says_where_the_key_is(board: Board, file: str | None, said: str) -> None:
    async with fresh(board, DashboardRules(SECRET, secrets_file=file)) as http:
        assert said in Shown(await http.get("/sign-in", headers=HTML)).text


class NoPhone:
    async def scan(self, qr: str) -> str:
        raise PhoneRefused


async def test_two_at_the_same_moment_are_two_links(board: Board, browser: httpx.AsyncClient) -> None:
    first, second = link(board), link(board)
    assert first != second
    await browser.post(first, headers=HTMX)
    async with fresh(board) as another:
        await another.post(second, headers=HTMX)
        assert await is_in(another)


async def test_who_is_in_already_just_goes_on_and_uses_nothing_up(board: Board, browser: httpx.AsyncClient) -> None:
    used, unused = link(board), link(board)
    await browser.post(used, headers=HTMX)
    for path in (used, unused):
        answer = await browser.get(path, headers=HTML)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
    await browser.post(unused, headers=HTMX)
    async with fresh(board) as another:
        await another.post(unused, headers=HTMX)
        assert await is_in(another)


async def test_it_is_good_for_ten_minutes(board: Board, browser: httpx.AsyncClient) -> None:
    path = link(board)
    board.now += LIFETIME_MS - 1000
    assert (await browser.get(path, headers=HTML)).status_code == 200
    board.now += 1000
    assert (await browser.get(path, headers=HTML)).status_code == 410
    assert (await browser.post(path, headers=HTMX)).status_code == 410
    assert not await is_in(browser)


@pytest.mark.parametrize("how", ["last", "first", "no_mark", "other_secret", "nonsense", "letters"])
async def test_what_is_not_ours_opens_nothing(board: Board, browser: httpx.AsyncClient, how: str) -> None:
    good = link(board)
    head, _, token = good.rpartition("/")
    forged = {
        "last": good[:-1] + ("A" if good[-1] != "A" else "B"),
        "first": f"{head}/f{token[1:]}",
        "no_mark": good.partition(".")[0] + ".",
        "other_secret": link(board, "another secret"),
        "nonsense": "/open/nonsense",
        "letters": "/open/%F0%9F%98%80.%F0%9F%98%80",
    }[how]
    assert (await browser.get(forged, headers=HTML)).status_code == 410
    assert (await browser.post(forged, headers=HTMX)).status_code == 410
    assert not await is_in(browser)


@pytest.mark.parametrize(
    ("headers", "goes"),
    [
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Sec-Fetch-Site": "same-origin"}, True),
        ({"Sec-Fetch-Site": "same-site"}, False),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "none", "Sec-Purpose": "prefetch;prerender"}, False),
        ({"Purpose": "prefetch"}, False),
    ],
)
async def test_it_goes_by_itself_only_if_a_person_meant_it(
    board: Board, browser: httpx.AsyncClient, headers: dict[str, str], goes: bool
) -> None:
    page = await browser.get(link(board), headers=HTML | headers)
    assert page.status_code == 200
    assert by_itself(page) is goes
    assert "Open the dashboard" in page.text


async def test_another_site_can_t_press_the_button(board: Board, browser: httpx.AsyncClient) -> None:
    path = link(board)
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://elsewhere.test"}, {}):
        assert (await browser.post(path, headers=HTML | headers)).status_code == 403
    await browser.post(path, headers=HTMX)
    assert await is_in(browser), "it was not used up"


async def test_who_came_by_a_link_leaves_with_everybody_else(board: Board, browser: httpx.AsyncClient) -> None:
    await browser.post(link(board), headers=HTMX)
    await Passwords(board.store.sign_ins, board.clock, QUICK).change("correct horse battery")
    assert not await is_in(browser)


async def test_its_token_is_neither_logged_nor_kept(
    board: Board, browser: httpx.AsyncClient, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    logging.getLogger("httpx").disabled = True  # the client of this test, which names what it asks for
    path = link(board)
    token = path.rpartition("/")[2]
    await browser.get(path, headers=HTML)
    await browser.post(path, headers=HTMX)
    said = capsys.readouterr()
    assert "dashboard.signed_in" in said.out
    assert token not in said.out + said.err + caplog.text
    keys = [key async for key in board.client.scan_iter(f"{board.prefix}*")]
    assert not [key for key in keys if token in key]


async def test_in_hebrew(board: Board, browser: httpx.AsyncClient) -> None:
    for path, words in ((link(board), "פתיחת לוח הבקרה"), ("/open/x", "עשר דקות")):
        page = await browser.get(path, headers=HTML | {"Accept-Language": "he"})
        assert 'dir="rtl"' in page.text
        assert words in page.text
