"""The page of the pool: what it shows of proxies, and what can be done with them there."""

import inspect
import re
from dataclasses import replace
from pathlib import Path

import pytest

from switchboard.dashboard.catalogue import Catalogue
from switchboard.dashboard.pages.proxies import fault_of
from switchboard.dashboard.services import PhoneRefused
from switchboard.domain.errors import InvalidRequest
from switchboard.domain.proxies import ProxyUrl
from tests.support.board import Board
from tests.support.dashboard import ORIGIN, Desk, Shown, opened_desk

pytestmark = pytest.mark.anyio


class NoPhone:
    async def scan(self, qr: str) -> str:
        raise PhoneRefused


async def without_scripts(desk: Desk, url: str) -> Shown:
    headers = {"Origin": ORIGIN, "Accept": "text/html"}
    answer = await desk.http.post("/proxies", data={"csrf": desk.csrf, "url": url}, headers=headers)
    assert answer.status_code == 400, answer.text
    return Shown(answer)


async def test_an_empty_pool_says_what_to_do(desk: Desk) -> None:
    page = await desk.page("/proxies")
    assert "No proxies yet" in page.text
    assert "Add the first one below" in page.text


async def test_who_is_on_which_and_how_many_places_are_left(board: Board, desk: Desk) -> None:
    proxy = await board.proxy()
    session = await board.provision()
    page = await desk.page("/proxies")
    assert proxy in page.text
    assert f"/sessions/{session}" in page.links
    assert "1 / 4" in page.text


async def test_one_that_is_added_is_tried_at_once(board: Board, desk: Desk) -> None:
    _, url = await board.socks5()
    added = await desk.press("/proxies", url=f" {url} ")
    assert added.response.headers["hx-redirect"] == "/proxies"
    page = await desk.page("/proxies")
    assert "proxy_1 is in the pool and works." in page.text
    assert "is in the pool" not in (await desk.page("/proxies")).text, "it is said once"


@pytest.mark.parametrize(
    "said", ['["batches.queued",{"n":Infinity}]', "[" * 9000, '["settings.password_changed",{}]', "e30.e30", "é"]
)
async def test_only_our_own_words_are_said(desk: Desk, said: str) -> None:
    headers = {"Accept": "text/html", "Cookie": f"switchboard_said={said}".encode()}
    answer = await desk.http.get("/sign-in", headers=headers)  # type: ignore[arg-type] # bytes, as a stranger sends them
    assert answer.status_code in {200, 303}
    assert "password" not in answer.text.partition('id="toasts"')[2]


async def test_one_that_does_not_work_is_added_and_said_to_be_broken(desk: Desk) -> None:
    await desk.press("/proxies", url="socks5h://user:word@127.0.0.1:1")
    page = await desk.page("/proxies")
    assert '<div class="toast tone-warn">' in page.html, "nobody takes it for good news"
    assert "does not work right now" in page.text
    assert "can't be reached" in page.text


@pytest.mark.parametrize("url", ["", "http://a:b@127.0.0.1:1", "socks5://a:b@127.0.0.1:1", "nonsense"])
async def test_a_bad_address_is_refused_and_not_repeated(desk: Desk, url: str) -> None:
    refused = await desk.press("/proxies", url=url, status=400)
    [fault] = [one for one in refused.attributes if one["tag"] == "p"]
    assert (fault["id"], fault["data-fault"], fault["hx-swap-oob"]) == ("f-url-fault", "f-url", "true")
    assert "input" not in {one["tag"] for one in refused.attributes}, "what was typed stays where it is"
    whole = await without_scripts(desk, url)
    [field] = [one for one in whole.attributes if one.get("name") == "url"]
    assert (field["aria-invalid"], field["value"]) == ("true", ""), "an address holds a password"
    for answer in (refused, whole):
        assert "127.0.0.1" not in answer.html
        assert "url:" not in answer.text
        assert "socks5h://" in answer.text


@pytest.mark.parametrize("language", ["en", "he"])
def test_every_reason_that_an_address_is_refused_for_has_its_words(language: str) -> None:
    codes = set(re.findall(r'ProxyUrlError\(\s*"(\w+)"', Path(inspect.getfile(ProxyUrl)).read_text("utf-8")))
    texts = Catalogue()[language]
    assert len(codes) > 10
    for code in codes | {"socks5", "http"}:
        assert fault_of(texts, InvalidRequest("no", "url", reason=code))


