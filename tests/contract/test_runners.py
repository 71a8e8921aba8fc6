"""What every way to run workers promises. One suite for all of them; what only one of them does is tested apart."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from switchboard.runners.base import AlreadyRunning, Handle, Observed, Runner, RunnerUnavailable, StartFailed
from tests.support.runner_benches import Bench, MemoryBench, ProcessBench, clock
from tests.support.serving import until

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["process", "memory"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    bench: Bench = ProcessBench(tmp_path) if request.param == "process" else MemoryBench()
    yield bench
    bench.clean_up()


@pytest.fixture
def runner(bench: Bench) -> Runner:
    return bench.runner()


async def seen(runner: Runner, handle: Handle) -> Observed:
    observed = await runner.inspect(handle)
    assert observed is not None
    return observed


async def has_ended(runner: Runner, handle: Handle) -> Observed:
    async def ended() -> bool:
        return not (await seen(runner, handle)).running

    await until(ended)
    return await seen(runner, handle)


async def test_nothing_runs_at_first(runner: Runner) -> None:
    assert await runner.recover([]) == []
    assert await runner.list() == []


async def test_a_started_worker_is_listed_as_running(bench: Bench, runner: Runner) -> None:
    before = clock()
    handle = await runner.start(bench.spec("s1", generation=7))
    [observed] = await runner.list()
    assert (observed.session_id, observed.generation, observed.running) == ("s1", 7, True)
    assert observed.handle == handle
    assert observed.exit_code is None
    assert before <= observed.started_at <= clock()


async def test_a_handle_names_its_runner_and_its_start(bench: Bench, runner: Runner) -> None:
    handle = await runner.start(bench.spec("s1", generation=7))
    assert (handle.runner, handle.session_id, handle.generation) == (runner.name, "s1", 7)


async def test_a_handle_is_as_good_after_it_was_kept_as_text(bench: Bench, runner: Runner) -> None:
    kept = Handle.load((await runner.start(bench.spec())).dump())
    assert (await seen(runner, kept)).running
    await runner.stop(kept)
    assert await runner.list() == []


async def test_workers_of_several_sessions_run_side_by_side(bench: Bench, runner: Runner) -> None:
    names = ["s1", "s2", "s3"]
    handles = await asyncio.gather(*(runner.start(bench.spec(name)) for name in names))
    await runner.stop(handles[1])
    assert {one.session_id: one.running for one in await runner.list()} == {"s1": True, "s3": True}


async def test_a_second_worker_of_a_session_is_refused(bench: Bench, runner: Runner) -> None:
    handle = await runner.start(bench.spec(generation=1))
    with pytest.raises(AlreadyRunning):
        await runner.start(bench.spec(generation=2))
    assert [one.handle for one in await runner.list()] == [handle]


async def test_of_many_starts_at_once_exactly_one_wins(bench: Bench, runner: Runner) -> None:
    runners = [runner, runner, bench.runner(), bench.runner()]
    starts = (one.start(bench.spec(generation=number)) for number, one in enumerate(runners))
    results = await asyncio.gather(*starts, return_exceptions=True)
    [winner] = [result for result in results if isinstance(result, Handle)]
    assert [type(result) for result in results if result is not winner] == [AlreadyRunning] * 3
    assert [one.handle for one in await runner.list()] == [winner]
    await bench.ready(winner)
    assert bench.alive("s1") == 1


async def test_a_stopped_worker_is_gone_and_forgotten(bench: Bench, runner: Runner) -> None:
    handle = await runner.start(bench.spec())
    await bench.ready(handle)
    assert bench.alive("s1") == 1
    await runner.stop(handle)
    assert bench.alive("s1") == 0
    assert await runner.list() == []
    assert await runner.inspect(handle) is None


async def test_a_worker_is_stopped_before_it_is_up(bench: Bench, runner: Runner) -> None:
    await runner.stop(await runner.start(bench.spec()))
    assert bench.alive("s1") == 0
    assert await runner.list() == []


async def test_stopping_twice_does_no_harm(bench: Bench, runner: Runner) -> None:
    handle = await runner.start(bench.spec())
    await asyncio.gather(runner.stop(handle), runner.stop(handle))
    await runner.stop(handle)
    assert await runner.list() == []


@pytest.mark.parametrize("does", ["ignore-term", "child", "ignore-term child"])
async def test_a_worker_that_does_not_want_to_end_is_made_to(bench: Bench, does: str) -> None:
    runner = bench.impatient_runner()
    handle = await runner.start(bench.spec(does=does))
    await bench.ready(handle)
    await runner.stop(handle)
    assert bench.alive("s1") == 0
    assert await runner.list() == []


async def test_a_session_is_started_again_after_a_stop(bench: Bench, runner: Runner) -> None:
    await runner.stop(await runner.start(bench.spec(generation=1)))
    handle = await runner.start(bench.spec(generation=2))
    assert [(one.handle, one.running) for one in await runner.list()] == [(handle, True)]


async def test_a_worker_that_ended_by_itself_is_seen_with_its_exit_code(bench: Bench, runner: Runner) -> None:
    handle = await runner.start(bench.spec(does="exit=3"))
    assert (await has_ended(runner, handle)).exit_code == 3
    assert [(one.running, one.exit_code) for one in await runner.list()] == [(False, 3)]


async def test_a_worker_that_was_killed_is_seen_with_the_code_of_the_signal(bench: Bench, runner: Runner) -> None:
    handle = await runner.start(bench.spec())
    await bench.ready(handle)
    bench.crash(handle)
    assert (await has_ended(runner, handle)).exit_code == 137


async def test_a_worker_that_ended_is_forgotten_when_it_is_stopped(bench: Bench, runner: Runner) -> None:
    handle = await runner.start(bench.spec(does="exit=0"))
    await has_ended(runner, handle)
    await runner.stop(handle)
    assert await runner.list() == []


async def test_a_worker_that_ended_is_replaced_by_the_next_start(bench: Bench, runner: Runner) -> None:
    old = await runner.start(bench.spec(does="exit=3"))
    await has_ended(runner, old)
    new = await runner.start(bench.spec())
    assert [(one.handle, one.running, one.exit_code) for one in await runner.list()] == [(new, True, None)]
    assert await runner.inspect(old) is None


async def test_stopping_a_worker_that_was_replaced_touches_nothing(bench: Bench, runner: Runner) -> None:
    old = await runner.start(bench.spec(generation=1, does="exit=3"))
    await has_ended(runner, old)
    new = await runner.start(bench.spec(generation=1))
    await runner.stop(old)
    assert (await seen(runner, new)).running


async def test_a_worker_nobody_knows_is_stopped_without_ado(bench: Bench, runner: Runner) -> None:
    handle = await runner.start(bench.spec())
    await runner.stop(handle)
    await bench.runner().stop(handle)
    assert await bench.runner().inspect(handle) is None


async def test_handles_of_others_are_passed_over(bench: Bench, runner: Runner) -> None:
    handle = await runner.start(bench.spec())
    foreign = [replace(handle, runner="another"), replace(handle, version=99), Handle(runner.name, 99, "s9", 1)]
    assert [one.handle for one in await bench.runner().recover(foreign)] == [handle]
    for other in foreign:
        await runner.stop(other)
        assert await runner.inspect(other) is None
    assert (await seen(runner, handle)).running


async def test_the_next_runner_takes_over_what_is_alive(bench: Bench, runner: Runner) -> None:
    handle = await runner.start(bench.spec())
    successor = bench.runner()
    assert [(one.handle, one.running) for one in await successor.recover([handle])] == [(handle, True)]
    with pytest.raises(AlreadyRunning):
        await successor.start(bench.spec(generation=2))
    await successor.stop(handle)
    assert await successor.list() == []
    assert await runner.list() == []


async def test_the_next_runner_finds_workers_whose_handles_were_lost(bench: Bench, runner: Runner) -> None:
    handle = await runner.start(bench.spec())
    assert [(one.handle, one.running) for one in await bench.runner().recover([])] == [(handle, True)]


async def test_the_next_runner_sees_who_ended_while_nobody_looked(bench: Bench, runner: Runner) -> None:
    handle = await runner.start(bench.spec())
    await bench.ready(handle)
    bench.crash(handle)
    await has_ended(runner, handle)
    successor = bench.runner()
    assert [(one.handle, one.running) for one in await successor.recover([handle])] == [(handle, False)]
    assert (await seen(successor, await successor.start(bench.spec(generation=2)))).running


async def test_a_worker_that_cannot_be_started_leaves_nothing_behind(bench: Bench) -> None:
    runner = bench.without_program()
    with pytest.raises((StartFailed, RunnerUnavailable)):
        await runner.start(bench.spec())
    assert bench.alive("s1") == 0
    assert await runner.list() == []


async def test_while_its_ground_is_away_it_says_so_and_changes_nothing(bench: Bench, runner: Runner) -> None:
    handle = await runner.start(bench.spec("s1"))
    bench.take_away()
    for call in (
        runner.start(bench.spec("s2")),
        runner.stop(handle),
        runner.inspect(handle),
        runner.list(),
        runner.recover([handle]),
    ):
        with pytest.raises(RunnerUnavailable):
            await call
    bench.bring_back()
    assert [(one.handle, one.running) for one in await runner.list()] == [(handle, True)]


@pytest.mark.parametrize("session_id", ["", "../s1", "a/b", "-a", "a.b", "a" * 65, "a\n"])
async def test_what_is_no_session_id_is_refused(bench: Bench, runner: Runner, session_id: str) -> None:
    with pytest.raises(ValueError, match="not a session id"):
        await runner.start(bench.spec(session_id))
    with pytest.raises(ValueError, match="not a session id"):
        await runner.stop(Handle(runner.name, 1, session_id, 1))
