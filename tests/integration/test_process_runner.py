"""What only the process runner does: locks and pids, logs, the environment; and what is left when its owner is killed.

What it shares with every runner is in tests/contract/test_runners.py.
"""

import asyncio
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from stat import S_IMODE
from typing import Any

import pytest

from switchboard.runners import pids, process
from switchboard.runners.base import AlreadyRunning, Handle, Runner, RunnerUnavailable, StartFailed, Telling, Tended
from switchboard.runners.process import ProcessRunner
from switchboard.runners.records import Records
from switchboard.runners.spec import worker_spec
from tests.support.runner_benches import ProcessBench
from tests.support.serving import until

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[ProcessBench]:
    bench = ProcessBench(tmp_path)
    yield bench
    bench.clean_up()


@pytest.fixture
def runner(bench: ProcessBench) -> ProcessRunner:
    return bench.runner()


def owner(bench: ProcessBench, step: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.support.runner_owner", str(bench.folder), step]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


async def killed_owner(bench: ProcessBench, step: str) -> None:
    with owner(bench, step) as process:
        try:
            if step == "in a stop":
                await until(lambda: (bench.sessions / "s1" / "asked").exists())
                process.kill()
            process.communicate(timeout=20)
        finally:
            process.kill()
    assert process.returncode == -signal.SIGKILL


async def started(bench: ProcessBench, runner: ProcessRunner, does: str = "", **options: Any) -> Handle:
    handle = await runner.start(bench.spec(does=does, **options))
    await bench.ready(handle)
    return handle


async def until_ended(runner: Runner, handle: Handle) -> None:
    async def ended() -> bool:
        observed = await runner.inspect(handle)
        return observed is not None and not observed.running

    await until(ended)


async def running(runner: Runner) -> list[Handle]:
    return [one.handle for one in await runner.list() if one.running]


def lock_is_held(path: Path) -> bool:
    with path.open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def mode(path: Path) -> int:
    return S_IMODE(path.stat().st_mode)


# --- an owner that is killed ---


@pytest.mark.parametrize("step", ["before the record", "in the record", "after the record"])
async def test_an_owner_killed_before_the_word_leaves_no_worker(bench: ProcessBench, step: str) -> None:
    await killed_owner(bench, step)
    await until(lambda: bench.alive("s1") == 0)
    successor = bench.runner()
    assert [one for one in await successor.recover([]) if one.running] == []
    assert bench.pids("s1") == [], "its program never ran"
    assert list(bench.run.glob("*.draft")) == []
    handle = await started(bench, successor)
    assert await running(successor) == [handle]
    assert bench.alive("s1") == 1


@pytest.mark.parametrize("step", ["after the word", "after the start"])
async def test_an_owner_killed_after_the_word_leaves_one_worker_that_is_found(bench: ProcessBench, step: str) -> None:
    await killed_owner(bench, step)
    successor = bench.runner()
    [found] = await successor.recover([])
    assert found.running
    await bench.ready(found.handle)
    with pytest.raises(AlreadyRunning):
        await successor.start(bench.spec(generation=2))
    assert bench.alive("s1") == 1
    await successor.stop(found.handle)
    assert bench.alive("s1") == 0
    assert await successor.list() == []


@pytest.mark.parametrize(
    "step", ["before the record", "in the record", "after the record", "after the word", "after the start"]
)
async def test_a_successor_in_a_hurry_ends_up_with_exactly_one(bench: ProcessBench, step: str) -> None:
    await killed_owner(bench, step)
    successor = bench.runner()
    await successor.recover([])
    for _ in range(2):
        try:
            await successor.start(bench.spec(generation=2))
        except AlreadyRunning:
            await until(lambda: bool(bench.pids("s1")) or bench.alive("s1") == 0)
    [handle] = await running(successor)
    await bench.ready(handle)
    assert bench.pids("s1") == [handle.data["pid"]]
    assert bench.alive("s1") == 1


async def test_an_owner_killed_in_a_stop_leaves_a_worker_that_can_be_stopped(bench: ProcessBench) -> None:
    await killed_owner(bench, "in a stop")
    successor = bench.runner(grace_s=0.2)
    [found] = await successor.recover([])
    assert found.running
    await successor.stop(found.handle)
    assert bench.alive("s1") == 0
    assert await successor.list() == []


async def test_of_several_owners_that_start_at_once_exactly_one_wins(bench: ProcessBench) -> None:
    owners = [owner(bench, "race") for _ in range(3)]
    try:
        for process in owners:
            assert process.stdin is not None
            process.stdin.close()
            process.stdin = None
        said = [process.communicate(timeout=30)[0].split() for process in owners]
    finally:
        for process in owners:
            process.kill()
            process.wait()
    [[_, pid]] = [words for words in said if words[0] == b"won"]
    assert [words for words in said if words[0] != b"won"] == [[b"refused"]] * 2
    assert [handle.data["pid"] for handle in await running(bench.runner())] == [int(pid)]


# --- the lock, the record, and what if they are lost ---


async def test_the_lock_lives_exactly_as_long_as_the_worker(bench: ProcessBench, runner: ProcessRunner) -> None:
    handle = await started(bench, runner)
    lock = bench.run / "s1.lock"
    assert lock_is_held(lock)
    bench.crash(handle)
    await until_ended(runner, handle)
    assert not lock_is_held(lock)


async def test_a_start_waits_for_one_who_only_looks_at_the_lock(bench: ProcessBench, runner: ProcessRunner) -> None:
    bench.run.mkdir()
    with (bench.run / "s1.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        start = asyncio.create_task(runner.start(bench.spec()))
        await asyncio.sleep(0)
    assert (await start).session_id == "s1"


async def test_a_lock_held_by_a_stranger_forbids_the_start(bench: ProcessBench) -> None:
    bench.run.mkdir()
    with (bench.run / "s1.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(AlreadyRunning):
            await bench.runner(grace_s=0.1).start(bench.spec())
    assert bench.alive("s1") == 0


async def test_a_lock_whose_file_was_removed_meanwhile_counts_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = Records(tmp_path)
    lock, calls = fcntl.flock, iter([lambda: records.remove("s1")])

    def removed_before_it_is_locked(descriptor: int, how: int) -> None:
        next(calls, lambda: None)()
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", removed_before_it_is_locked)
    held = records.try_lock("s1")
    assert held is not None
    assert records.try_lock("s1") is None
    os.close(held)


async def test_a_stop_leaves_no_files_behind(bench: ProcessBench, runner: ProcessRunner) -> None:
    await runner.stop(await started(bench, runner))
    assert list(bench.run.iterdir()) == []


async def test_records_and_logs_are_private_and_hold_no_secrets(bench: ProcessBench, runner: ProcessRunner) -> None:
    spec = worker_spec("s1", 1, proxy_url="http://u:p4ss@h:1", secret="s3cret", webhook_url="http://o", device_name="d")
    await runner.start(spec)
    assert mode(bench.run / "s1.json") == 0o600
    assert mode(bench.logs / "s1.log") == 0o600
    assert [mode(folder) for folder in (bench.run, bench.logs, bench.sessions / "s1")] == [0o700] * 3
    record = (bench.run / "s1.json").read_text()
    assert "p4ss" not in record
    assert "s3cret" not in record


@pytest.mark.parametrize(
    "content", ["", "{", "null", "[1, 2, 3, 4, 5]", '["process", 1, "s1", 1, {"pid": "x"}]', "\0\0"]
)
async def test_a_broken_record_of_nobody_is_cleared_up(
    bench: ProcessBench, runner: ProcessRunner, content: str
) -> None:
    bench.run.mkdir()
    (bench.run / "s1.json").write_text(content)
    assert await runner.list() == []
    assert list(bench.run.iterdir()) == []
    await started(bench, runner)


async def test_a_worker_with_a_broken_record_is_still_seen(bench: ProcessBench, runner: ProcessRunner) -> None:
    handle = await started(bench, runner)
    (bench.run / "s1.json").write_bytes(b"\xff{")
    assert await running(bench.runner()) == [handle]
    with pytest.raises(AlreadyRunning):
        await bench.runner().start(bench.spec(generation=2))
    assert [one.handle for one in await bench.runner().recover([])] == [handle]
    assert Handle.load((bench.run / "s1.json").read_text()) == handle
    await runner.stop(handle)
    assert bench.alive("s1") == 0


@pytest.mark.parametrize("is_kept", [True, False])
async def test_workers_are_found_again_when_every_record_was_wiped(
    bench: ProcessBench, runner: ProcessRunner, is_kept: bool
) -> None:
    handle = await started(bench, runner)
    shutil.rmtree(bench.run)
    successor = bench.runner()
    assert [one.handle for one in await successor.recover([handle] if is_kept else [])] == [handle]
    with pytest.raises(AlreadyRunning):
        await successor.start(bench.spec(generation=2))
    await successor.stop(handle)
    assert bench.alive("s1") == 0


async def test_workers_without_marks_are_found_by_the_handles_that_were_kept(
    bench: ProcessBench, runner: ProcessRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = await started(bench, runner)
    shutil.rmtree(bench.run)
    monkeypatch.setattr(process, "workers", lambda _: iter(()))
    assert [one.handle for one in await bench.runner().recover([handle])] == [handle]


async def test_even_without_records_there_is_no_second_worker(bench: ProcessBench, runner: ProcessRunner) -> None:
    await started(bench, runner)
    shutil.rmtree(bench.run)
    with pytest.raises(AlreadyRunning):
        await bench.runner().start(bench.spec(generation=2))
    assert bench.alive("s1") == 1


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="this system tells nobody")
@pytest.mark.parametrize("ours", [True, False])
async def test_that_a_worker_ended_is_told_at_once(bench: ProcessBench, runner: ProcessRunner, ours: bool) -> None:
    """Also of a worker that an earlier orchestrator started."""
    handle = await started(bench, runner)
    watcher = runner if ours else bench.runner()
    assert isinstance(watcher, Telling)
    assert [one.running for one in await watcher.list()] == [True]
    assert not watcher.ended.is_set()
    os.kill(int(handle.data["pid"]), signal.SIGKILL)
    await asyncio.wait_for(watcher.ended.wait(), 10)
    assert [one.running for one in await runner.list()] == [False]


async def test_a_worker_is_stopped_by_its_handle_alone(bench: ProcessBench, runner: ProcessRunner) -> None:
    handle = await started(bench, runner)
    shutil.rmtree(bench.run)
    await runner.stop(handle)
    assert bench.alive("s1") == 0


# --- who is who ---


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("change", [{"born": "1"}, {"boot": "another"}])
async def test_a_pid_that_changed_hands_is_not_touched(
    bench: ProcessBench, runner: ProcessRunner, stranger: subprocess.Popen[bytes], change: dict[str, str | int]
) -> None:
    now = pids.identify(stranger.pid)
    assert now is not None
    data: dict[str, str | int] = {"pid": now.pid, "born": now.born, "boot": now.boot, "started_at": 5, "token": "t"}
    handle = Handle("process", 1, "s1", 1, data | change)
    bench.run.mkdir()
    (bench.run / "s1.json").write_text(handle.dump())
    assert [(one.handle, one.running) for one in await runner.recover([handle])] == [(handle, False)]
    await runner.stop(handle)
    assert stranger.poll() is None
    assert await runner.list() == []


async def test_a_session_that_bears_a_dead_workers_pid_is_not_touched(
    bench: ProcessBench, runner: ProcessRunner
) -> None:
    left_behind = 'sleep 600 >&- 2>&- & echo "$$ $!"'
    told = subprocess.run(["sh", "-c", left_behind], stdout=subprocess.PIPE, start_new_session=True, check=True).stdout
    leader, sleeper = map(int, told.split())
    try:
        assert os.getsid(sleeper) == leader
        assert pids.identify(leader) is None
        handle = await started(bench, runner)
        forged = replace(handle, data=dict(handle.data) | {"pid": leader, "token": "t"})
        await runner.stop(handle)
        (bench.run / "s1.json").write_text(forged.dump())
        await runner.stop(forged)
        assert pids.identify(sleeper) is not None
        assert await runner.list() == []
    finally:
        os.kill(sleeper, signal.SIGKILL)


async def test_a_zombie_has_ended(bench: ProcessBench, runner: ProcessRunner) -> None:
    handle = await started(bench, runner)
    bench.crash(handle)
    await until_ended(bench.runner(), handle)
    assert Path(f"/proc/{handle.data['pid']}").exists(), "its parent has not looked yet"
    await runner.list()
    assert not Path(f"/proc/{handle.data['pid']}").exists(), "and now it has"


async def test_the_exit_code_of_a_worker_that_was_taken_over_is_unknown(
    bench: ProcessBench, runner: ProcessRunner
) -> None:
    handle = await runner.start(bench.spec(does="exit=3"))
    successor = bench.runner()
    await until_ended(successor, handle)
    assert [one.exit_code for one in await successor.list()] == [None]
    assert [one.exit_code for one in await runner.list()] == [3]


def test_a_program_may_have_any_name(tmp_path: Path) -> None:
    program = tmp_path / ") Z 1 ("
    program.symlink_to(shutil.which("sleep") or "")
    with subprocess.Popen([program, "600"]) as process:
        identity = pids.identify(process.pid)
        process.kill()
    assert identity is not None
    assert identity.born.isdecimal()
    assert not pids.alive(identity)


def test_where_there_is_no_proc_ps_is_asked(
    stranger: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pids, "PROC", tmp_path)
    identity = pids.identify(stranger.pid)
    assert identity is not None
    assert "20" in identity.born, "a date"
    assert stranger.pid in {seen.pid for seen in pids.everyone("ANY") if seen.family == stranger.pid}
    stranger.kill()
    stranger.wait()
    assert pids.identify(stranger.pid) is None


# --- all that a worker started ---


@pytest.mark.parametrize("does", ["child", "daemon", "hidden-child", "bare-child"])
async def test_what_a_worker_started_ends_with_it(bench: ProcessBench, does: str) -> None:
    runner = bench.runner(grace_s=0.2)
    handle = await started(bench, runner, does)
    assert bench.alive("s1") == 2
    await runner.stop(handle)
    assert bench.alive("s1") == 0


@pytest.mark.parametrize("does", ["child", "daemon", "hidden-child"])
async def test_what_an_ended_worker_left_behind_ends_in_a_stop(bench: ProcessBench, does: str) -> None:
    runner = bench.runner(grace_s=0.2)
    handle = await started(bench, runner, f"{does} exit=3")
    await until_ended(runner, handle)
    assert bench.alive("s1") == 1
    await bench.runner(grace_s=0.2).stop(handle)
    assert bench.alive("s1") == 0
    assert await runner.list() == []


@pytest.mark.parametrize("does", ["child", "daemon"])
async def test_what_an_ended_worker_left_behind_ends_before_the_next_start(
    bench: ProcessBench, runner: ProcessRunner, does: str
) -> None:
    await until_ended(runner, await started(bench, runner, f"{does} exit=3"))
    await started(bench, runner, generation=2)
    assert bench.alive("s1") == 1


async def test_the_others_are_served_while_one_takes_its_time_to_end(
    bench: ProcessBench, runner: ProcessRunner
) -> None:
    slow = await started(bench, bench.runner(grace_s=60.0), "ignore-term")
    stop = asyncio.create_task(bench.runner(grace_s=60.0).stop(slow))
    await until(lambda: (bench.sessions / "s1" / "asked").exists())
    await runner.stop(await runner.start(bench.spec("s2")))
    assert not stop.done()
    bench.crash(slow)
    await stop
    assert await runner.list() == []


async def test_a_stop_that_was_cancelled_can_be_repeated(bench: ProcessBench, runner: ProcessRunner) -> None:
    handle = await started(bench, runner, "ignore-term")
    stop = asyncio.create_task(bench.runner(grace_s=60.0).stop(handle))
    await until(lambda: (bench.sessions / "s1" / "asked").exists())
    stop.cancel()
    await asyncio.gather(stop, return_exceptions=True)
    assert await running(runner) == [handle]
    await bench.runner(grace_s=0.1).stop(handle)
    assert bench.alive("s1") == 0


# --- what a worker is given ---


async def test_a_worker_gets_its_own_environment_and_nothing_of_ours(
    bench: ProcessBench, runner: ProcessRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("API_KEY", "WEBHOOK_SECRET", "REDIS_URL", "PROXY_URL_1", "TELEGRAM_BOT_TOKEN", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "ours")
    monkeypatch.setenv("TZ", "UTC")
    await started(bench, runner, "dump")
    found = json.loads((bench.sessions / "s1" / "dump").read_text())["environment"]
    assert "ours" not in found.values()
    assert found.pop("SWITCHBOARD_WORKER").endswith(str(bench.sessions / "s1"))
    told = {"STUB": "dump", "SESSION_ID": "s1", "SESSIONS_DIR": str(bench.sessions), "TZ": "UTC"}
    assert told.items() <= found.items()
    passed_on = {"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"}
    by_shell_and_python = {"PWD", "LC_CTYPE"}
    assert found.keys() - told <= passed_on | by_shell_and_python


async def test_a_worker_has_nothing_open_but_its_log_and_its_lock(bench: ProcessBench, runner: ProcessRunner) -> None:
    await started(bench, runner, "dump")
    descriptors = json.loads((bench.sessions / "s1" / "dump").read_text())["descriptors"]
    assert [descriptors.pop(name) for name in "012"] == ["/dev/null", *[str(bench.logs / "s1.log")] * 2]
    assert list(descriptors.values()) == [str(bench.run / "s1.lock")]


async def test_a_worker_leads_a_session_of_its_own(bench: ProcessBench, runner: ProcessRunner) -> None:
    pid = int((await started(bench, runner)).data["pid"])
    assert os.getsid(pid) == os.getpgid(pid) == pid


async def test_a_worker_gets_no_more_memory_than_it_may(bench: ProcessBench, runner: ProcessRunner) -> None:
    handle = await runner.start(bench.spec(does="eat", memory_mb=64))
    await until_ended(runner, handle)
    assert [one.exit_code for one in await runner.list()] == [1]
    assert "MemoryError" in runner.logs("s1").read_text()
    await started(bench, runner, "eat", memory_mb=512)


async def test_the_memory_of_a_worker_is_seen(bench: ProcessBench, runner: ProcessRunner) -> None:
    await started(bench, runner)
    [observed] = await runner.list()
    assert observed.memory_bytes is not None
    assert 1 << 20 < observed.memory_bytes < 1 << 30


# --- what can't be ---


@pytest.mark.parametrize("name", ["run", "logs", "sessions"])
async def test_a_folder_that_cannot_be_used_is_named(bench: ProcessBench, runner: ProcessRunner, name: str) -> None:
    (bench.folder / name).write_text("in the way")
    with pytest.raises(RunnerUnavailable, match=f"{bench.folder}/{name}"):
        await runner.start(bench.spec())
    assert bench.alive("s1") == 0


async def test_on_a_full_disk_nothing_is_started(bench: ProcessBench, runner: ProcessRunner) -> None:
    bench.run.mkdir()
    (bench.run / "s1.draft").symlink_to("/dev/full")
    with pytest.raises(RunnerUnavailable, match=f"{bench.run}.*No space left on device"):
        await runner.start(bench.spec())
    assert bench.alive("s1") == 0
    assert bench.pids("s1") == []
    assert await runner.list() == []
    await started(bench, runner)


async def test_on_a_full_disk_the_worker_that_ended_is_still_known(bench: ProcessBench, runner: ProcessRunner) -> None:
    handle = await started(bench, runner, "exit=3")
    await until_ended(runner, handle)
    before = await runner.list()
    (bench.run / "s1.draft").symlink_to("/dev/full")
    with pytest.raises(RunnerUnavailable):
        await runner.start(bench.spec(generation=2))
    assert await runner.list() == before


async def test_a_worker_killed_before_it_was_let_go_is_not_kept(
    bench: ProcessBench, runner: ProcessRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, killed = Records.write, []

    def write_and_kill(records: Records, handle: Handle) -> None:
        write(records, handle)
        killed.append(pid := int(handle.data["pid"]))
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # dead, and still a zombie

    monkeypatch.setattr(Records, "write", write_and_kill)
    with pytest.raises(StartFailed, match="s1 was killed before it began"):
        await runner.start(bench.spec())
    assert await runner.list() == []
    assert not Path(f"/proc/{killed[0]}").exists()


async def test_a_command_that_cannot_be_run_is_named(bench: ProcessBench) -> None:
    no_program = bench.folder / "worker.js"
    no_program.write_text("not executable")
    for command in ("no-such-program", str(no_program)):
        with pytest.raises(RunnerUnavailable, match=command):
            await bench.runner(command=[command]).start(bench.spec())


# --- logs ---


async def test_the_log_goes_on_over_restarts(bench: ProcessBench, runner: ProcessRunner) -> None:
    for generation in (1, 2):
        await runner.stop(await started(bench, runner, "shout", generation=generation))
    text = runner.logs("s1").read_text()
    assert text.count("x") == 2 * 99_999
    assert text.count("and this on stderr") == 2


async def test_a_long_log_is_rotated_and_the_oldest_dropped(bench: ProcessBench) -> None:
    runner = bench.runner(log_max_bytes=10, log_files=2)
    assert isinstance(runner, Tended)
    bench.logs.mkdir()
    for text in ("the first of all", "the second one", "the third of them", "short"):
        runner.logs("s1").write_text(text)
        await runner.tend()
    found = {path.name: path.read_text() for path in bench.logs.iterdir()}
    assert found == {"s1.log": "short", "s1.log.1": "the third of them", "s1.log.2": "the second one"}
    assert mode(bench.logs / "s1.log.1") == 0o600


async def test_a_log_is_rotated_under_the_hands_of_its_writer(bench: ProcessBench) -> None:
    runner = bench.runner(log_max_bytes=200, log_files=1)
    handle = await started(bench, runner, "tick")
    log = runner.logs("s1")
    await until(lambda: log.stat().st_size > 200)
    await runner.tend()
    await until(lambda: log.stat().st_size > 20)
    await runner.stop(handle)
    lines = log.read_bytes().splitlines()
    before = log.with_name("s1.log.1").read_bytes().splitlines()
    assert b"\0" not in b"".join(lines), "the writer goes on at the start, not where it was"
    assert before[:3] == [b"0", b"1", b"2"]
    assert int(lines[0]) >= int(before[-1])
