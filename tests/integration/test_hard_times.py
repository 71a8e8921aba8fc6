"""What must not be made worse: a network of our own that is away, workers that cry wolf, words from before, clocks
that jump, a second orchestrator."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from switchboard.domain.accounts import FOREVER
from switchboard.domain.restarts import RestartRules
from switchboard.domain.sessions import State
from switchboard.orchestrator.folders import FolderLock
from switchboard.orchestrator.watchdog import Watchdog
from switchboard.runners.base import AlreadyRunning, Handle
from switchboard.runners.memory import MemoryRunner
from switchboard.runners.spec import WorkerSpec
from tests.support.board import INTERVAL, PHONES, Board, opened_board, running
from tests.support.driver import HOUR, MINUTE
from tests.support.serving import until
from tests.support.socks5 import GOOD, Mode, Step, Trouble

pytestmark = pytest.mark.anyio

OUT_OF_ORDER = Mode(trouble=Trouble.RESET, at=Step.ACCEPT)
PROXY_ERROR = {"code": "proxy_refused", "detail": ""}


@pytest.fixture
async def board(valkey_url: str, prefix: str, tmp_path: Path) -> AsyncIterator[Board]:
    async with opened_board(valkey_url, prefix, tmp_path) as board:
        await board.proxy()
        yield board


# Proxies.


async def test_while_nothing_can_be_reached_nobody_is_moved_about(board: Board) -> None:
    """Our own network is away: every proxy looks dead. Each session keeps its place and comes back to it."""
    await board.proxy()
    sessions = [await board.linked(PHONES[1]), await board.linked(PHONES[2])]
    homes = [(await board.look(session)).proxy for session in sessions]
    for server in board.socks.values():
        server.mode = OUT_OF_ORDER
    board.now += 1
    for session in sessions:
        await board.tell(session, "PROXY_ERROR", PROXY_ERROR)
    await board.up()
    assert [(await board.look(session)).proxy for session in sessions] == homes
    assert [(await board.show(session))["reason"] for session in sessions] == ["waiting_for_proxy"] * 2
    assert not board.world.workers

    for server in board.socks.values():
        server.mode = GOOD
    await board.orchestrator.care.round()
    await board.all_up()
    assert [(await board.look(session)).proxy for session in sessions] == homes
    assert [await board.store.proxies.sticky(phone) for phone in PHONES[1:3]] == homes
    assert not await board.told("proxy.failover")


async def test_a_session_moves_past_a_proxy_that_turns_out_not_to_work(board: Board) -> None:
    session = await board.linked()
    dead, alive = await board.proxy(), await board.proxy()
    board.socks[dead].mode = OUT_OF_ORDER
    board.now += 1
    await board.tell(session, "PROXY_ERROR", PROXY_ERROR)
    await board.up()
    assert (await board.look(session)).proxy == alive
    assert not (await board.store.proxies.find(dead)).ok


async def test_a_worker_that_cries_wolf_does_not_walk_through_the_pool(board: Board) -> None:
    """Each report of a session that never connects in between is followed by a longer wait."""
    for _ in range(4):
        await board.proxy()
    session = await board.linked()
    waits = []
    for _ in range(4):
        board.now += 1
        await board.tell(session, "PROXY_ERROR", PROXY_ERROR)
        told = board.now
        while board.worker(session) is None or (await board.look(session)).started_at < told:
            await board.up(500)
        waits.append((await board.look(session)).started_at - told)
    assert waits == sorted(waits)
    assert waits[-1] >= 30_000
    await board.connected(session, PHONES[1])
    board.now += 1
    await board.tell(session, "PROXY_ERROR", PROXY_ERROR)
    told = board.now
    await board.up()
    assert (await board.look(session)).started_at - told <= INTERVAL, "it had connected: this is its first fault again"


async def test_a_wrong_password_for_a_known_proxy_changes_nothing(board: Board) -> None:
    good = await board.store.proxies.url_of("proxy_1")
    assert good is not None
    wrong = good.url.replace("never%3Ashown", "oops")
    answer = await board.ask("POST", "/api/proxies", json={"url": wrong})
    assert answer.status_code == 400
    assert "Nothing was changed." in answer.json()["message"]
    assert await board.store.proxies.url_of("proxy_1") == good
    assert (await board.store.proxies.find("proxy_1")).ok


async def test_a_worker_with_an_old_password_is_started_anew_and_burns_nothing(board: Board) -> None:
    session = await board.linked()
    good = await board.store.proxies.url_of("proxy_1")
    assert good is not None
    board.now += 1
    renewed = type(good)(good.host, good.port, good.user, "new")
    await board.store.proxies.add(renewed, "api", board.now)
    board.now += 1
    await board.tell(session, "PROXY_ERROR", PROXY_ERROR)
    assert (await board.store.proxies.find("proxy_1")).ok
    await board.up()
    worker = board.worker(session)
    assert worker is not None
    assert worker.environment["PROXY_URL"] == renewed.url


async def test_a_place_is_free_only_once_its_worker_is_gone(board: Board) -> None:
    sessions = await board.fill("proxy_1")
    await board.all_up()
    await board.command(sessions[0], "stop")
    assert len(await board.on("proxy_1")) == 4, "its worker still leaves by this proxy"
    answer = await board.ask("POST", "/api/sessions/provision", json={})
    assert answer.json()["error"] == "NO_PROXY_AVAILABLE"
    await board.settle()
    assert await board.on("proxy_1") == set(sessions[1:])
    await board.provision()


# Words and workers.


async def test_what_a_dead_worker_wrote_down_is_no_news_of_the_next_one(board: Board) -> None:
    session = await board.linked()
    board.now += MINUTE
    spoken = board.now
    await board.command(session, "restart")
    board.now += MINUTE
    await board.up()
    await board.connected(session, PHONES[1], at=spoken)
    assert (await board.look(session)).state is State.STARTING, "its own link is not open yet"
    await board.connected(session, PHONES[1])
    assert (await board.look(session)).state is State.CONNECTED


async def test_a_worker_that_somebody_else_started_is_found_and_replaced(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await board.provision()
    start = MemoryRunner.start

    async def started_already(runner: MemoryRunner, spec: WorkerSpec) -> Handle:
        monkeypatch.setattr(MemoryRunner, "start", start)
        await start(runner, spec)
        raise AlreadyRunning("There is one.")

    monkeypatch.setattr(MemoryRunner, "start", started_already)
    await board.all_up()
    found = await board.look(session)
    assert board.worker(session) is not None
    assert found.is_heard
    assert found.ends == ()


async def test_the_reason_of_an_end_is_not_overwritten_by_the_worker_that_obeys(board: Board) -> None:
    session = await board.linked()
    await board.command(session, "logout")
    await board.disconnected(session, "logged_out")
    shown = await board.show(session)
    assert (shown["status"], shown["reason"]) == ("logged_out", "by_request")
    assert len(await board.told("session.logged_out")) == 1
    await board.settle()
    assert board.worker(session) is None
    assert await board.on("proxy_1") == set()


async def test_a_log_out_that_nobody_could_tell_whatsapp_says_so(board: Board) -> None:
    session = await board.linked()
    await board.command(session, "logout")
    board.world.workers.clear()
    await board.settle()
    shown = await board.show(session)
    assert (shown["status"], shown["reason"]) == ("logged_out", "logout_unconfirmed")


async def test_a_restriction_keeps_the_end_that_whatsapp_stated(board: Board) -> None:
    session = await board.linked()
    await board.store.accounts.restrict(PHONES[1], board.now + HOUR, board.now)
    await board.tell(session, "STATUS_CHANGE", {"status": "restricted"})
    board.now += HOUR
    assert (await board.show(session))["status"] == "connected"


async def test_a_linked_session_that_shows_a_code_again_needs_a_scan_within_the_time(board: Board) -> None:
    """Its auth data is gone, whoever took it. Another phone may scan it then, and it does not wait for ever."""
    session = await board.linked(PHONES[1])
    await board.command(session, "restart")
    await board.up()
    await board.qr(session)
    shown = await board.show(session)
    assert shown["status"] == "qr_ready"
    assert shown["scanBy"] is not None
    await board.connected(session, PHONES[2])
    assert (await board.show(session))["phone"] == PHONES[2]
    assert await board.store.accounts.sessions_of(PHONES[1]) == set()


async def test_an_account_can_not_be_taken_over_by_a_worker_of_another(board: Board) -> None:
    victim, liar = await board.linked(PHONES[1]), await board.linked(PHONES[2])
    await board.connected(liar, PHONES[1])
    assert (await board.look(liar)).phone == PHONES[2]
    assert await board.store.accounts.sessions_of(PHONES[1]) == {victim}
    body = {"phoneNumber": PHONES[2], "jid": f"{PHONES[1]}:3@s.whatsapp.net", "fingerprint": "x"}
    answer = await board.signed(
        liar, "/api/webhook", {"sessionId": liar, "type": "CONNECTED", "timestamp": board.now, "data": body}
    )
    assert answer.status_code == 400


async def test_a_key_of_some_sessions_neither_adds_proxies_nor_pauses_for_others(board: Board) -> None:
    mine, theirs = await board.linked(PHONES[1]), await board.linked(PHONES[1])
    headers = {"X-API-Key": await board.key("admin", sessions=(mine, "new"))}
    _, url = await board.socks5(user="someone-else")
    body = {"sessionId": "new", "proxyOverride": url}
    assert (await board.ask("POST", "/api/sessions", json=body, headers=headers)).status_code == 403
    assert (await board.ask("POST", f"/api/sessions/{mine}/pause", headers=headers)).status_code == 403
    assert (await board.show(theirs))["status"] == "connected"


# Time.


async def test_a_clock_that_was_set_back_holds_nobody_up(board: Board) -> None:
    await board.running()
    board.now -= HOUR
    session = await board.provision()
    await board.settle()
    assert board.worker(session) is not None


async def test_a_machine_that_slept_accuses_nobody_of_silence(board: Board) -> None:
    session = await board.linked()
    generation = (await board.look(session)).generation
    dog = Watchdog(
        board.store,
        RestartRules(),
        180_000,
        interval_ms=20,
        clock=board.clock,
    )
    rounds = 0
    look = dog.round

    async def counted() -> None:
        nonlocal rounds
        await look()
        rounds += 1

    dog.round = counted  # type: ignore[method-assign]
    async with running(dog.run()):
        await until(lambda: rounds > 1)
        board.now += HOUR  # between two rounds
        seen = rounds
        await until(lambda: rounds > seen + 2)
    assert (await board.look(session)).generation == generation


# Two of us.


async def test_of_two_orchestrators_in_one_folder_one_starts_workers(tmp_path: Path) -> None:
    first, second = FolderLock(tmp_path / "lock"), FolderLock(tmp_path / "lock")
    assert first.hold()
    assert first.hold()
    assert not second.hold()
    del first
    await asyncio.sleep(0)
    assert second.hold()


async def test_a_fleet_is_taken_over_only_when_told_to(board: Board) -> None:
    leader = board.store.leader
    assert await leader.hold("here")
    assert await leader.hold("here")
    assert not await leader.hold("there")
    await leader.take_over("there")
    assert await leader.hold("there")
    assert not await leader.hold("here")


async def test_after_the_clock_was_set_back_words_still_count(board: Board) -> None:
    session = await board.running()
    board.now -= HOUR
    await board.connected(session, PHONES[1])
    assert (await board.look(session)).state is State.CONNECTED


async def test_a_blocked_account_is_held_though_the_first_word_of_it_was_lost(board: Board) -> None:
    """The session had failed already, by another word or by the same one before a crash."""
    session = await board.linked()
    await board.tell(session, "STATUS_CHANGE", {"status": "failed"})
    await board.tell(session, "AUTH_FAILURE", {"code": "403"})
    account = (await board.store.accounts.look(phone=PHONES[1], now=board.now)).account
    assert account.restricted_until == FOREVER


async def test_a_session_that_says_it_is_connected_and_has_no_worker_is_started(board: Board) -> None:
    session = await board.provision()
    await board.connected(session, PHONES[1])  # by somebody, before its own worker was started
    await board.all_up()
    assert board.worker(session) is not None
    assert (await board.look(session)).state is State.STARTING
