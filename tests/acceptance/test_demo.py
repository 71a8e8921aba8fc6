"""The demo as a person starts it: life within a minute, and nothing left of it at the end."""

import os
import re
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

from switchboard.demo.stage import own_folder
from tests.support.node_build import require_build
from tests.support.premises import ROOT, alive, pids
from tests.support.processes import free_ports

pytestmark = pytest.mark.slow

COMMAND = (sys.executable, "-c", "from switchboard.cli import main; main()", "demo")
WORKERS = 5


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

    def server(self) -> int:
        [found] = [pid for pid in self.family() if "switchboard.demo.server" in _command_line(pid)]
        return found

    def _is_ours(self, pid: int) -> bool:
        with suppress(OSError):
            proc = Path(f"/proc/{pid}")
            at_home = Path(str(proc.joinpath("cwd").readlink())).is_relative_to(self.folder)
            return at_home or str(self.folder) in _command_line(pid)
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


def _command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


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


def test_a_visitor_links_an_account_without_a_phone_and_without_a_password(demo: Demo) -> None:
    demo.comes_to_life()
    [link] = re.findall(rf"Open (http://localhost:{demo.port}/open/\S+)", demo.shown)
    with httpx.Client(base_url=f"http://localhost:{demo.port}", trust_env=False, timeout=20) as browser:
        here = {"Origin": f"http://localhost:{demo.port}"}
        assert browser.post(link, headers=here).headers["location"] == "/"
        page = browser.get("/sessions/new", headers={"Accept": "text/html", "Accept-Language": "en"}).text
        [csrf] = re.findall(r'"X-CSRF-Token": "([^"]+)"', page)
        made = browser.post("/sessions", data={"csrf": csrf}, headers=here).headers["location"]
        demo.waits_for(lambda: 'class="qr" role="img"' in browser.get(made).text, 30)
        scan = made.replace("/link", "/demo-scan")
        demo.waits_for(lambda: browser.post(scan, data={"csrf": csrf}, headers=here).status_code == 303, 30)
        demo.waits_for(lambda: "done-mark" in browser.get(made).text, 30)
        assert "+1 212-555-0100" in browser.get(made).text
    kept = (demo.folder / "data" / "demo" / "switchboard.log").read_text()
    assert link.rpartition("/")[2] not in kept
    assert "/open/" not in kept, "what signs in is not logged"


def test_a_demo_that_is_killed_takes_everything_with_it(demo: Demo) -> None:
    demo.comes_to_life()
    demo.process.kill()
    demo.process.wait(5)
    demo.waits_for(lambda: not demo.family(), 20)


def test_a_server_that_is_killed_ends_the_demo_and_all_that_it_left(demo: Demo) -> None:
    demo.comes_to_life()
    os.kill(demo.server(), signal.SIGKILL)
    assert demo.process.wait(30) == 2
    assert "Switchboard ended by itself" in demo.shown
    assert "Traceback" not in demo.shown
    assert not demo.family()


def test_what_a_demo_left_running_ends_before_its_folder_is_emptied(demo: Demo) -> None:
    demo.comes_to_life()
    server = demo.server()
    demo.process.send_signal(signal.SIGSTOP)  # so that it can't clear up
    os.kill(server, signal.SIGKILL)
    demo.process.kill()
    demo.process.wait(5)
    demo.waits_for(lambda: len(demo.family()) == WORKERS + 1, 10)
    with own_folder(demo.folder / "data" / "demo", keep=False) as folder:
        assert not demo.family()
        assert [entry.name for entry in folder.iterdir()] == [".demo"]


def test_the_commands_that_the_demo_tells_can_be_typed(demo: Demo) -> None:
    demo.comes_to_life()
    shop = {"sessions list": "Corner Bakery", "state --data": "12125550102"}
    for words, found in shop.items():
        [line] = [line.strip() for line in demo.shown.splitlines() if words in line]
        line = line.replace(" switchboard ", f" {sys.executable} -m switchboard ")  # it is not on the PATH of a test
        path = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
        shell = ["/bin/sh", "-c", line]
        typed = subprocess.run(shell, cwd=demo.folder, env=path, capture_output=True, text=True, timeout=30)
        assert found in typed.stdout, typed
