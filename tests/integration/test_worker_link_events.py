"""Each event of a worker does to its session what SPEC 5 says, over real signed HTTP."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from switchboard.domain.accounts import FOREVER
from tests.support.board import PHONES, Board, opened_board, refused
from tests.support.driver import MINUTE
from tests.support.serving import until
from tests.support.socks5 import Mode, Step, Trouble

pytestmark = pytest.mark.anyio

BROKEN = Mode(trouble=Trouble.CLOSE, at=Step.GREETING)


@pytest.fixture
async def board(valkey_url: str, prefix: str, tmp_path: Path) -> AsyncIterator[Board]:
    async with opened_board(valkey_url, prefix, tmp_path) as board:
        await board.proxy()
        yield board


async def status(board: Board, session: str) -> tuple[str, str | None]:
    shown = await board.show(session)
    return shown["status"], shown["reason"]


async def sticky(board: Board, phone: str) -> str | None:
    return await board.store.proxies.sticky(phone)


async def shown_events(board: Board, session: str) -> list[tuple[str, dict[str, Any]]]:
    """What its page shows of its worker's words, oldest first."""
    items = (await board.get(f"/api/sessions/{session}/events", params={"limit": 200}))["items"]
    return [(item["type"], item["data"]) for item in reversed(items) if item["type"].isupper()]


# Codes.


async def test_a_qr_code_makes_it_ready_to_be_scanned_and_is_announced_without_the_code(board: Board) -> None:
    session = await board.running()
    await board.qr(session, "2@secret-code")
    assert await status(board, session) == ("qr_ready", None)
    [announced] = await board.told("session.qr")
    assert announced["sessionId"] == session
    assert "secret-code" not in str(await board.told())
    assert "secret-code" not in str(await shown_events(board, session))


async def test_a_pairing_code_takes_the_place_of_the_order_and_is_not_shown_elsewhere(board: Board) -> None:
    session = await board.running()
    await board.store.sessions.ask(session, "pair", board.now + MINUTE, PHONES[1])
    await board.tell(session, "PAIRING_CODE", {"code": "WXYZ9876", "phoneNumber": PHONES[1]})
    assert await status(board, session) == ("qr_ready", None)
    assert (await board.look(session)).order is None
    code = await board.store.sessions.pairing_code(session)
    assert code is not None
    assert (code.text, code.phone, code.expires_at) == ("WXYZ9876", PHONES[1], None)
    assert len(await board.told("session.pairing_code")) == 1
    assert "WXYZ9876" not in str(await board.told()) + str(await shown_events(board, session))


async def test_a_qr_code_of_a_connected_session_is_not_believed(board: Board) -> None:
    session = await board.linked()
    await board.qr(session)
    assert await status(board, session) == ("connected", None)


# Connected.


async def test_connected_makes_the_place_permanent(board: Board) -> None:
    session = await board.running()
    await board.qr(session)
    assert await board.client.get(f"{board.prefix}session:temp:{session}") == "proxy_1"
    await board.connected(session, PHONES[1])
    assert not await board.client.exists(f"{board.prefix}session:temp:{session}")
    assert await sticky(board, PHONES[1]) == "proxy_1"
    shown = await board.show(session)
    assert (shown["status"], shown["phone"], shown["scanBy"]) == ("connected", PHONES[1], None)
    assert [event["account"] for event in await board.told("session.connected")] == [PHONES[1]]
    await board.up(10 * MINUTE)
    assert (await board.show(session))["status"] == "connected"  # no scan is waited for any more


async def test_a_phone_with_a_proxy_of_its_own_moves_there_and_is_restarted(board: Board) -> None:
    await board.linked(PHONES[1])
    other = await board.proxy()
    session = await board.running(proxy=other)
    await board.connected(session, PHONES[1])
    shown = await board.show(session)
    assert (shown["status"], shown["reason"], shown["proxyId"]) == ("starting", "moving_to_own_proxy", "proxy_1")
    assert await board.on(other) == set()
    [moved] = await board.told("proxy.moved")
    assert (moved["from"], moved["to"]) == (other, "proxy_1")
    await board.up()
    worker = board.worker(session)
    assert worker is not None
    assert worker.environment["PROXY_URL"].endswith(f":{board.socks['proxy_1'].port}")
    await board.connected(session, PHONES[1])
    assert await status(board, session) == ("connected", None)