async def test_one_that_is_there_and_does_not_work_as_typed_is_not_changed(board: Board, desk: Desk) -> None:
    proxy = await board.proxy()
    known = await board.store.proxies.url_of(proxy)
    assert known
    refused = await desk.press("/proxies", url=replace(known, password="wrong").url, status=400)
    assert f"{proxy} of the pool has this address" in refused.text
    assert "does not accept the user name and password" in refused.text


async def test_what_providers_list_is_taken(board: Board, desk: Desk) -> None:
    _, url = await board.socks5()
    given = ProxyUrl.parse(url)
    await desk.press("/proxies", url=f"{given.address}:{given.user}:{given.password}")
    assert await board.store.proxies.url_of("proxy_1") == given
    assert "proxy_1 is in the pool and works." in (await desk.page("/proxies")).text


async def test_trying_one_now_says_what_was_found(board: Board, desk: Desk) -> None:
    proxy = await board.proxy()
    assert f"{proxy} works" in (await desk.press(f"/proxies/{proxy}/probe")).text
    board.socks[proxy].password = "another"
    bad = await desk.press(f"/proxies/{proxy}/probe")
    assert f"{proxy} does not work: does not accept the user name and password." in bad.text
    assert "tone-warn" in bad.html
    assert bad.response.headers["hx-trigger"] == "changed"
    assert "אינו מקבל" in (await desk.press(f"/proxies/{proxy}/probe", language="he")).text


async def test_places_that_can_not_be_used_are_explained(board: Board, desk: Desk) -> None:
    proxy = await board.proxy()
    await board.provision()
    assert "A place is room for one session on a proxy" in (await desk.page("/proxies")).text
    assert "do not work" not in (await desk.page("/proxies")).text
    await board.store.proxies.mark(proxy, ok=False, reason="timeout", now=board.now)
    assert "Places free 0 3 more are on proxies that do not work" in (await desk.page("/proxies")).text


async def test_numbers_that_wait_for_a_place_are_counted(board: Board, desk: Desk) -> None:
    proxy = await board.proxy()
    await board.linked()
    assert "for a place" not in (await desk.page("/proxies")).text
    await desk.press(f"/proxies/{proxy}/remove", force="true")
    await board.up()
    assert "One number waits off line for a place." in (await desk.page("/proxies")).text


async def test_the_demo_says_that_its_proxies_come_back(board: Board, desk: Desk) -> None:
    await board.proxy()
    back = "own proxies come back when it is started again"
    assert back not in (await desk.page("/proxies")).html
    async with opened_desk(board, phone=NoPhone()) as demo:
        assert back in (await demo.page("/proxies")).html


async def test_a_removed_one_is_gone(board: Board, desk: Desk) -> None:
    proxy = await board.proxy()
    await board.provision()
    await desk.press(f"/proxies/{proxy}/remove", force="true")
    assert "No proxies yet" in (await desk.page("/proxies")).text


@pytest.mark.parametrize("name", ["proxy_9", "..", "proxy_1:x", "%2e%2e"])
async def test_one_that_is_not_there(desk: Desk, name: str) -> None:
    await desk.press(f"/proxies/{name}/probe", status=404)


async def test_a_large_pool_is_shown_page_by_page_what_is_broken_first(board: Board, desk: Desk) -> None:
    for n in range(60):
        await board.store.proxies.add(ProxyUrl.parse(f"socks5h://u:p@198.51.100.7:{n + 1}"), "api", board.now)
    await board.store.proxies.mark("proxy_58", ok=False, reason="timeout", now=board.now)
    first = await desk.page("/proxies")
    rows = [given["id"] for given in first.attributes if (given.get("id") or "").startswith("proxy_")]
    assert rows == ["proxy_58", *(f"proxy_{n}" for n in range(1, 50))]
    [further] = [link for link in first.links if "cursor" in link]
    second = await desk.page(further)
    rest = [given["id"] for given in second.attributes if (given.get("id") or "").startswith("proxy_")]
    assert rest == [f"proxy_{n}" for n in range(50, 61) if n != 58]
    assert "/proxies" in second.links


async def test_sessions_without_a_proxy_are_said_loudly(board: Board) -> None:
    async with opened_desk(board, allow_direct=True) as desk:
        await board.orchestrator.care.count()
        assert "Sessions connect without a proxy." in (await desk.page("/settings")).text
        await board.proxy()
        assert "Sessions connect without a proxy." not in (await desk.page("/settings")).text


async def test_in_hebrew(board: Board, desk: Desk) -> None:
    await board.proxy()
    page = await desk.page("/proxies", language="he-IL,he;q=0.9,en;q=0.8")
    assert 'dir="rtl"' in page.html
    assert "מקומות פנויים" in page.text
