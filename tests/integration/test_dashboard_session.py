"""The page of one session: what it says, what it offers in each state, and what its buttons do."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from switchboard.domain.hours import DAY_MS
from switchboard.domain.sessions import State
from switchboard.domain.trust import Overrides
from switchboard.store.sessions import With
from tests.support.board import PHONES, Board, opened_board
from tests.support.dashboard import Desk, Shown
from tests.support.driver import DAY, HOUR, Driver

pytestmark = pytest.mark.anyio
HERE = "/sessions/s1"


@pytest.fixture
async def board(valkey_url: str, prefix: str, tmp_path: Path) -> AsyncIterator[Board]:
    async with opened_board(valkey_url, prefix, tmp_path) as board:
        await board.proxy()
        yield board


async def make(board: Board, session: str = "s1", name: str = "Corner Shop") -> None:
    await board.post("/api/sessions", {"sessionId": session, "name": name})


async def link(board: Board, session: str = "s1", phone: str = PHONES[1], name: str = "Corner Shop") -> None:
    await make(board, session, name)
    assert (await board.store.sessions.connect(session, phone, board.now)).ok


async def turn(board: Board, state: State, reason: str = "") -> None:
    effects = {With.DETACH, With.UNLINK} if state is State.LOGGED_OUT else {With.DETACH}
    assert (await board.store.sessions.turn("s1", state, reason, board.now, effects, {"wanted": "stop"})).ok


def offers(page: Shown) -> set[str]:
    """What can be pressed or followed, of this session."""
    paths = {*page.actions, *page.links}
    return {path.removeprefix(HERE + "/") for path in paths if path.startswith(HERE + "/")}


def question(page: Shown, action: str) -> str:
    return next(str(one["hx-confirm"]) for one in page.attributes if one.get("action") == f"{HERE}/{action}")


# What it says.


async def test_the_facts_of_a_connected_session(board: Board, desk: Desk) -> None:
    await link(board)
    board.now += HOUR
    await board.store.sessions.ping("s1", board.now)
    page = await desk.page(HERE)
    for said in ("Corner Shop", "Connected", "+972 50-000-0001", "proxy_1", "Cold", "0 / 20", "09:00-21:00"):
        assert said in page.text, said
    assert "Warm from 12 Jun, 12:00" in page.text
    assert "Nothing is due right now." in page.text
    assert "Connected as \u2066+972 50-000-0001\u2069" in page.text
    assert {"/send?session=s1", "/messages?session=s1", "/anti-ban/s1"} <= set(page.links)


async def test_a_reason_is_told_in_words(board: Board, desk: Desk) -> None:
    await link(board)
    await turn(board, State.FAILED, "crash_loop:worker_exited:74")
    page = await desk.page(HERE)
    assert "ended again and again" in page.text
    assert "it can't use its folder" in page.text


async def test_up_time_is_drawn_and_told(board: Board, desk: Desk) -> None:
    await link(board)
    board.now += 6 * HOUR
    await turn(board, State.FAILED, "replaced")
    board.now += 2 * HOUR
    page = await desk.page(HERE)
    said = "Connected for 75% of its 8 hours so far"
    assert said in page.text
    [svg] = [one for one in page.attributes if one["tag"] == "svg" and one.get("class") == "strip"]
    assert svg["aria-label"] == said
    drawn = [(one["class"], one["x"], one["width"]) for one in page.attributes if one["tag"] == "rect" and "x" in one]
    assert ("state-connected", "0.0", "750.0") in drawn, "a young one fills its strip"
    assert ("state-failed", "750.0", "250.0") in drawn
    assert "12:00 now" in page.text
    board.now += 20 * HOUR
    page = await desk.page(HERE)
    assert "Connected for 8% of the last 24 hours" in page.text
    assert "16:00 now" in page.text


async def test_one_connected_since_before_changes_were_kept_counts_as_up(board: Board, desk: Desk) -> None:
    await board.proxy()
    session = await board.linked()
    await board.client.delete(f"{board.prefix}session:states:{session}")
    board.now += 3 * DAY_MS
    assert "Connected for 100% of the last 24 hours" in (await desk.page(f"/sessions/{session}")).text


async def test_the_figures_of_today_and_of_two_weeks(board: Board, desk: Desk) -> None:
    await link(board)
    driver = Driver(board.store, board.client, board.prefix)
    sent = await driver.send("s1")
    await driver.attempt("s1")
    await driver.confirm(sent, session="s1")
    page = await desk.page(HERE)
    assert "1 / 20" in page.text
    assert "12:00 1 0 0 0" in page.text, "by hour"
    assert "9 Jun 2026 1 0 0 0" in page.text, "by day"


async def test_the_queue_says_why_each_waits_and_shows_no_text(board: Board, desk: Desk) -> None:
    await link(board)
    await board.store.accounts.pause(PHONES[1], None, board.now)
    driver = Driver(board.store, board.client, board.prefix)
    messages = [await driver.send("s1") for _ in range(21)]
    page = await desk.page(HERE)
    assert "Queue: 21 messages" in page.text
    assert page.text.count("its number is paused") == 20
    assert "The first 20 are shown." in page.text
    for text in {(await driver.message(one)).text for one in messages}:
        assert text not in page.html


async def test_one_that_was_never_linked_has_a_page_too(board: Board, desk: Desk) -> None:
    await make(board)
    page = await desk.page(HERE)
    assert "never linked" in page.text
    assert offers(page) >= {"restart", "stop", "delete"}
    assert not offers(page) & {"logout", "pause", "resume", "start"}


async def test_names_are_never_markup(board: Board, desk: Desk) -> None:
    await link(board, name="<b>x</b>")
    page = await desk.page(HERE)
    assert "<b>x" not in page.html
    assert "<b>x</b>" in page.text


async def test_in_hebrew(board: Board, desk: Desk) -> None:
    await link(board)
    await Driver(board.store, board.client, board.prefix).send("s1")
    page = await desk.page(HERE, language="he")
    assert 'dir="rtl"' in page.html
    assert "תור: הודעה אחת" in page.text
    assert "ממתינה לתורה" in page.text


# What it offers.


@pytest.mark.parametrize(
    ("state", "reason", "offered"),
    [
        (State.CONNECTED, "", {"pause", "restart", "stop", "logout", "delete"}),
        (State.DISCONNECTED, "no_ping", {"pause", "restart", "stop", "logout", "delete"}),
        (State.STOPPED, "by_request", {"start", "pause", "delete"}),
        (State.FAILED, "replaced", {"start", "pause", "delete"}),
        (State.LOGGED_OUT, "logged_out", {"link", "delete"}),
    ],
)
async def test_only_what_makes_sense_is_offered(
    board: Board, desk: Desk, state: State, reason: str, offered: set[str]
) -> None:
    await link(board)
    if state is not State.CONNECTED:
        await turn(board, state, reason)
    assert offers(await desk.page(HERE)) == offered


async def test_one_that_waits_for_a_scan_leads_to_its_code(board: Board, desk: Desk) -> None:
    session = await board.running()
    await board.tell(session, "QR_CODE", {"qr": "2@x"})
    page = await desk.page(f"/sessions/{session}")
    assert f"/sessions/{session}/link" in page.links
    assert "to be scanned until" in page.text
    assert "2@x" not in page.html
    assert page.text.count("Waits for a scan") == 1, "each new code is no news"


async def test_one_without_a_proxy_leads_to_the_proxies(board: Board, desk: Desk) -> None:
    await link(board)
    assert "Look at the proxies" not in (await desk.page(HERE)).text
    await turn(board, State.DISCONNECTED, "waiting_for_proxy")
    page = await desk.page(HERE)
    assert "it waits for a proxy that works and has room" in page.text
    assert "Look at the proxies" in page.text


async def test_a_number_whose_proxy_was_removed_is_told_to_have_moved(board: Board, desk: Desk) -> None:
    session = await board.linked(PHONES[1])
    await board.proxy()
    await board.delete("/api/proxies/proxy_1", params={"force": True})
    await board.disconnected(session, "stopped")
    await board.all_up()
    page = await desk.page(f"/sessions/{session}")
    for said in ("Disconnected: its proxy was removed", "Moved from proxy_1 to proxy_2", "The worker was stopped"):
        assert said in page.text, said
    assert "lost the connection" not in page.text
    assert "waits for a proxy" not in page.text


# What its buttons do.


async def test_stopped_started_and_restarted(board: Board, desk: Desk) -> None:
    await link(board)
    assert "s1 is stopped. It stays linked." in (await desk.press(f"{HERE}/stop")).text
    assert (await board.look("s1")).state is State.STOPPED
    assert "s1 is starting." in (await desk.press(f"{HERE}/start")).text
    assert (await board.look("s1")).state is State.STARTING
    assert "no new scan" in (await desk.press(f"{HERE}/restart")).text


async def test_one_without_a_link_leads_to_a_scan_when_it_is_started(board: Board, desk: Desk) -> None:
    await make(board)
    await desk.press(f"{HERE}/stop")
    started = await desk.press(f"{HERE}/start")
    assert started.response.headers["hx-redirect"] == f"{HERE}/link"


@pytest.mark.parametrize(("until", "ends"), [("hour", HOUR), ("tomorrow", DAY // 2), ("resumed", None)])
async def test_paused_for_a_while_and_resumed(board: Board, desk: Desk, until: str, ends: int | None) -> None:
    await link(board)
    await desk.press(f"{HERE}/pause", until=until)
    account = (await board.store.accounts.look(phone=PHONES[1], now=board.now)).account
    assert account.paused_until == (board.now + ends if ends else -1)
    page = await desk.page(HERE)
    assert "paused on request" in page.text
    assert offers(page) >= {"resume"}
    assert "pause" not in offers(page)
    assert "The number sends again." in (await desk.press(f"{HERE}/resume")).text
    assert "pause" in offers(await desk.page(HERE))


async def test_until_tomorrow_is_by_the_clock_of_the_number(board: Board, desk: Desk) -> None:
    await link(board)
    driver = Driver(board.store, board.client, board.prefix)
    await board.store.accounts.override(PHONES[1], Overrides(), "Asia/Tokyo", board.now)
    await desk.press(f"{HERE}/pause", until="tomorrow")
    account = (await driver.view(PHONES[1])).account
    assert account.paused_until == board.now + 3 * HOUR, "noon in London is 21:00 in Tokyo"


async def test_logged_out_by_hand(board: Board, desk: Desk) -> None:
    await link(board)
    assert "no longer a linked device of the phone" in question(await desk.page(HERE), "logout")
    answer = await desk.press(f"{HERE}/logout")
    assert "WhatsApp has not confirmed it yet" in answer.text, "nobody waits for the worker in this test"
    assert (await board.look("s1")).state is State.LOGGED_OUT


async def test_what_deleting_does_is_said_before(board: Board, desk: Desk) -> None:
    await link(board)
    said = question(await desk.page(HERE), "delete")
    assert "It is logged out of the phone." in said
    assert "they wait until it is linked again" in said
    await link(board, "s2")
    assert "leave through its other sessions" in question(await desk.page(HERE), "delete")
    await turn(board, State.STOPPED, "by_request")
    assert "remove the linked device on the phone yourself" in question(await desk.page(HERE), "delete")


async def test_what_waits_stays_with_the_number_when_its_session_is_deleted(board: Board, desk: Desk) -> None:
    await link(board)
    driver = Driver(board.store, board.client, board.prefix)
    message = await driver.send("s1")
    answer = await desk.press(f"{HERE}/delete")
    assert answer.response.headers["hx-redirect"] == "/"
    assert "s1 is being deleted" in (await desk.page("/")).text
    being = await desk.page(HERE)
    assert "It is being deleted." in being.text
    assert not offers(being) - {f"queue/{message}/cancel"}
    board.now += 20_000
    await board.settle()
    assert await driver.queue(PHONES[1]) == [message]


async def test_one_that_is_gone_leads_to_the_overview(board: Board, desk: Desk) -> None:
    answer = await desk.http.get(HERE, headers={"Accept": "text/html"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert "Session s1 is not here any more." in (await desk.page("/")).text


async def test_an_open_page_of_one_that_is_gone_says_so_in_place(board: Board, desk: Desk) -> None:
    """It does not lead away: the page on which it was deleted waits for the answer to that."""
    part = Shown(await desk.http.get(HERE, headers={"HX-Request": "true"}))
    assert "Session s1 is not here any more." in part.text
    assert [one["id"] for one in part.attributes if one["tag"] == "section"] == ["session"]
    assert "hx-redirect" not in part.response.headers
    assert "set-cookie" not in part.response.headers


async def test_one_waiting_message_is_cancelled(board: Board, desk: Desk) -> None:
    await link(board)
    driver = Driver(board.store, board.client, board.prefix)
    message = await driver.send("s1")
    cancel = f"{HERE}/queue/{message}/cancel"
    assert cancel in (await desk.page(HERE)).actions
    assert "The message was cancelled." in (await desk.press(cancel)).text
    assert await driver.queue(PHONES[1]) == []
    await desk.press(cancel, status=409)
    await desk.press(f"{HERE}/queue/nonsense/cancel", status=404)


async def test_a_message_of_another_number_is_not_cancelled_here(board: Board, desk: Desk) -> None:
    await link(board)
    await link(board, "s2", PHONES[2])
    message = await Driver(board.store, board.client, board.prefix).send("s2")
    await desk.press(f"{HERE}/queue/{message}/cancel", status=404)


@pytest.mark.parametrize(
    ("action", "fields", "status"),
    [("start", {}, 409), ("resume", {}, 409), ("pause", {"until": "never"}, 400), ("nonsense", {}, 404)],
)
async def test_what_makes_no_sense_is_refused(
    board: Board, desk: Desk, action: str, fields: dict[str, str], status: int
) -> None:
    await link(board)
    await desk.press(f"{HERE}/{action}", status=status, **fields)
    assert (await board.look("s1")).state is State.CONNECTED


@pytest.mark.parametrize("action", ["start", "stop", "restart", "logout", "pause", "resume", "delete"])
async def test_nothing_is_done_to_one_that_is_not_there(desk: Desk, action: str) -> None:
    await desk.press(f"/sessions/nobody/{action}", status=404)
    await desk.press(f"/sessions/a:b/{action}", status=404)


async def test_without_a_script_a_button_leads_back_to_the_page(board: Board, desk: Desk) -> None:
    await link(board)
    headers = {"Origin": "http://switchboard.test"}
    answer = await desk.http.post(f"{HERE}/stop", data={"csrf": desk.csrf}, headers=headers)
    assert (answer.status_code, answer.headers["location"]) == (303, HERE)
