"""Linking a phone from the dashboard: one press, a code that is always the present one, and what to do if it fails."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from switchboard.dashboard.services import PhoneRefused
from switchboard.orchestrator.sessions import SessionServiceRules
from tests.support import serving
from tests.support.board import PHONES, SCAN_MS, Board, direct_rules, opened_board, rules_for
from tests.support.dashboard import Desk, Shown, opened_desk

pytestmark = pytest.mark.anyio
MINE = PHONES[1]
SHOWN = "+972 50-000-0001"


@pytest.fixture
async def desk(board: Board) -> AsyncIterator[Desk]:
    await board.proxy()
    async with opened_desk(board) as desk:
        yield desk


class Passer:
    """A simulated phone that scans what it is shown, or does not."""

    def __init__(self, board: Board, session: str = "", refuses: bool = False) -> None:
        self.board, self.session, self.refuses = board, session, refuses
        self.scanned: list[str] = []

    async def scan(self, qr: str) -> str:
        if self.refuses:
            raise PhoneRefused
        self.scanned.append(qr)
        await self.board.connected(self.session, MINE)
        return MINE


def once(page: Shown) -> str:
    [field] = [one["value"] for one in page.attributes if one.get("name") == "once"]
    return field or ""


async def waiting(board: Board, **body: object) -> str:
    session = await board.running(**body)
    await board.qr(session)
    return session


# Making one.


async def test_one_press_makes_a_session_and_leads_to_its_code(board: Board, desk: Desk) -> None:
    page = await desk.page("/sessions/new")
    made = await desk.press("/sessions", once=once(page))
    assert made.response.headers["hx-redirect"] == "/sessions/worker_1/link"
    assert (await board.look("worker_1")).proxy == "proxy_1"


async def test_what_is_optional_is_kept(board: Board, desk: Desk) -> None:
    await desk.press("/sessions", name=" Support ", phone="+972 50-000-0001", proxy="proxy_1")
    session = await board.look("worker_1")
    assert (session.name, session.declared, session.proxy) == ("Support", MINE, "proxy_1")


async def test_a_double_click_makes_one_session(board: Board, desk: Desk) -> None:
    form = once(await desk.page("/sessions/new"))
    first, second = [await desk.press("/sessions", once=form, name="Support") for _ in range(2)]
    assert first.response.headers["hx-redirect"] == second.response.headers["hx-redirect"]
    assert await board.store.sessions.ids() == {"worker_1"}
    await desk.press("/sessions", once=once(await desk.page("/sessions/new")), name="Support")
    assert await board.store.sessions.ids() == {"worker_1", "worker_2"}


async def test_without_a_proxy_there_is_a_way_to_one_instead_of_a_form(board: Board) -> None:
    async with opened_desk(board) as desk:
        page = await desk.page("/sessions/new")
        assert "WhatsApp sees a number at the address of its proxy" in page.text
        assert "/proxies" in page.links
        assert "/sessions" not in page.actions


async def test_where_sessions_may_go_directly_no_proxy_is_needed(valkey_url: str, prefix: str, tmp_path: Path) -> None:
    async with opened_board(valkey_url, prefix, tmp_path, direct_rules(tmp_path)) as board, opened_desk(board) as desk:
        assert "/sessions" in (await desk.page("/sessions/new")).actions
        await desk.press("/sessions")
        assert "directly, without a proxy" in (await desk.page("/sessions/worker_1/link")).text


async def test_a_pool_without_room_is_said_before_the_form_is_sent(board: Board, desk: Desk) -> None:
    await board.fill("proxy_1")
    page = await desk.page("/sessions/new")
    assert "No proxy has room" in page.text
    assert "/sessions" not in page.actions
    refused = await desk.press("/sessions", status=409)
    assert "No proxy has room" in refused.text


async def test_the_proxies_to_choose_from_say_how_much_room_they_have(board: Board, desk: Desk) -> None:
    await board.provision()
    page = await desk.page("/sessions/new")
    assert "proxy_1 · 3 places free" in page.text


@pytest.mark.parametrize(
    "fields", [{"phone": "nobody"}, {"name": "a\nb"}, {"name": "x" * 101}, {"proxy": "socks5h://x"}, {"once": "a b"}]
)
async def test_what_makes_no_sense_is_refused(board: Board, desk: Desk, fields: dict[str, str]) -> None:
    refused = await desk.press("/sessions", status=400, **fields)
    assert refused.response.headers["hx-retarget"] == "#toasts"
    assert not await board.store.sessions.ids()


async def test_the_name_comes_first_and_not_among_what_is_seldom_needed(board: Board, desk: Desk) -> None:
    page = await desk.page("/sessions/new")
    assert page.html.index('name="name"') < page.html.index('<details class="more">')
    assert 'placeholder="Support, Tel Aviv branch"' in page.html


# Leaving it.


@pytest.mark.parametrize("asked", [False, True])
async def test_what_was_never_linked_can_be_cancelled(board: Board, desk: Desk, asked: bool) -> None:
    session = await (waiting(board) if asked else board.provision())
    assert f"/sessions/{session}/link/cancel" in (await desk.page(f"/sessions/{session}/link")).actions
    left = await desk.press(f"/sessions/{session}/link/cancel")
    assert left.response.headers["hx-redirect"] == "/"
    assert "Cancelled: no number was linked." in (await desk.page("/")).text
    await board.up()
    assert not await board.store.sessions.ids()
    gone = Shown(await desk.http.get(f"/sessions/{session}/link", headers={"HX-Request": "true"}))
    assert [one["id"] for one in gone.attributes if one["tag"] == "section"] == ["link"], "in place of what it showed"


async def test_what_was_linked_before_is_not_deleted_by_the_way(board: Board, desk: Desk) -> None:
    session = await board.linked(MINE)
    await desk.press(f"/sessions/{session}/link/cancel", status=409)
    await board.disconnected(session, "logged_out")
    await board.settle()
    await desk.press(f"/sessions/{session}/link/again")
    page = await desk.page(f"/sessions/{session}/link")
    assert f"/sessions/{session}/link/cancel" not in page.actions
    assert f"/sessions/{session}" in page.links
    await desk.press(f"/sessions/{session}/link/cancel", status=409)
    assert (await board.look(session)).phone == MINE


# The code.


async def test_while_it_starts_the_page_says_through_what(board: Board, desk: Desk) -> None:
    session = await board.provision()
    page = await desk.page(f"/sessions/{session}/link")
    assert "Preparing a secure connection" in page.text
    assert "through proxy_1" in page.text
    assert "Linked devices" in page.text


async def test_the_code_is_drawn_and_counts_down(board: Board, desk: Desk) -> None:
    session = await waiting(board)
    page = await desk.page(f"/sessions/{session}/link")
    assert "Scan this code" in page.text
    [code, scan] = [one["data-countdown"] for one in page.attributes if "data-countdown" in one]
    assert [code, scan] == [written(board.now + 60_000), written((await board.look(session)).scan_by or 0)]
    assert "<svg viewBox" in page.html
    assert "2@qr" not in page.html
    assert f'data-on="session:{session}"' in page.html


def written(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="seconds")


async def test_another_code_is_another_picture(board: Board, desk: Desk) -> None:
    session = await waiting(board)
    path = f"/sessions/{session}/link"
    before = drawn(await desk.page(path))
    await board.qr(session, "2@another")
    assert drawn(await desk.page(path)) != before
    board.now += 60_001
    assert "Asking WhatsApp for a code" in (await desk.page(path)).text


def drawn(page: Shown) -> str:
    found = re.search(r'<div class="qr" role="img"[^>]*>(<svg.*?</svg>)', page.html, re.DOTALL)
    assert found
    return found.group(1)


async def test_linked_says_so_and_what_to_do_next(board: Board, desk: Desk) -> None:
    session = await waiting(board)
    await board.connected(session, MINE)
    page = await desk.page(f"/sessions/{session}/link")
    assert f"{SHOWN} is linked" in page.text
    assert {f"/send?session={session}", f"/sessions/{session}", "/sessions/new"} <= set(page.links)
    assert not [action for action in page.actions if session in action], "nothing more is to be done to link it"


async def test_linked_and_away_says_that_it_comes_back(board: Board, desk: Desk) -> None:
    session = await board.linked(MINE)
    await board.disconnected(session, "restart_required")
    page = await desk.page(f"/sessions/{session}/link")
    assert f"{SHOWN} is linked" in page.text
    assert "which it does by itself" in page.text


async def test_nobody_scanned_in_time_leads_to_another_start(board: Board, desk: Desk) -> None:
    session = await waiting(board)
    await board.up(SCAN_MS)
    page = await desk.page(f"/sessions/{session}/link")
    assert "Nobody scanned in time" in page.text
    assert f"/sessions/{session}/link/again" in page.actions
    again = await desk.press(f"/sessions/{session}/link/again")
    assert again.response.headers["hx-redirect"] == f"/sessions/{session}/link"
    assert "Preparing a secure connection" in (await desk.page(f"/sessions/{session}/link")).text


@pytest.mark.parametrize(
    ("kind", "data", "words"),
    [
        ("DISCONNECTED", {"reason": "logged_out"}, "logged out on the phone"),
        ("STATUS_CHANGE", {"status": "passkey_required"}, "the phone asks for a passkey"),
        ("AUTH_FAILURE", {"code": "403"}, "WhatsApp does not let this number in"),
        ("DISCONNECTED", {"reason": "replaced"}, "another program uses this link"),
    ],
)
async def test_what_went_wrong_is_said_with_the_way_on(
    board: Board, desk: Desk, kind: str, data: dict[str, object], words: str
) -> None:
    session = await waiting(board)
    await board.tell(session, kind, data)
    page = await desk.page(f"/sessions/{session}/link")
    assert words in page.text
    assert f"/sessions/{session}/link/again" in page.actions


async def test_stopped_by_a_person_is_no_failure(board: Board, desk: Desk) -> None:
    session = await waiting(board)
    await board.command(session, "stop")
    assert "No scan is waited for" in (await desk.page(f"/sessions/{session}/link")).text
    linked = await board.linked(MINE)
    await board.command(linked, "stop")
    page = await desk.page(f"/sessions/{linked}/link")
    assert "It is linked, but does not run" in page.text
    assert "no new scan is needed" in page.text


async def test_without_a_proxy_it_waits_and_says_so(board: Board, desk: Desk) -> None:
    session = await board.provision()
    await board.store.proxies.mark("proxy_1", ok=False, now=board.now, reason="timeout")
    await board.up()
    page = await desk.page(f"/sessions/{session}/link")
    assert "it waits for a proxy that works and has room" in page.text
    assert "/proxies" in page.links


async def test_one_that_is_being_deleted_is_not_started_again(board: Board, desk: Desk) -> None:
    session = await waiting(board)
    await board.ask("DELETE", f"/api/sessions/{session}")
    page = await desk.page(f"/sessions/{session}/link")
    assert "It is being deleted" in page.text
    assert not [action for action in page.actions if session in action]


async def test_there_is_no_page_for_a_session_that_is_not_there(desk: Desk) -> None:
    await desk.page("/sessions/worker_9/link", status=404)
    await desk.page("/sessions/..%20x/link", status=404)


# A code to type.


async def test_a_pairing_code_is_shown_as_the_phone_asks_for_it(valkey_url: str, prefix: str, tmp_path: Path) -> None:
    rules = rules_for(tmp_path, service=SessionServiceRules(SCAN_MS, patience_s=10))
    async with opened_board(valkey_url, prefix, tmp_path, rules) as board, opened_desk(board) as desk:
        await board.proxy()
        session = await waiting(board)
        until = board.now + 60_000
        asked = asyncio.create_task(desk.press(f"/sessions/{session}/pairing-code", phone="972500000001"))
        await serving.until(lambda: ordered(board, session))
        await board.tell(session, "PAIRING_CODE", {"code": "ABCD1234", "phoneNumber": MINE, "expiresAt": until})
        answer = await asked
        assert "ABCD-1234" in answer.text
        assert SHOWN in answer.text
        assert "Link with phone number instead" in answer.text
        assert 'id="pairing"' in answer.html
        assert f'hx-get="/sessions/{session}/link"' in answer.html
        assert "<html" not in answer.html
        assert "ABCD-1234" in (await desk.page(f"/sessions/{session}/link")).text, "it is there after a reload"
        board.now = until
        assert "ABCD-1234" not in (await desk.page(f"/sessions/{session}/link")).text


async def ordered(board: Board, session: str) -> bool:
    return (await board.look(session)).order is not None


async def test_a_worker_that_gives_no_code_is_said(board: Board, desk: Desk) -> None:
    session = await waiting(board)
    refused = await desk.press(f"/sessions/{session}/pairing-code", phone=MINE, status=404)
    assert "try again in a moment" in refused.text


async def test_a_number_that_is_none_is_refused_before_anyone_is_asked(board: Board, desk: Desk) -> None:
    session = await waiting(board)
    refused = await desk.press(f"/sessions/{session}/pairing-code", phone="12", status=400, language="he")
    assert "זה לא מספר טלפון" in refused.text
    assert (await board.look(session)).order is None


async def test_a_linked_session_gives_no_code(board: Board, desk: Desk) -> None:
    session = await board.linked(MINE)
    await desk.press(f"/sessions/{session}/pairing-code", phone=MINE, status=409)


# A link for the owner.


async def test_a_link_for_the_owner_is_shown_with_its_end(board: Board, desk: Desk) -> None:
    session = await waiting(board)
    answer = await desk.press(f"/sessions/{session}/scan-link")
    [link] = [one["value"] for one in answer.attributes if one.get("id") == "scan-link-url"]
    assert link
    assert link.startswith("http://switchboard.test/scan/")
    assert "Good until" in answer.text
    assert "data-copy-from" in answer.html
    assert (await desk.http.get(link)).status_code == 200


async def test_a_linked_session_needs_no_link(board: Board, desk: Desk) -> None:
    session = await board.linked(MINE)
    await desk.press(f"/sessions/{session}/scan-link", status=409)


# The demo.


async def test_the_demo_brings_a_phone_to_scan_with(board: Board) -> None:
    await board.proxy()
    session = await waiting(board)
    phone = Passer(board, session)
    async with opened_desk(board, phone=phone) as desk:
        page = await desk.page(f"/sessions/{session}/link")
        assert "This is the demo: no phone needed" in page.text
        said = await desk.press(f"/sessions/{session}/demo-scan")
        assert SHOWN in said.text
        assert phone.scanned == ["2@qr"]
        assert "is linked" in (await desk.page(f"/sessions/{session}/link")).text


async def test_a_simulated_phone_that_comes_too_late_says_so(board: Board) -> None:
    await board.proxy()
    session = await waiting(board)
    async with opened_desk(board, phone=Passer(board, refuses=True)) as desk:
        refused = await desk.press(f"/sessions/{session}/demo-scan", status=404)
        assert "try again in a moment" in refused.text


async def test_elsewhere_there_is_no_such_phone(board: Board, desk: Desk) -> None:
    session = await waiting(board)
    assert "demo-scan" not in (await desk.page(f"/sessions/{session}/link")).html
    await desk.press(f"/sessions/{session}/demo-scan", status=404)


# Words and safety.


async def test_in_hebrew_it_reads_from_right_to_left(board: Board, desk: Desk) -> None:
    session = await waiting(board)
    for path in ("/sessions/new", f"/sessions/{session}/link"):
        page = await desk.page(path, language="he")
        assert 'dir="rtl"' in page.html
        assert "קישור מספר" in page.text
    await board.connected(session, MINE)
    assert "מקושר" in (await desk.page(f"/sessions/{session}/link", language="he")).text


async def test_a_name_is_shown_as_it_was_written(board: Board, desk: Desk) -> None:
    await desk.press("/sessions", name="<b>x</b>")
    page = await desk.page("/sessions/worker_1/link")
    assert "<b>x</b>" in page.text
    assert "<b>x</b>" not in page.html


async def test_nothing_is_made_without_the_pages_own_token(board: Board, desk: Desk) -> None:
    desk.csrf = "wrong"
    await desk.press("/sessions", status=403)
    assert not await board.store.sessions.ids()
