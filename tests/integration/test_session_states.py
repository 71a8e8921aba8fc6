"""A session's history of states: every change once, with its moment, until the session is gone."""

import pytest

from switchboard.domain.sessions import State
from switchboard.store import Store
from tests.support.board import PHONES, Board
from tests.support.driver import NOON, Driver

pytestmark = pytest.mark.anyio

STARTING, QR, UP, DOWN = State.STARTING, State.QR_READY, State.CONNECTED, State.DISCONNECTED


async def turn(store: Store, state: State, at: int, reason: str = "") -> None:
    assert (await store.sessions.turn("a", state, reason, at)).ok


async def test_every_change_is_there_from_its_making_to_its_link(board: Board) -> None:
    await board.proxy()
    session = await board.running()
    board.now = NOON + 5_000
    await board.qr(session)
    await board.qr(session, "2@another")
    board.now = NOON + 6_000
    await board.connected(session, PHONES[1])
    await board.connected(session, PHONES[1])
    changes = [(NOON, STARTING), (NOON + 5_000, QR), (NOON + 6_000, UP)]
    assert await board.store.sessions.states(session, 0) == changes


async def test_another_reason_for_the_same_state_is_no_change(store: Store) -> None:
    await store.sessions.register("a", NOON)
    await store.sessions.register("a", NOON + 1)
    await turn(store, DOWN, NOON + 2, "no_ping")
    await turn(store, DOWN, NOON + 3, "waiting_for_proxy")
    assert await store.sessions.states("a", 0) == [(NOON, STARTING), (NOON + 2, DOWN)]


async def test_since_a_moment_means_what_held_then_and_what_came_after(store: Store) -> None:
    await store.sessions.register("a", NOON)
    await turn(store, QR, NOON + 10)
    await turn(store, DOWN, NOON + 20)
    whole = [(NOON, STARTING), (NOON + 10, QR), (NOON + 20, DOWN)]
    assert await store.sessions.states("a", NOON - 1) == whole
    assert await store.sessions.states("a", NOON) == whole
    assert await store.sessions.states("a", NOON + 10) == whole[1:]
    assert await store.sessions.states("a", NOON + 15) == whole[1:]
    assert await store.sessions.states("a", NOON + 99) == whole[2:]
    assert await store.sessions.states("nobody", 0) == []


async def test_changes_of_one_moment_keep_their_order_and_a_clock_set_back_puts_none_out_of_it(store: Store) -> None:
    await store.sessions.register("a", NOON)
    await turn(store, QR, NOON)
    await turn(store, DOWN, NOON)
    await turn(store, QR, NOON - 5)
    assert await store.sessions.states("a", 0) == [(NOON - 5, QR), (NOON, STARTING), (NOON, QR), (NOON, DOWN)]


async def test_the_newest_thousand_are_kept(driver: Driver) -> None:
    store = driver.store
    await store.sessions.register("a", NOON)
    for n in range(1, 1_102):
        await turn(store, (QR, DOWN)[n % 2], NOON + n)
    assert [at - NOON for at, _ in await store.sessions.states("a", 0)] == list(range(102, 1_102))


async def test_a_session_that_is_deleted_leaves_no_history(board: Board) -> None:
    await board.proxy()
    session = await board.running()
    await board.ask("DELETE", f"/api/sessions/{session}")
    await board.up()
    assert await board.store.sessions.get(session) is None
    assert await board.client.keys(f"{board.prefix}session:*{session}") == [f"{board.prefix}session:gone:{session}"]
