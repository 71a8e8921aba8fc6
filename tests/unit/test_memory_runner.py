"""The faults that can be ordered from the memory runner. What it shares with the others is in tests/contract."""

import asyncio

import pytest

from switchboard.runners.base import AlreadyRunning, RunnerUnavailable, StartFailed
from switchboard.runners.memory import FAILING, NEVER, MemoryRunner, MemoryWorld, crashing, slow
from switchboard.runners.spec import WorkerSpec

pytestmark = pytest.mark.anyio


@pytest.fixture
def world() -> MemoryWorld:
    return MemoryWorld()


@pytest.fixture
def runner(world: MemoryWorld) -> MemoryRunner:
    return MemoryRunner(world, clock=lambda: 5)


def spec(session_id: str = "s1") -> WorkerSpec:
    return WorkerSpec(session_id, 1, {})


async def test_a_start_that_never_comes_back_starts_nothing(world: MemoryWorld, runner: MemoryRunner) -> None:
    world.faults["s1"] = NEVER
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await runner.start(spec("s1"))
    await runner.start(spec("s2"))
    assert [one.session_id for one in await runner.list()] == ["s2"]


async def test_of_two_slow_starts_one_wins(world: MemoryWorld, runner: MemoryRunner) -> None:
    world.fault = slow(0.01)
    results = await asyncio.gather(runner.start(spec()), runner.start(spec()), return_exceptions=True)
    assert [type(result) for result in results[1:]] == [AlreadyRunning]
    assert world.starts == 1


async def test_a_failing_start_starts_nothing(world: MemoryWorld, runner: MemoryRunner) -> None:
    world.fault = FAILING
    with pytest.raises(StartFailed):
        await runner.start(spec())
    assert await runner.list() == []


async def test_a_crashing_worker_has_ended_at_once(world: MemoryWorld, runner: MemoryRunner) -> None:
    world.fault = crashing(3)
    await runner.start(spec())
    assert [(one.running, one.exit_code, one.started_at) for one in await runner.list()] == [(False, 3, 5)]


async def test_a_worker_crashes_when_it_is_told_to(world: MemoryWorld, runner: MemoryRunner) -> None:
    await runner.start(spec())
    world.crash("s1", 9)
    assert [(one.running, one.exit_code) for one in await runner.list()] == [(False, 9)]


async def test_while_the_world_is_away_every_call_says_so(world: MemoryWorld, runner: MemoryRunner) -> None:
    handle = await runner.start(spec())
    world.unavailable = True
    for call in (runner.start(spec("s2")), runner.stop(handle), runner.inspect(handle), runner.list()):
        with pytest.raises(RunnerUnavailable):
            await call
    world.unavailable = False
    assert [one.handle for one in await runner.list()] == [handle]