async def test_a_phone_whose_own_proxy_is_bad_stays_here_for_good(board: Board) -> None:
    await board.linked(PHONES[1])
    await board.store.proxies.mark("proxy_1", ok=False, reason="unreachable", now=board.now)
    other = await board.proxy()
    session = await board.running(proxy=other)
    await board.connected(session, PHONES[1])
    assert await status(board, session) == ("connected", None)
    assert await sticky(board, PHONES[1]) == other


async def test_a_phone_whose_own_proxy_is_full_is_split_and_that_is_told(board: Board) -> None:
    await board.linked(PHONES[1])
    await board.fill("proxy_1", 3)
    other = await board.proxy()
    session = await board.provision(proxy=other)
    await board.all_up()
    await board.connected(session, PHONES[1])
    assert await status(board, session) == ("connected", None)
    assert (await board.look(session)).proxy == other
    assert await sticky(board, PHONES[1]) == "proxy_1"
    [split] = await board.told("proxy.split")
    assert (split["proxyId"], split["own"], split["sessionId"]) == (other, "proxy_1", session)


async def test_the_fifth_session_of_a_phone_is_refused_logged_out_and_its_place_free(board: Board) -> None:
    second = await board.proxy()
    for _ in range(4):
        await board.linked(PHONES[1], proxy="proxy_1")
    fifth = await board.running(proxy=second)
    await board.connected(fifth, PHONES[1])
    assert await status(board, fifth) == ("failed", "too_many_sessions")
    assert fifth not in await board.store.accounts.sessions_of(PHONES[1])
    await board.settle()
    assert (await board.claim(fifth))["order"]["type"] == "logout"
    await board.disconnected(fifth, "logged_out")
    await board.settle()
    assert board.worker(fifth) is None
    assert await status(board, fifth) == ("failed", "too_many_sessions")  # why it is logged out stays to be seen
    assert await board.on(second) == set()


async def test_a_session_that_is_scanned_by_another_phone_leaves_the_first(board: Board) -> None:
    session = await board.running(phone=PHONES[1])
    await board.connected(session, PHONES[2])
    assert not await board.client.exists(f"{board.prefix}phone:sessions:{PHONES[1]}")
    assert await board.store.accounts.sessions_of(PHONES[2]) == {session}


# Disconnected.


async def test_logged_out_ends_it_until_somebody_starts_it_to_scan(board: Board) -> None:
    session = await board.linked()
    folder = board.folder / session
    folder.mkdir()
    await board.disconnected(session, "logged_out")
    assert await status(board, session) == ("logged_out", "logged_out")
    await board.up()
    assert board.worker(session) is None
    assert not folder.exists()
    await board.up(10 * MINUTE)
    assert board.worker(session) is None


async def test_replaced_ends_it_until_a_person_decides_and_keeps_its_auth_data(board: Board) -> None:
    session = await board.linked()
    folder = board.folder / session
    folder.mkdir()
    await board.disconnected(session, "replaced")
    assert await status(board, session) == ("failed", "replaced")
    await board.up()
    assert board.worker(session) is None
    assert folder.exists()


@pytest.mark.parametrize("reason", ["restart_required", "qr_expired", "stopped"])
async def test_what_explains_itself_leaves_the_proxy_alone(board: Board, reason: str) -> None:
    session = await board.linked()
    seen = board.socks["proxy_1"].connections
    await board.disconnected(session, reason)
    assert await status(board, session) == ("disconnected", reason)
    await board.settle()
    assert board.worker(session) is not None
    assert board.socks["proxy_1"].connections == seen


