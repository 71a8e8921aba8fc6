"""A worker that stopped proving that it lives is restarted; silence that nobody could hear, or nobody owes, is not."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from switchboard.domain.errors import StoreUnavailable
from switchboard.domain.restarts import RestartRules
from switchboard.domain.sessions import State
from switchboard.orchestrator.watchdog import Watchdog
from switchboard.runners.memory import MemoryWorld
from tests.support.board import PHONES, Board, next_orchestrator, opened_board, rounds, running
from tests.support.driver import MINUTE
from tests.support.serving import until

pytestmark = pytest.mark.anyio


@pytest.fixture
async def board(valkey_url: str, prefix: str, tmp_path: Path) -> AsyncIterator[Board]:
    async with opened_board(valkey_url, prefix, tmp_path) as board:
        await board.proxy()
        yield board


async def ping(board: Board, session: str) -> None:
    await board.tell(session, "PING", {"socketOpen": True, "lastInboundAt": board.now})


async def test_a_silent_worker_is_restarted_with_growing_gaps_and_never_given_up(board: Board) -> None:
    session = await board.linked()
    watchdog = board.orchestrator.watchdog
    for silences, gap in enumerate([0, 8_000, 32_000, 128_000, 512_000, 900_000, 900_000]):
        board.now += 180_000
        await watchdog.round()
        assert (await board.look(session)).silences == silences
        board.now += 1
        await watchdog.round()
        known = await board.look(session)
        assert (known.state, known.reason, known.silences) == (State.DISCONNECTED, "no_ping", silences + 1)
        assert known.not_before == board.now + gap
        await board.settle()
        assert (board.worker(session) is None) is bool(gap)
        await board.up(gap)
        worker = board.worker(session)
        assert worker is not None
        assert worker.generation == silences + 2
    await board.connected(session, PHONES[1])
    assert (await board.look(session)).silences == 0


async def test_a_worker_that_proves_that_it_lives_is_left_alone(board: Board) -> None:
    session = await board.linked()
    for _ in range(10):
        board.now += MINUTE
        await ping(board, session)
        await board.orchestrator.watchdog.round()
    assert (await board.look(session)).state is State.CONNECTED


async def test_silence_that_nobody_could_hear_is_not_punished(board: Board) -> None:
    session = await board.linked()
    board.now += 60 * MINUTE  # nobody listened
    watchdog = next_orchestrator(board).watchdog
    await watchdog.round()
    board.now += 180_000
    await watchdog.round()
    assert (await board.look(session)).state is State.CONNECTED
    board.now += 1
    await watchdog.round()
    assert (await board.look(session)).state is State.DISCONNECTED


async def test_nor_is_silence_while_the_store_was_away(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    session = await board.linked()
    watchdog = Watchdog(board.store, RestartRules(), 180_000, 1, board.clock)
    board.now += 179_000
    looks = 0

    async def away() -> None:
        nonlocal looks
        looks += 1
        raise StoreUnavailable

    with monkeypatch.context() as patched:
        patched.setattr(board.store.sessions, "all", away)
        async with running(watchdog.run()):
            await until(lambda: looks > 1)
    board.now += 180_000
    await watchdog.round()
    assert (await board.look(session)).state is State.CONNECTED
    board.now += 1
    await watchdog.round()
    assert (await board.look(session)).reason == "no_ping"


async def test_who_waits_for_their_turn_after_a_restart_of_the_machine_is_not_silent(board: Board) -> None:
    """200 sessions take 400 s to come back: longer than a worker may be silent."""
    await board.linked(PHONES[1])
    waiting = await board.linked(PHONES[2])
    after = next_orchestrator(board, MemoryWorld())
    await rounds(board, after)
    assert board.worker(waiting) is None
    board.now += 180_001
    await after.watchdog.round()
    assert (await board.look(waiting)).reason == "worker_gone"


async def test_who_waits_for_a_proxy_is_not_silent(board: Board) -> None:
    session = await board.linked()
    await board.tell(session, "PROXY_ERROR", {"code": "refused", "detail": ""})
    await board.up()
    board.now += 180_001
    await board.orchestrator.watchdog.round()
    await board.settle()
    told = [event["reason"] for event in await board.told("session.disconnected")]
    assert told == ["proxy_error", "waiting_for_proxy"]
