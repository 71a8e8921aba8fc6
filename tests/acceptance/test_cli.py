"""`switchboard sessions` and `proxies` as a person uses them: in a real terminal, against the real program."""

import asyncio
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.installation import API_KEY, Installation, installation
from tests.support.process import COMMAND
from tests.support.serving import until

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

PHONE = "972500000001"
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A command in a pseudo-terminal; what it wrote so far is in `text`, without colours."""

    def __init__(self, it: Installation, *words: str, lines: int = 60) -> None:
        leader, follower = pty.openpty()
        environment = {**where(it), "COLUMNS": "100", "LINES": str(lines), "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        self.process = subprocess.Popen(
            [*COMMAND, *words], stdin=follower, stdout=follower, stderr=follower, env=environment,
            start_new_session=True,
        )  # fmt: skip
        os.close(follower)
        self._leader = leader
        self._written = b""
        os.set_blocking(leader, False)

    @property
    def text(self) -> str:
        while True:
            try:
                more = os.read(self._leader, 65_536)
            except BlockingIOError:
                break
            except OSError:  # the other end is closed
                break
            if not more:
                break
            self._written += more
        return _COLOURS.sub("", self._written.decode(errors="replace"))

    async def shows(self, words: str) -> None:
        try:
            await until(lambda: words in self.text)
        except AssertionError:
            raise AssertionError(f"{words!r} is not in {self.text[-3000:]}") from None

    async def ended(self) -> int:
        await until(lambda: (self.text, self.process.poll())[1] is not None)
        return int(self.process.returncode)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._leader)


def where(it: Installation) -> Mapping[str, str]:
    port = it.program.url.rpartition(":")[2]
    paths = {"PATH": os.defpath, "PYTHONPATH": str(Path(__file__).parents[2]), "DATA_DIR": str(it.folder / "data")}
    return {**paths, "ORCH_PORT": port, "API_KEY": API_KEY, "TIMEZONE": "UTC"}


async def cli(it: Installation, *words: str, code: int = 0) -> str:
    """What a command printed, on either channel."""
    done = await asyncio.to_thread(
        subprocess.run, [*COMMAND, *words], env=dict(where(it)), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


async def test_a_person_links_a_phone_from_the_terminal_and_looks_after_it() -> None:
    async with installation() as it:
        await it.start()
        assert "There is no session yet" in await cli(it, "sessions", "list")

        terminal = Terminal(it, "sessions", "new", "--name", "Support")
        try:
            await terminal.shows("worker_1 · Support")
            await terminal.shows("Linked devices › Link a device")
            await terminal.shows("waiting for the phone, ")
            assert re.search(r"[▀▄█]{4}", terminal.text), "the code itself"
            await it.scanned("worker_1", PHONE)
            await terminal.shows("✓ worker_1 is linked to +972 50-000-0001")
            assert await terminal.ended() == 0
        finally:
            terminal.close()

        listed = await cli(it, "sessions", "list")
        assert "worker_1" in listed
        assert "connected" in listed
        assert "7 more sessions find a place on the proxies." in listed
        assert [item["phone"] for item in json.loads(await cli(it, "sessions", "list", "--json"))] == [PHONE]
        shown = await cli(it, "sessions", "show", "worker_1")
        assert "Switchboard worker_1" in shown
        assert "session.connected" in shown

        worker = it.worker("worker_1")
        assert "no new scan" in await cli(it, "sessions", "restart", "worker_1")
        await until(lambda: it.workers().get("worker_1", [worker]) != [worker])
        await it.becomes("worker_1", "connected")
        await cli(it, "sessions", "pause", "worker_1")
        assert (await it.show("worker_1"))["status"] == "paused"
        await cli(it, "sessions", "resume", "worker_1")
        assert "it is not paused" in await cli(it, "sessions", "resume", "worker_1", code=2)
        await cli(it, "sessions", "stop", "worker_1")
        assert "it is stopped already" in await cli(it, "sessions", "stop", "worker_1", code=2)
        await cli(it, "sessions", "start", "worker_1")
        await it.becomes("worker_1", "connected")

        assert "worker_1 is deleted." in await cli(it, "sessions", "delete", "--yes", "worker_1")
        assert "There is no session" in await cli(it, "sessions", "show", "worker_1", code=2)
        for odd in ("worker_1?x=1", "../proxies", "", "worker_1#x"):
            assert "is no session id" in await cli(it, "sessions", "delete", "--yes", odd, code=2)
        it.check_order()


async def test_leaving_the_terminal_leaves_the_session_and_says_how_to_go_on() -> None:
    async with installation() as it:
        await it.start()
        terminal = Terminal(it, "sessions", "new")
        try:
            await terminal.shows("waiting for the phone, ")
            terminal.process.send_signal(signal.SIGINT)
            await terminal.shows("Go on: switchboard sessions scan worker_1")
            assert await terminal.ended() == 130
        finally:
            terminal.close()

        tight, tiny = (20, "worker_1: waiting for the phone, "), (10, "switchboard sessions qr worker_1 code.png")
        for lines, words in (tight, tiny):
            small = Terminal(it, "sessions", "scan", "worker_1", lines=lines)
            try:
                await small.shows(words)
            finally:
                small.close()
        picture = it.folder / "code.png"
        await cli(it, "sessions", "qr", "worker_1", str(picture))
        assert picture.read_bytes().startswith(b"\x89PNG")

        code = Terminal(it, "sessions", "scan", "worker_1", "--pair", PHONE)
        try:
            await code.shows("Link with phone number")
            await it.scanned("worker_1", PHONE)
            await code.shows("✓ worker_1 is linked")
        finally:
            code.close()


async def test_a_session_that_is_not_scanned_in_time_says_so() -> None:
    async with installation(SCAN_TIMEOUT_MS="1500") as it:
        await it.start()
        terminal = Terminal(it, "sessions", "new")
        try:
            await terminal.shows("✗ worker_1 is stopped: it was not scanned in time")
            await terminal.shows("Try again: switchboard sessions scan worker_1")
            assert await terminal.ended() == 1
        finally:
            terminal.close()


async def test_the_pool_is_looked_after_without_ever_showing_a_password() -> None:
    async with installation(proxies=1) as it:
        await it.start()
        assert "0 of 4" in await cli(it, "proxies", "list")
        assert "✓ proxy_1" in await cli(it, "proxies", "probe", "proxy_1")
        refused = await cli(it, "proxies", "add", "socks5://me:hunter2@127.0.0.1:1080", code=2)
        assert "write socks5h://" in refused
        added = await cli(it, "proxies", "add", "socks5h://me:hunter2@127.0.0.1:9", code=2)
        assert "BAD (unreachable)" in added
        assert "proxy_2 is in the pool, but does not work: Nobody listens" in added
        assert "hunter2" not in refused + added + await cli(it, "proxies", "list", "--json")
        assert "✗ proxy_2" in await cli(it, "proxies", "probe", "proxy_2", code=1)
        assert "proxy_2 is removed." in await cli(it, "proxies", "remove", "proxy_2")

        await cli(it, "sessions", "new", "--no-wait")
        assert "1 sessions are on proxy 'proxy_1'" in await cli(it, "proxies", "remove", "proxy_1", code=2)


async def test_a_switchboard_that_does_not_run_is_named_as_such(tmp_path: Path) -> None:
    environment = {"PATH": os.defpath, "PYTHONPATH": str(Path(__file__).parents[2]), "DATA_DIR": str(tmp_path)}
    for settings, words in (({}, "Start Switchboard first"), ({"API_KEY": "sk_x", "ORCH_PORT": "9"}, "switchboard up")):
        done = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-m", "switchboard", "sessions", "list"],
            env=environment | settings, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 2
        assert words in done.stderr
        assert "Traceback" not in done.stderr
