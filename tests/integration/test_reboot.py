"""Two hundred sessions after a restart of the machine: one after the other, and none of them asks for a scan."""

from itertools import pairwise
from pathlib import Path

import pytest

from switchboard.domain.proxies import ProxyUrl
from switchboard.domain.sessions import State
from switchboard.runners.memory import slow
from tests.support.board import INTERVAL, Board, opened_board
from tests.support.serving import until

pytestmark = pytest.mark.anyio

MANY = 200
AT_ONCE = 4


async def linked(board: Board, number: int) -> str:
    """As provisioning and a scan leave it, without the detour over HTTP."""
    sessions = board.store.sessions
    outcome, session = await sessions.provision(
        session="", name="", phone="", proxy=f"proxy_{number // 4 + 1}", now=board.now, scan_by=board.now + 1,
        device="Test",
    )  # fmt: skip
    assert outcome == "OK"
    assert await sessions.launch(session, 1, board.now)
    assert (await sessions.connect(session, f"9725{number:08}", board.now)).ok
    return session


async def test_two_hundred_sessions_come_back_spaced_a_few_at_once_and_nobody_scans(
    valkey_url: str, prefix: str, tmp_path: Path
) -> None:
    async with opened_board(valkey_url, prefix, tmp_path) as board:
        for number in range(MANY // 4):
            await board.store.proxies.add(ProxyUrl("192.0.2.1", 1080 + number), "api", board.now)
        sessions = {await linked(board, number) for number in range(MANY)}
        board.world.workers.clear()  # the machine was restarted
        fleet = board.orchestrator.fleet

        await fleet.round()
        await fleet.settled()
        assert {session.state for session in await board.store.sessions.all()} == {State.DISCONNECTED}, (
            "nobody can send"
        )

        started: dict[str, int] = {}
        while len(started) < MANY:
            wait_s = await fleet.round()
            await fleet.settled()
            new = board.world.workers.keys() - started.keys()
            assert len(new) <= 1
            started |= dict.fromkeys(new, board.now)
            board.now += max(1, round(wait_s * 1000))
        assert started.keys() == sessions
        assert all(after - before >= INTERVAL for before, after in pairwise(sorted(started.values())))
        assert board.now - min(started.values()) <= MANY * (INTERVAL + 500)
        assert not [session for session in await board.store.sessions.all() if session.scan_by]


async def test_slow_starts_are_never_more_than_a_few_at_once(valkey_url: str, prefix: str, tmp_path: Path) -> None:
    async with opened_board(valkey_url, prefix, tmp_path) as board:
        for number in range(3):
            await board.store.proxies.add(ProxyUrl("192.0.2.1", 1080 + number), "api", board.now)
        for number in range(12):
            await linked(board, number)
        board.world.workers.clear()
        board.world.fault = slow(3600)
        fleet = board.orchestrator.fleet

        async def under_way() -> int:
            await fleet.round()
            board.now += INTERVAL
            return sum(one.launched == one.generation for one in await board.store.sessions.all())

        async def as_many_as_may_be() -> bool:
            return await under_way() == AT_ONCE

        await until(as_many_as_may_be)
        assert {await under_way() for _ in range(20)} == {AT_ONCE}
        await fleet.abandon()
