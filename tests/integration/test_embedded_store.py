"""The embedded store with its real server: it keeps what it was given, whoever dies."""

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from stat import S_IMODE

import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError

from switchboard.store.server import EmbeddedStore, StoreStartError

pytestmark = pytest.mark.anyio

OWNER = """
import asyncio, sys
from pathlib import Path
from switchboard.store.server import EmbeddedStore

async def main():
    store = EmbeddedStore(Path(sys.argv[1]))
    await store.start()
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await store.stop()

asyncio.run(main())
"""


class Owner:
    """Another Switchboard process that owns the store of a folder until it is told to stop, or killed."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", OWNER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def stop(self) -> None:
        self._process.communicate()
        assert self._process.returncode == 0


@asynccontextmanager
async def running(store: EmbeddedStore) -> AsyncIterator[Redis]:
    await store.start()
    try:
        async with connected(store) as client:
            yield client
    finally:
        await store.stop()


@asynccontextmanager
async def supervised(store: EmbeddedStore) -> AsyncIterator[None]:
    task = asyncio.create_task(store.supervise())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def connected(store: EmbeddedStore) -> Redis:
    return Redis.from_url(store.url, decode_responses=True, socket_timeout=None)


async def server_pid(client: Redis) -> int:
    return int((await client.info("server"))["process_id"])


async def until(condition: Callable[[], Awaitable[bool]], within_s: float = 20) -> None:
    deadline = time.monotonic() + within_s
    while not await condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        await asyncio.sleep(0.02)


def answers_as_another(client: Redis, than: int) -> Callable[[], Awaitable[bool]]:
    async def condition() -> bool:
        try:
            await client.ping()  # refused while it loads, unlike INFO
            return await server_pid(client) != than
        except (RedisError, OSError):
            return False

    return condition


def lock_is_held(path: Path) -> bool:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


async def test_what_was_written_is_there_after_a_stop_and_a_start(folder: Path) -> None:
    async with running(EmbeddedStore(folder, "everysec")) as client:
        await client.set("kept", "yes")
    async with running(EmbeddedStore(folder)) as client:
        assert await client.get("kept") == "yes"


async def test_stop_ends_the_server(folder: Path) -> None:
    async with running(EmbeddedStore(folder)) as client:
        pid = await server_pid(client)
    assert not alive(pid)


async def test_it_runs_with_the_promised_options(folder: Path) -> None:
    async with running(EmbeddedStore(folder, "everysec")) as client:
        options = await client.config_get()
    promised = {
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "port": "0",
        "hash-max-listpack-value": "4096",
    }
    assert promised.items() <= options.items()


async def test_every_write_is_on_disk_at_once_unless_told_otherwise(folder: Path) -> None:
    async with running(EmbeddedStore(folder)) as client:
        assert (await client.config_get("appendfsync"))["appendfsync"] == "always"


async def test_only_this_user_can_reach_it(folder: Path) -> None:
    async with running(EmbeddedStore(folder)):
        modes = {name: S_IMODE((folder / name).stat().st_mode) for name in (".", "store", "store/valkey.sock")}
        locks = {S_IMODE(path.stat().st_mode) for path in (folder / "store").glob("*.lock")}
    assert set(modes.values()) == {0o700}
    assert locks == {0o600}


async def test_a_data_path_too_long_for_a_socket_works_the_same(folder: Path) -> None:
    deep = folder / ("long" * 25) / ("path" * 25)
    async with running(EmbeddedStore(deep)) as client:
        await client.set("kept", "yes")
        socket = Path(EmbeddedStore(deep).url.removeprefix("unix://"))
        assert len(str(socket)) <= 100
        assert S_IMODE(socket.parent.stat().st_mode) == 0o700
    async with running(EmbeddedStore(deep)) as client:
        assert await client.get("kept") == "yes"
    socket.parent.rmdir()


async def test_a_server_whose_owner_was_killed_is_adopted(folder: Path) -> None:
    owner = Owner(folder)
    store = EmbeddedStore(folder, "everysec")
    async with connected(store) as client:
        await client.set("kept", "yes")
        orphan = await server_pid(client)
    owner.kill()
    async with running(store) as client:
        assert store.owned
        assert await server_pid(client) == orphan
        assert await client.get("kept") == "yes"
        assert (await client.config_get("appendfsync"))["appendfsync"] == "everysec"
    assert not lock_is_held(folder / "store" / "server.lock")


async def test_a_second_process_shares_the_server_and_does_not_stop_it(folder: Path) -> None:
    owner = Owner(folder)
    guest = EmbeddedStore(folder)
    await guest.start()
    assert not guest.owned
    async with connected(guest) as client:
        await guest.stop()
        assert await client.ping()
        pid = await server_pid(client)
    owner.stop()
    assert not alive(pid)


async def test_a_guest_takes_over_when_the_owner_is_gone(folder: Path) -> None:
    owner = Owner(folder)
    guest = EmbeddedStore(folder)
    async with running(guest) as client:
        await client.set("kept", "yes")
        first = await server_pid(client)
        async with supervised(guest):
            owner.stop()
            await until(answers_as_another(client, than=first))
        assert guest.owned
        assert await client.get("kept") == "yes"


async def test_a_cancelled_start_ends_wherever_it_was(folder: Path) -> None:
    async with running(EmbeddedStore(folder)):
        for steps in range(40):
            task = asyncio.create_task(EmbeddedStore(folder).start())
            for _ in range(steps):
                await asyncio.sleep(0)
            if not task.done():
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task


async def test_a_killed_server_is_restarted_with_its_data(folder: Path) -> None:
    store = EmbeddedStore(folder)
    async with running(store) as client, supervised(store):
        for kept in ("once", "twice"):
            await client.set("kept", kept)
            pid = await server_pid(client)
            os.kill(pid, signal.SIGKILL)
            await until(answers_as_another(client, than=pid))
            assert await client.get("kept") == kept


async def test_an_adopted_server_is_restarted_too(folder: Path) -> None:
    Owner(folder).kill()
    store = EmbeddedStore(folder)
    async with running(store) as client, supervised(store):
        pid = await server_pid(client)
        os.kill(pid, signal.SIGKILL)
        await until(answers_as_another(client, than=pid))


async def test_a_server_that_does_not_stop_is_killed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("switchboard.store.valkey._STOP_S", 0.1)
    store = EmbeddedStore(folder)
    await store.start()
    async with connected(store) as client:
        pid = await server_pid(client)
    os.kill(pid, signal.SIGSTOP)
    await store.stop()
    assert not alive(pid)


async def test_a_folder_in_use_without_an_answering_store_is_refused(folder: Path) -> None:
    (folder / "store").mkdir(parents=True)
    with (folder / "store" / "owner.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(StoreStartError, match="is in use") as refusal:
            await EmbeddedStore(folder, patience_s=0.2).start()
    assert str(folder) in str(refusal.value)
    assert "DATA_DIR" in str(refusal.value)


async def test_never_do_two_servers_write_one_folder(folder: Path) -> None:
    owner = Owner(folder)
    async with connected(EmbeddedStore(folder)) as client:
        pid = await server_pid(client)
    owner.kill()
    (folder / "store" / "valkey.sock").unlink()
    with pytest.raises(StoreStartError, match="is in use"):
        await EmbeddedStore(folder, patience_s=0.2).start()
    os.kill(pid, signal.SIGKILL)


async def test_a_missing_binary_is_a_clear_error(folder: Path) -> None:
    with pytest.raises(StoreStartError, match=r"can't be run.*nowhere.*REDIS_URL"):
        await EmbeddedStore(folder, binary=Path("/nowhere/valkey-server")).start()


async def test_a_server_that_ends_at_once_is_a_clear_error_with_its_last_words(folder: Path) -> None:
    (folder / "store" / "appendonlydir").mkdir(parents=True)
    (folder / "store" / "appendonlydir" / "appendonly.aof.manifest").write_text("nonsense\n")
    with pytest.raises(StoreStartError, match=r"ended: .*AOF.*REDIS_URL"):
        await EmbeddedStore(folder).start()


async def test_a_folder_that_cannot_be_made_is_a_clear_error(folder: Path) -> None:
    folder.write_text("a file, not a folder")
    with pytest.raises(StoreStartError, match=r"can't use .*/store \(File exists\)\. .* DATA_DIR"):
        await EmbeddedStore(folder).start()


async def test_what_a_dead_owner_left_running_can_be_ended(folder: Path) -> None:
    assert await EmbeddedStore(folder).end_orphan()
    assert not (folder / "store").exists()
    owner = Owner(folder)
    assert not await EmbeddedStore(folder).end_orphan(), "its owner lives"
    assert lock_is_held(folder / "store" / "server.lock")
    owner.kill()
    assert lock_is_held(folder / "store" / "server.lock")
    assert await EmbeddedStore(folder).end_orphan()
    assert not lock_is_held(folder / "store" / "server.lock")


async def test_after_a_failed_start_the_folder_is_free_again(folder: Path) -> None:
    with pytest.raises(StoreStartError):
        await EmbeddedStore(folder, binary=Path("/nowhere/valkey-server")).start()
    async with running(EmbeddedStore(folder)) as client:
        assert await client.ping()