async def test_a_lost_connection_over_a_good_proxy_is_left_to_the_worker(board: Board) -> None:
    session = await board.linked()
    seen = board.socks["proxy_1"].connections
    worker = board.worker(session)
    await board.disconnected(session, "connection_lost")
    await until(lambda: board.socks["proxy_1"].connections == seen + 1)
    await board.store.proxies.find("proxy_1")
    await board.settle()
    assert board.worker(session) == worker
    await board.connected(session, PHONES[1])
    assert (await board.store.proxies.find("proxy_1")).ok


async def test_a_lost_connection_over_a_dead_proxy_is_failed_over(board: Board) -> None:
    session = await board.linked()
    other = await board.proxy()
    board.socks["proxy_1"].mode = BROKEN
    await board.disconnected(session, "connection_lost")

    async def bad() -> bool:
        return not (await board.store.proxies.find("proxy_1")).ok

    await until(bad)
    await board.up()
    worker = board.worker(session)
    assert worker is not None
    assert worker.environment["PROXY_URL"].endswith(f":{board.socks[other].port}")
    assert await sticky(board, PHONES[1]) == other


# The other words about its state.


async def test_a_passkey_is_asked_for_and_no_worker_has_one(board: Board) -> None:
    session = await board.running()
    await board.tell(session, "STATUS_CHANGE", {"status": "passkey_required"})
    assert await status(board, session) == ("passkey_required", "passkey_required")
    assert not (await board.look(session)).scanning
    await board.settle()
    assert board.worker(session) is None
    assert await board.on("proxy_1") == set()


async def test_a_worker_that_gives_up_is_given_up(board: Board) -> None:
    session = await board.linked()
    await board.tell(session, "STATUS_CHANGE", {"status": "failed"})
    assert await status(board, session) == ("failed", "worker_gave_up")
    assert await board.on("proxy_1") == {session}  # it is still linked


@pytest.mark.parametrize("word", ["starting", "qr_ready", "connected", "paused", "logged_out", "stopped"])
async def test_a_mere_word_changes_nothing_that_an_event_of_its_own_would_say(board: Board, word: str) -> None:
    session = await board.linked()
    await board.tell(session, "STATUS_CHANGE", {"status": word})
    assert await status(board, session) == ("connected", None)


async def test_a_restriction_holds_the_account_until_a_person_resumes_it(board: Board) -> None:
    session = await board.linked()
    await board.tell(session, "STATUS_CHANGE", {"status": "restricted"})
    shown = await board.show(session)
    assert (shown["status"], shown["pausedUntil"], shown["pausedReason"]) == ("restricted", None, "restricted")
    assert (await board.store.accounts.look(phone=PHONES[1], now=board.now)).account.restricted_until == FOREVER
    assert (await board.command(session, "resume"))["status"] == "connected"


@pytest.mark.parametrize(("code", "restricted"), [("status_403", True), ("403", True), ("status_401", False)])
async def test_a_session_that_whatsapp_does_not_let_in_is_not_tried_again(
    board: Board, code: str, restricted: bool
) -> None:
    session = await board.linked()
    await board.tell(session, "AUTH_FAILURE", {"code": code})
    assert await status(board, session) == ("failed", f"auth_failure:{code}")
    await board.up()
    assert board.worker(session) is None
    account = (await board.store.accounts.look(phone=PHONES[1], now=board.now)).account
    assert account.restricted_until == (FOREVER if restricted else 0)


# Its proxy.


