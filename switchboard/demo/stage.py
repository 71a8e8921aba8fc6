"""What the demo runs on: a folder of its own, the simulator, and a Switchboard with settings of its own.

Nothing of the real installation is read or written: not its folder, not its `.env`, not its environment.
"""

import asyncio
import fcntl
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from switchboard.dashboard.access.one_time_links import one_time_url
from switchboard.demo.leftovers import LeftoversStay, end_leftovers
from switchboard.demo.phone import CONTROL_PORT
from switchboard.demo.simulator import Simulator
from switchboard.wiring import system_clock

PROXIES = 3
_MARK = ".demo"
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "PYTHONPATH")
_READY_S = 30
_GRACE_S = 15
_WORKER_GRACE_S = 3
_LOOK_S = 0.1

# Lively, and within rules all the same: every cap and delay is checked as always, only the figures are the demo's.
_FIGURES = ("DAILY", "PER_MINUTE", "BASE_DELAY_MS", "JITTER_MS", "HOURS")
PACE = {
    "COLD": ("300", "12", "3000", "2000", "00:00-24:00"),
    "WARM": ("600", "20", "2000", "2000", "00:00-24:00"),
    "HOT": ("1000", "30", "1500", "1500", "00:00-24:00"),
}
SETTINGS = {
    f"PACE__{level}__{name}": value
    for level, figures in PACE.items()
    for name, value in zip(_FIGURES, figures, strict=True)
} | {
    "RECIPIENT_HOURS": "00:00-24:00",
    "MAX_SESSIONS_PER_PROXY": "3",  # so that one proxy can fail and its sessions find places on the others
    "PROVISIONING_INTERVAL_MS": "500",
    "WORKER_STOP_GRACE_MS": str(_WORKER_GRACE_S * 1000),
    "ORCH_HOST": "127.0.0.1",
}


class DemoFailed(Exception):
    """The message is a sentence for the person at the terminal, and says what to do."""


def check_port(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise DemoFailed(
                f"port {port} can't be used ({error.strerror}): is Switchboard or another demo running? "
                f"Choose another one: PORT={port + 100 if port < 65_000 else 3100} make demo"
            ) from None


@contextmanager
def own_folder(folder: Path, keep: bool) -> Iterator[Path]:
    """Emptied, unless it is to be kept; and nobody else's: neither another demo's nor one we did not make."""
    with _usable(folder):
        mark = _claim(folder)
    try:
        with _usable(folder):
            asyncio.run(_end_leftovers(folder))
            if not keep:
                _empty(folder)
        yield folder
    finally:
        os.close(mark)


@contextmanager
def _usable(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        way_out = f"make {folder.parent} a folder that you may write to (chown)"
        if os.path.exists(folder):  # noqa: PTH110 - pathlib's raises, too
            way_out = "make it yours (chown) or remove it"
        raise DemoFailed(f"{folder} can't be used ({error.strerror}): {way_out}") from None


def _claim(folder: Path) -> int:
    """A handle that marks the folder as this demo's until it is closed."""
    if folder.is_dir() and any(folder.iterdir()) and not (folder / _MARK).exists():
        raise DemoFailed(f"{folder} is not empty and not a demo's: move it away first")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    mark = os.open(folder / _MARK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(mark)
        raise DemoFailed(f"a demo runs in {folder} already: end it first (Ctrl-C in its terminal)") from None
    return mark


def _empty(folder: Path) -> None:
    for entry in [entry for entry in folder.iterdir() if entry.name != _MARK]:
        shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()


async def _end_leftovers(folder: Path) -> None:
    try:
        await end_leftovers(folder, _WORKER_GRACE_S, _GRACE_S)
    except LeftoversStay as reason:
        raise DemoFailed(str(reason)) from reason


@dataclass(slots=True)
class Stage:
    """All of it, running. `key` opens the API, and `secret` makes links that open the dashboard."""

    folder: Path
    port: int
    simulator: Simulator
    key: str = field(repr=False)
    secret: str = field(repr=False)
    _server: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def link(self) -> str:
        """A new one that signs in by itself, once."""
        return one_time_url(f"http://localhost:{self.port}", self.secret, system_clock())

    def check(self) -> None:
        """Raise if a part of it ended."""
        if self._server.poll() is not None:
            raise DemoFailed(f"Switchboard ended by itself; see {self.folder / 'switchboard.log'}")
        if not self.simulator.running:
            raise DemoFailed(f"the simulator ended by itself; see {self.simulator.data / 'simulator.log'}")


@asynccontextmanager
async def opened(folder: Path, port: int) -> AsyncIterator[Stage]:
    """First the simulator, then the server; down in the other order, so that workers part in peace."""
    simulator = _simulator(folder)
    try:
        await simulator.start()
        _remember(folder, simulator)
        server = _spawn(folder, _environment(folder, port, simulator))
        try:
            await _answers(server, port, folder)
            kept = json.loads((folder / "secrets.json").read_text("utf-8"))
            yield Stage(folder, port, simulator, str(kept["api_key"]), str(kept["dashboard_secret"]), server)
        finally:
            await _end(server, folder)
    finally:
        await simulator.stop()


def _simulator(folder: Path) -> Simulator:
    """With the proxies it had, if the folder was kept: a session stays on its proxy."""
    kept = folder / "proxies.json"
    logins, ports = [f"demo{n}:{secrets.token_hex(8)}" for n in range(1, PROXIES + 1)], None
    if kept.exists():
        logins, ports = json.loads(kept.read_text("utf-8"))
    return Simulator(folder / "simulator", logins, ["--answer"], ports=ports)


def _remember(folder: Path, simulator: Simulator) -> None:
    kept = folder / "proxies.json"
    kept.touch(mode=0o600)
    kept.write_text(json.dumps([list(simulator.logins), simulator.ready.ports()]), "utf-8")


def _environment(folder: Path, port: int, simulator: Simulator) -> Mapping[str, str]:
    passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    proxies = {f"PROXY_URL_{n}": url for n, url in enumerate(simulator.proxy_urls, 1)}
    own = {
        "DATA_DIR": str(folder),
        "ORCH_PORT": str(port),
        "NODE_EXTRA_CA_CERTS": str(simulator.ready.ca),
        CONTROL_PORT: str(simulator.ready.control),
    }
    return passed_on | SETTINGS | proxies | own


def _spawn(folder: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    with (folder / "switchboard.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "switchboard.demo.server"],
            cwd=folder,  # not where a .env of the real installation may be
            env=environment,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C is for us; we end it, in its turn
        )


async def _answers(server: subprocess.Popen[bytes], port: int, folder: Path) -> None:
    deadline = asyncio.get_running_loop().time() + _READY_S
    async with httpx.AsyncClient(trust_env=False) as http:
        while server.poll() is None and asyncio.get_running_loop().time() < deadline:
            with suppress(httpx.TransportError):
                if (await http.get(f"http://127.0.0.1:{port}/health")).is_success:
                    return
            await asyncio.sleep(_LOOK_S)
    raise DemoFailed(f"Switchboard did not start; see {folder / 'switchboard.log'}")


async def _end(server: subprocess.Popen[bytes], folder: Path) -> None:
    """It ends its workers and its store, then itself. If it was killed, they are ended for it."""
    if server.stdin is not None:
        with suppress(OSError):
            server.stdin.close()
    try:
        await asyncio.to_thread(server.wait, _GRACE_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    if server.returncode:
        await _end_leftovers(folder)
