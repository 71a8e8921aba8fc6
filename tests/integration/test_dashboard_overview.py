"""The first page: the fleet in figures, who needs a person, and the list of sessions."""

import pytest

from switchboard.domain.sessions import State
from switchboard.store.sessions import With
from tests.support.board import Board
from tests.support.dashboard import Desk, Shown, opened_desk
from tests.support.driver import HOUR, MINUTE, Driver

pytestmark = pytest.mark.anyio


async def link(board: Board, session: str, phone: str, name: str = "") -> None:
    await board.post("/api/sessions", {"sessionId": session, "name": name})
    assert (await board.store.sessions.connect(session, phone, board.now)).ok


async def turn(board: Board, session: str, state: State, reason: str = "") -> None:
    assert (await board.store.sessions.turn(session, state, reason, board.now, {With.DETACH})).ok


async def fleet(board: Board, count: int) -> None:
    for _ in range((count + 3) // 4):
        await board.proxy()
    for n in range(1, count + 1):
        await link(board, f"s{n}", f"9725000000{n:02}", f"Shop {n}")


def rows(page: Shown) -> list[str]:
    return [str(one["id"]).removeprefix("row-") for one in page.attributes if str(one.get("id")).startswith("row-")]


async def test_a_first_start_asks_for_a_proxy_then_for_a_number(board: Board, desk: Desk) -> None:
    page = await desk.page("/")
    assert "Add a proxy first" in page.text
    assert "/sessions/new" not in page.links
    assert "Up to 4 numbers share a proxy." in page.text
    assert "ALLOW_DIRECT=true" in page.text, "how to try it without one, and what that risks"
    assert "can get them banned" in page.text
    await board.proxy()
    page = await desk.page("/")
    assert "Link your first number" in page.text
    assert "/sessions/new" in page.links


async def test_where_sessions_may_go_without_a_proxy_none_is_asked_for(board: Board) -> None:
    async with opened_desk(board, allow_direct=True) as desk:
        assert "Link your first number" in (await desk.page("/")).text


async def test_an_open_first_page_gives_way_to_the_table_and_the_table_to_it(board: Board, desk: Desk) -> None:
    async def is_over(part: str) -> bool:
        """As a live part of an open page asks."""
        answer = await desk.http.get("/", headers={"HX-Request": "true", "HX-Target": part})
        assert answer.status_code == 200
        return bool(answer.headers.get("hx-refresh") == "true")

    assert 'id="first"' in (await desk.page("/")).html
    assert not await is_over("first")
    await fleet(board, 1)
    assert await is_over("first")
    assert not await is_over("sessions")
    await board.store.sessions.turn("s1", State.STOPPED, "", board.now, {With.DETACH}, {"wanted": "delete"})
    assert await board.store.sessions.forget("s1", board.now)
    assert await is_over("sessions")


async def test_connected_and_held_agree_with_the_states(board: Board, desk: Desk) -> None:
    await fleet(board, 3)
    assert "on hold" not in (await desk.page("/")).text
    await board.store.accounts.pause("972500000001", None, board.now)
    page = await desk.page("/")
    assert "Connected 3 of 3 sessions, 1 of them on hold" in page.text
    assert "Connected 2" in page.text
    assert "Paused 1" in page.text


async def test_the_figures_of_the_fleet(board: Board, desk: Desk) -> None:
    await fleet(board, 3)
    await turn(board, "s3", State.FAILED, "replaced")
    driver = Driver(board.store, board.client, board.prefix)
    waiting = await driver.message(await driver.send("s1"))
    await driver.send("s1", due=board.now + HOUR)
    await driver.send(None)
    page = await desk.page("/")
    assert "Connected 2 of 3 sessions" in page.text
    assert "Needs attention 1" in page.text
    assert "of 60 allowed today" in page.text
    assert "Waiting 2 1 of them still without a sender" in page.text
    assert "Scheduled 1" in page.text
    figures = page.html.partition('<dl class="figures">')[2].partition("</dl>")[0]
    for href in ("/?state=connected#sessions", "#urgent", "/messages?status=waiting", "/messages?status=scheduled"):
        assert f'href="{href}"' in figures, href
    assert 'href="/dead-letters"' in figures
    assert 'id="urgent"' in page.html
    [meter] = [one for one in page.attributes if one["tag"] == "meter" and one.get("class") == "wide"]
    assert (meter["max"], meter["value"]) == ("60", "0")
    assert waiting.text
    assert waiting.text not in page.html


@pytest.mark.parametrize(
    ("state", "reason", "words", "helps"),
    [
        (State.FAILED, "crash_loop:worker_exited:1", "ended again and again", "/sessions/s1/start"),
        (State.LOGGED_OUT, "logged_out", "logged out on the phone", "/sessions/s1/link"),
        (State.PASSKEY_REQUIRED, "passkey_required", "asks for a passkey", "/sessions/s1/link"),
        (State.STOPPED, "scan_timeout", "not scanned in time", "/sessions/s1/link"),
        (State.DISCONNECTED, "waiting_for_proxy", "waits for a proxy that works and has room", "/proxies"),
    ],
)
async def test_who_needs_a_person_is_named_with_why_and_what_helps(
    board: Board, desk: Desk, state: State, reason: str, words: str, helps: str
) -> None:
    await fleet(board, 2)
    assert 'id="urgent"' not in (await desk.page("/")).html
    await turn(board, "s1", state, reason)
    page = await desk.page("/")
    strip = page.html.partition('id="urgent"')[2].partition("</section>")[0]
    assert "Shop 1" in strip
    assert "Shop 2" not in strip
    assert words in strip
    assert f'"{helps}"' in strip
    assert rows(page) == ["s1", "s2"]


async def test_a_restricted_number_is_resumed_only_after_a_question(board: Board, desk: Desk) -> None:
    await fleet(board, 1)
    await board.store.accounts.restrict("972500000001", None, board.now)
    page = await desk.page("/")
    [form] = [one for one in page.attributes if one.get("action") == "/sessions/s1/resume"]
    assert "is the restriction over?" in str(form["hx-confirm"])
    await desk.press("/sessions/s1/resume")
    assert 'id="urgent"' not in (await desk.page("/")).html


async def test_of_many_that_need_a_person_the_first_are_shown_and_the_rest_counted(board: Board, desk: Desk) -> None:
    await fleet(board, 10)
    for n in range(1, 11):
        await turn(board, f"s{n}", State.FAILED, "replaced")
    page = await desk.page("/")
    strip = page.html.partition('id="urgent"')[2].partition("</section>")[0]
    assert strip.count("<li>") == 8
    assert "And 2 more" in strip


async def test_sessions_are_found_by_state_and_by_word(board: Board, desk: Desk) -> None:
    await fleet(board, 3)
    await turn(board, "s2", State.STOPPED, "by_request")
    page = await desk.page("/")
    assert "/?state=stopped" in page.links
    assert "/?state=failed" not in page.links, "nobody is in this state"
    assert "All 3" in page.text
    assert "Stopped 1" in page.text
    assert rows(await desk.page("/?state=stopped")) == ["s2"]
    assert rows(await desk.page("/?search=shop+3")) == ["s3"]
    assert rows(await desk.page("/?search=050-000-0001")) == ["s1"]
    nothing = await desk.page("/?state=stopped&search=nobody")
    assert "No session matches" in nothing.text
    assert "/?state=stopped&search=nobody" in nothing.links, "the search stays when the state is changed"


async def test_a_row_says_what_is_known_of_a_session(board: Board, desk: Desk) -> None:
    await fleet(board, 1)
    await board.store.accounts.pause("972500000001", board.now + HOUR, board.now)
    driver = Driver(board.store, board.client, board.prefix)
    await driver.send("s1")
    row = (await desk.page("/")).html.partition('id="row-s1"')[2].partition("</tr>")[0]
    for said in ("Shop 1", "Paused", "paused on request", "+972 50-000-0001", "Cold", "0 / 20", "proxy_1", ">1<"):
        assert said in row, said


async def test_a_long_list_goes_on_page_by_page(board: Board, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("switchboard.dashboard.pages.overview._PER_PAGE", 2)
    await fleet(board, 5)
    page = await desk.page("/")
    found = rows(page)
    while more := [str(one["href"]) for one in page.attributes if one.get("rel") == "next"]:
        page = await desk.page(more[0])
        found += rows(page)
    assert found == ["s1", "s2", "s3", "s4", "s5"]
    assert "From the start" in page.text
    assert "From the start" not in (await desk.page("/")).text


@pytest.mark.parametrize("query", ["state=nonsense", "cursor=nonsense", "search=" + "x" * 101, "cursor=" + "9" * 99])
async def test_a_query_that_makes_no_sense_is_refused(board: Board, desk: Desk, query: str) -> None:
    await fleet(board, 1)
    await desk.page(f"/?{query}", status=400)


async def test_the_queue_over_time_needs_two_samples(board: Board, desk: Desk) -> None:
    await fleet(board, 1)
    assert "the plot appears in a moment" in (await desk.page("/")).text
    for minute in (2, 1):
        await board.store.samples.add(board.now - minute * MINUTE, {"waiting": 10 * minute, "scheduled": 3})
    page = await desk.page("/")
    assert 'id="plot-queue"' in page.html
    assert '"values": [20, 10]' in page.html
    now = board.now // 1000
    assert f'"from": {now - 86_400}, "to": {now}' in page.html, "the whole day, however little is known of it"


async def test_names_are_shown_as_they_are_and_never_as_markup(board: Board, desk: Desk) -> None:
    await board.proxy()
    await link(board, "s1", "972500000001", "<b>x</b>")
    await turn(board, "s1", State.FAILED, "<i>why</i>")
    page = await desk.page("/")
    assert "<b>x" not in page.html
    assert "<i>why" not in page.html
    assert "<b>x</b>" in page.text


async def test_in_hebrew(board: Board, desk: Desk) -> None:
    await fleet(board, 3)
    await turn(board, "s1", State.FAILED, "replaced")
    page = await desk.page("/", language="he")
    assert 'dir="rtl"' in page.html
    assert "דורשים טיפול" in page.text
    assert "תוכנה אחרת משתמשת בקישור הזה" in page.text