async def test_a_proxy_error_marks_it_bad_and_moves_the_session_without_a_scan(board: Board) -> None:
    session = await board.linked()
    bystander = await board.linked(PHONES[2])
    other = await board.proxy()
    board.now += 1
    await board.tell(session, "PROXY_ERROR", {"code": "proxy_refused", "detail": "The proxy did not answer."})
    assert await status(board, session) == ("disconnected", "proxy_error")
    [bad] = await board.told("proxy.bad")
    assert (bad["proxyId"], bad["reason"]) == ("proxy_1", "proxy_refused")
    await board.up()
    worker = board.worker(session)
    assert worker is not None
    assert worker.environment["PROXY_URL"].endswith(f":{board.socks[other].port}")
    assert (await board.look(session)).scan_by is None
    [moved] = await board.told("proxy.failover")
    assert (moved["sessionId"], moved["from"], moved["to"]) == (session, "proxy_1", other)
    assert await status(board, bystander) == ("connected", None)  # its own link works: it is not disturbed
    shown = (await board.get("/api/proxies"))["items"][0]
    assert (shown["status"], shown["reason"], shown["sessions"]) == ("BAD", "proxy_refused", [bystander])


async def test_a_proxy_error_older_than_its_place_or_its_start_is_about_another_proxy(board: Board) -> None:
    session = await board.linked()
    known = await board.look(session)
    data = {"code": "proxy_refused", "detail": ""}
    for n, at in enumerate((known.bound_at - 1, known.bound_at, known.started_at - 1), start=1):
        await board.tell(session, "PROXY_ERROR", data, at=at, number=("journal1", n))
    assert await status(board, session) == ("connected", None)
    assert (await board.store.proxies.find("proxy_1")).ok
    await board.tell(session, "PROXY_ERROR", data, at=known.started_at, number=("journal1", 4))
    assert not (await board.store.proxies.find("proxy_1")).ok


async def test_a_worker_that_was_replaced_is_not_believed_any_more(board: Board) -> None:
    session = await board.linked()
    await board.command(session, "restart")  # the old worker still runs, and talks
    await board.tell(session, "PROXY_ERROR", {"code": "proxy_refused", "detail": ""})
    await board.connected(session, PHONES[1])
    await board.disconnected(session, "logged_out")
    await board.tell(session, "PING", {"socketOpen": True, "lastInboundAt": board.now})
    assert await status(board, session) == ("starting", "restart")
    assert (await board.store.proxies.find("proxy_1")).ok


async def test_a_proxy_error_that_shows_credentials_is_refused_and_kept_nowhere(board: Board) -> None:
    session = await board.linked()
    data = {"code": "refused", "detail": "socks5h://us3r-never-shown:p4ss@127.0.0.1 refused"}
    body = {"sessionId": session, "type": "PROXY_ERROR", "timestamp": board.now, "data": data}
    refused(await board.signed(session, "/api/webhook", body), 400, "INVALID_REQUEST", "shows credentials")
    assert (await board.store.proxies.find("proxy_1")).ok


# Its life.


@pytest.mark.parametrize(
    ("data", "counts"),
    [
        ({"socketOpen": True, "lastInboundAt": 0}, True),
        ({"socketOpen": True, "lastInboundAt": -180_000}, True),
        ({"socketOpen": True, "lastInboundAt": -180_001}, False),
        ({"socketOpen": False, "lastInboundAt": 0}, False),
        ({"socketOpen": True, "lastInboundAt": None}, False),
    ],
)
async def test_a_ping_counts_only_if_it_proves_something(board: Board, data: dict[str, Any], counts: bool) -> None:
    session = await board.linked()
    before = (await board.look(session)).last_ping
    board.now += MINUTE
    heard = None if data["lastInboundAt"] is None else board.now + data["lastInboundAt"]
    await board.tell(session, "PING", data | {"lastInboundAt": heard})
    assert (await board.look(session)).last_ping == (board.now if counts else before)


async def test_before_it_is_linked_a_worker_lives_by_saying_so(board: Board) -> None:
    session = await board.running()
    board.now += MINUTE
    await board.tell(session, "PING", {"socketOpen": False, "lastInboundAt": None})
    assert (await board.look(session)).last_ping == board.now


async def test_pings_are_kept_nowhere(board: Board) -> None:
    session = await board.linked()
    told = await board.told()
    shown = await shown_events(board, session)
    for _ in range(3):
        await board.tell(session, "PING", {"socketOpen": True, "lastInboundAt": board.now})
    assert await board.told() == told
    assert await shown_events(board, session) == shown
