"""The demo as a person starts it: life within a minute, and nothing left of it at the end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import SystemRandom

import httpx
import pytest

from tests.support.node_build import require_build
from tests.support.premises import ROOT, alive, pids
from tests.support.processes import free_ports

pytestmark = pytest.mark.slow

COMMAND = (sys.executable, "-c", "from switchboard.cli import main; main()", "demo")


class Demo:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        [self.port] = free_ports(1, SystemRandom())
        self._output = folder / "output"
        environment = {"PATH": os.defpath, "PYTHONPATH": str(ROOT), "PORT": str(self.port), "API_KEY": "not-for-it"}
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(COMMAND, cwd=folder, env=environment, stdout=output, stderr=output)

    @property
    def shown(self) -> str:
        return self._output.read_text()

    def family(self) -> list[int]:
        """Every living process that has to do with its folder: by its working directory or its command line."""
        return [pid for pid in pids() if pid != os.getpid() and alive(pid) and self._is_ours(pid)]

    def _is_ours(self, pid: int) -> bool:
        with suppress(OSError):
            proc = Path(f"/proc/{pid}")
            at_home = Path(str(proc.joinpath("cwd").readlink())).is_relative_to(self.folder)
            return at_home or str(self.folder) in proc.joinpath("cmdline").read_text()
        return False

    def waits_for(self, condition: Callable[[], object], within_s: float) -> float:
        began = time.monotonic()
        while not condition():
            assert time.monotonic() - began < within_s, self.shown
            time.sleep(0.1)
        return time.monotonic() - began

    def comes_to_life(self) -> None:
        self.waits_for(lambda: "Look around" in self.shown or self.process.poll() is not None, 90)
        assert self.process.poll() is None, self.shown


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    require_build()
    (tmp_path / ".env").write_text("ORCH_PORT=1\nPROXY_URL_1=socks5h://real:secret@proxy.example:1080\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "secrets.json").write_text("the real ones")
    made = Demo(tmp_path)
    yield made
    for pid in made.family():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    made.process.wait(10)


def test_the_demo_comes_to_life_and_leaves_nothing_behind(demo: Demo) -> None:
    demo.comes_to_life()
    [line] = [line for line in demo.shown.splitlines() if "export KEY=" in line]
    headers = {"X-API-Key": line.partition("=")[2].strip()}
    sessions = httpx.get(f"http://127.0.0.1:{demo.port}/api/sessions", headers=headers, trust_env=False).json()["items"]
    assert [session["status"] for session in sessions] == ["connected"] * 5
    assert len({session["proxyId"] for session in sessions}) > 1
    proxies = httpx.get(f"http://127.0.0.1:{demo.port}/api/proxies", headers=headers, trust_env=False).json()["items"]
    assert {proxy["host"].partition(":")[0] for proxy in proxies} == {"127.0.0.1"}, "none of the real ones"
    demo.process.send_signal(signal.SIGINT)
    demo.process.wait(20)
    assert demo.process.returncode == 0, demo.shown
    assert not demo.family()
    assert (demo.folder / "data" / "secrets.json").read_text() == "the real ones"
    assert {entry.name for entry in (demo.folder / "data").iterdir()} == {"demo", "secrets.json"}


def test_a_demo_that_is_killed_takes_everything_with_it(demo: Demo) -> None:
    demo.comes_to_life()
    demo.process.kill()
    demo.process.wait(5)
    demo.waits_for(lambda: not demo.family(), 20)
