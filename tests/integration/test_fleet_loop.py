"""The fleet makes it so: what is wanted runs, through crashes, failing starts, burned proxies and our own restarts."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import structlog

from switchboard.domain.sessions import State
from switchboard.runners.base import RunnerUnavailable
from switchboard.runners.memory import FAILING, NEVER, MemoryWorld, crashing, slow
from tests.support.board import INTERVAL, PHONES, Board, direct_rules, next_orchestrator, opened_board, rounds, running
from tests.support.driver import MINUTE
from tests.support.serving import until

pytestmark = pytest.mark.anyio


@pytest.fixture
async def board(valkey_url: str, prefix: str, tmp_path: Path) -> AsyncIterator[Board]:
    async with opened_board(valkey_url, prefix, tmp_path) as board:
        await board.proxy()
        yield board


# Starting.


async def test_starts_are_spaced(board: Board) -> None:
    sessions = await board.fill("proxy_1")
    for started in range(1, 5):
        await board.up(INTERVAL - 1 if started > 1 else INTERVAL)
        assert board.world.starts == max(1, started - 1)
        await board.up(1 if started > 1 else 0)
        assert board.world.starts == started
    assert set(board.world.workers) == set(sessions)
    await board.up(10 * INTERVAL)
    assert board.world.starts == 4


async def test_the_loop_starts_what_was_asked_for_at_once(board: Board) -> None:
    async with running(board.orchestrator.fleet.run(), board.store.wakeups.run()):
        session = await board.provision()

        async def kept() -> bool:
            return (await board.look(session)).handle is not None

        await until(kept)
        assert board.worker(session) is not None


async def test_our_own_restart_disturbs_no_worker(board: Board) -> None:
    session = await board.linked()
    worker = board.world.workers[session]
    after = next_orchestrator(board)
    await after.fleet.recover()
    await rounds(board, after)
    assert board.world.workers[session] == worker
    assert (await board.look(session)).state is State.CONNECTED


async def test_after_a_restart_of_the_machine_all_come_back_without_a_scan(board: Board) -> None:
    linked = await board.linked()
    scanning = await board.running()
    await board.qr(scanning)
    after = next_orchestrator(board, MemoryWorld())
    await after.fleet.recover()
    await rounds(board, after)
    assert list(board.world.workers) == [scanning]  # somebody holds a phone in hand
    shown = await board.show(linked)
    assert (shown["status"], shown["reason"], shown["scanBy"]) == ("disconnected", "worker_gone", None)
    board.now += INTERVAL
    await rounds(board, after)
    assert set(board.world.workers) == {linked, scanning}
    assert (await board.look(linked)).scan_by is None


async def test_strays_and_workers_that_are_out_of_date_are_stopped(board: Board) -> None:
    session = await board.linked()
    stray = await board.running()
    await board.client.delete(f"{board.prefix}session:{stray}")
    await board.client.srem(f"{board.prefix}sessions", stray)
    await board.client.srem(f"{board.prefix}proxy:sessions:proxy_1", stray)
    await board.command(session, "restart")
    await board.up()
    assert list(board.world.workers) == [session]
    assert board.world.workers[session].generation == 2


# Starts that go wrong.


async def test_a_slow_start_is_begun_once_and_holds_up_nobody(board: Board) -> None:
    slow_one, other = await board.provision(), await board.provision()
    board.world.faults[slow_one] = slow(0.2)
    fleet = board.orchestrator.fleet
    for _ in range(3):
        await fleet.round()
        board.now += INTERVAL
    await until(lambda: board.worker(other) is not None)
    assert board.worker(slow_one) is None
    await fleet.settled()
    assert board.worker(slow_one) is not None
    assert board.world.starts == 2


async def test_a_start_that_never_returns_holds_up_only_itself(board: Board) -> None:
    sessions = await board.fill("proxy_1")
    board.world.faults[sessions[0]] = NEVER
    for session in sessions[1:]:
        board.now += INTERVAL
        await board.orchestrator.fleet.round()
        if session is sessions[1]:  # that round began the one that hangs
            board.now += INTERVAL
            await board.orchestrator.fleet.round()
        await until(lambda session=session: board.worker(session) is not None)  # type: ignore[misc]
    assert board.worker(sessions[0]) is None


@pytest.mark.parametrize(
    ("fault", "reason"), [(FAILING, "not_started"), (crashing(7), "worker_exited:7")], ids=["failing", "crashing"]
)
async def test_what_can_not_run_is_tried_with_growing_gaps_and_given_up(
    board: Board, fault: object, reason: str
) -> None:
    session = await board.provision()
    board.world.fault = fault  # type: ignore[assignment]
    await board.up()
    for gap in (2_000, 8_000, 32_000, 128_000):
        shown = await board.show(session)
        assert shown["status"] == "disconnected"
        assert shown["reason"].startswith(reason)
        before = await board.look(session)
        assert before.not_before == board.now + gap
        await board.up(gap - 1)
        assert (await board.look(session)).ends == before.ends
        await board.up(1)
    shown = await board.show(session)
    assert shown["status"] == "failed"
    assert shown["reason"].startswith(f"crash_loop:{reason}")
    assert shown["proxyId"] is None  # it was never linked
    starts = board.world.starts
    await board.up(60 * MINUTE)
    assert board.world.starts == starts
    board.world.fault = slow(0)
    await board.command(session, "start")
    await board.up()
    assert board.worker(session) is not None


async def test_a_linked_session_in_a_crash_loop_keeps_its_place(board: Board) -> None:
    session = await board.linked()
    for gap in (2_000, 8_000, 32_000, 128_000, 0):
        board.world.crash(session)
        await board.settle()
        await board.up(gap)
    shown = await board.show(session)
    assert (shown["status"], shown["proxyId"], shown["phone"]) == ("failed", "proxy_1", PHONES[1])


async def test_crashes_that_lie_far_apart_are_no_loop(board: Board) -> None:
    session = await board.linked()
    for _ in range(8):
        board.world.crash(session)
        await board.settle()
        known = await board.look(session)
        assert known.state is State.DISCONNECTED
        await board.up(known.not_before - board.now)
        assert board.worker(session) is not None
        await board.up(4 * MINUTE)


async def test_an_engine_that_is_away_is_waited_for_and_counts_as_no_crash(board: Board) -> None:
    session = await board.linked()
    board.world.unavailable = True
    with pytest.raises(RunnerUnavailable):
        await board.orchestrator.fleet.round()
    assert (await board.look(session)).state is State.CONNECTED
    board.world.unavailable = False
    await board.settle()
    new = await board.provision()
    board.world.faults[new] = slow(0.05)
    board.now += INTERVAL
    await board.orchestrator.fleet.round()
    board.world.unavailable = True
    await board.orchestrator.fleet.settled()
    board.world.unavailable = False
    assert ((await board.look(new)).ends, board.worker(new)) == ((), None)
    await board.up(5_000)
    assert board.worker(new) is not None


async def test_an_action_that_fails_does_not_stop_the_others(board: Board) -> None:
    broken = await board.provision()
    proxy = await board.proxy()
    other = await board.provision(proxy=proxy)
    await board.client.hset(f"{board.prefix}proxy:proxy_1", "url", "garbage")
    with structlog.testing.capture_logs() as logs:
        await board.up()
        await board.up()
        await board.up()
    assert ("fleet.action_failed", broken) in [(line["event"], line.get("session")) for line in logs]
    assert board.worker(other) is not None


async def test_an_action_that_fails_is_logged_and_planned_again(board: Board) -> None:
    gone = await board.linked()
    other = await board.linked(PHONES[2])
    await board.command(gone, "logout")
    await board.disconnected(gone, "logged_out")
    await board.command(other, "restart")
    (board.folder / ".aside").write_text("a file where a folder should be")
    (board.folder / gone).mkdir()
    with structlog.testing.capture_logs() as logs:
        await board.up()
    assert ("fleet.action_failed", gone) in [(line["event"], line.get("session")) for line in logs]
    assert board.worker(other) is not None
    (board.folder / ".aside").unlink()
    await board.up()
    assert not (board.folder / gone).exists()


# Proxies.


async def test_without_another_proxy_a_session_waits_off_line_and_never_goes_direct(
    valkey_url: str, prefix: str, tmp_path: Path
) -> None:
    async with opened_board(valkey_url, prefix, tmp_path, direct_rules(tmp_path)) as board:
        await board.proxy()
        session = await board.linked()
        await board.tell(session, "PROXY_ERROR", {"code": "refused", "detail": ""})
        for _ in range(3):
            await board.up(MINUTE)
        shown = await board.show(session)
        assert (shown["status"], shown["reason"]) == ("disconnected", "waiting_for_proxy")
        assert board.worker(session) is None
        told = [event["reason"] for event in await board.told("session.disconnected")]
        assert told == ["proxy_error", "waiting_for_proxy"]
        await board.orchestrator.care.round()
        await board.up()
        worker = board.worker(session)
        assert worker is not None
        assert worker.environment["PROXY_URL"] != "direct"


async def test_a_place_that_becomes_free_goes_to_who_waits_for_one(board: Board) -> None:
    holders = await board.fill("proxy_1")
    await board.all_up()
    bad = await board.proxy()
    waiting = await board.linked(proxy=bad)
    await board.tell(waiting, "PROXY_ERROR", {"code": "refused", "detail": ""})
    await board.up()
    assert (await board.look(waiting)).reason == "waiting_for_proxy"
    await board.http.delete(f"/api/sessions/{holders[0]}")
    await board.up()
    await board.up()
    assert (await board.look(waiting)).proxy == "proxy_1"
    assert board.worker(waiting) is not None


async def test_waiting_for_a_proxy_does_not_keep_the_loop_busy(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    session = await board.linked()
    await board.tell(session, "PROXY_ERROR", {"code": "refused", "detail": ""})
    looks = 0
    fleet = board.orchestrator.fleet
    one_round = fleet.round

    async def counted() -> float:
        nonlocal looks
        looks += 1
        return await one_round()

    monkeypatch.setattr(fleet, "round", counted)
    async with running(fleet.run(), board.store.wakeups.run()):

        async def waits() -> bool:
            return (await board.look(session)).reason == "waiting_for_proxy"

        await until(waits)
        before = looks
        await asyncio.sleep(0.5)  # nothing happens meanwhile, so there is nothing to look at
    assert looks - before < 10


# One at a time.


async def test_while_another_orchestrator_leads_this_one_does_nothing(board: Board) -> None:
    leader = f"{board.prefix}orchestrator:leader"
    await board.client.set(leader, "another")
    session = await board.provision()
    with structlog.testing.capture_logs() as logs:
        async with running(board.orchestrator.fleet.run(), board.store.wakeups.run()):
            await until(lambda: any(line["event"] == "fleet.led_by_another" for line in logs))
            assert board.worker(session) is None
            await board.client.delete(leader)
            await board.command(session, "stop")  # wakes it
            await board.command(session, "start")
            await until(lambda: board.worker(session) is not None)
    assert await board.client.get(leader) == "orchestrator"


async def test_a_person_who_ends_everything_ends_the_workers_and_they_come_back(board: Board) -> None:
    session = await board.linked()
    await board.orchestrator.fleet.stop_workers()
    assert board.world.workers == {}
    shown = await board.show(session)
    assert (shown["status"], shown["reason"]) == ("disconnected", "switchboard_stopped")
    after = next_orchestrator(board)
    board.now += INTERVAL
    await rounds(board, after)
    assert board.worker(session) is not None
