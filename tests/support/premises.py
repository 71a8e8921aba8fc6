"""The real program under test, whatever stands behind it: started, killed and started again, asked, and looked at.

What its workers are, and which WhatsApp they reach, is up to who builds on this (see `installation.py`, with scripted
workers, and `real_installation.py`, with the real ones).
"""

import asyncio
import os
import signal
import time
import zlib
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from random import SystemRandom
from typing import Any, ClassVar

import httpx
import redis

from switchboard.store.server import EmbeddedStore
from tests.support.process import COMMAND, Switchboard
from tests.support.processes import free_ports
from tests.support.serving import until

API_KEY = "sk_of-this-test"
ROOT = Path(__file__).parents[2]
SETTINGS = {
    "API_KEY": API_KEY,
    "WEBHOOK_SECRET": "the master secret of this test",
    "API_RATE_PER_MINUTE": "1000000",
    "PROVISIONING_INTERVAL_MS": "50",
    "MONITOR_INTERVAL_MS": "300",
    "PROBE_INTERVAL_MS": "200",
    "PROBE_TIMEOUT_MS": "2000",
    "RETRY_BASE_MS": "200",
    "RECIPIENT_HOURS": "00:00-24:00",
    "PACE__COLD__HOURS": "00:00-24:00",
    "PACE__COLD__DAILY": "1000",
    "PACE__COLD__PER_MINUTE": "600",
    "PACE__COLD__BASE_DELAY_MS": "20",
    "PACE__COLD__JITTER_MS": "10",
}


class Premises(ABC):
    WORKER: ClassVar[str]
    """What a worker's command line has in it."""
    PATIENCE_S: ClassVar[float] = 20

    def __init__(self, folder: Path, proxy_urls: Sequence[str], **settings: str) -> None:
        self.folder = folder
        self.sessions_dir = folder / "data" / "sessions"
        [self.port] = free_ports(1, SystemRandom())
        urls = {f"PROXY_URL_{n}": url for n, url in enumerate(proxy_urls, 1)}
        self._settings = SETTINGS | urls | settings
        self._program: Switchboard | None = None
        self._socket = EmbeddedStore(folder / "data").url.removeprefix("unix://")
        self.store = redis.Redis(unix_socket_path=self._socket, decode_responses=True)
        headers = {"X-API-Key": API_KEY}
        self.url = f"http://127.0.0.1:{self.port}"
        self._http = httpx.AsyncClient(base_url=self.url, headers=headers, trust_env=False, timeout=30)

    # --- the program ---

    @property
    def program(self) -> Switchboard:
        assert self._program is not None
        return self._program

    async def start(self, command: Sequence[str] = COMMAND, **settings: str) -> None:
        """Returns once it answers."""
        self._program = Switchboard(self.folder, self.port, command, **self._settings | settings)
        await asyncio.to_thread(self._program.wait_until_it_answers)

    async def end(self, number: signal.Signals) -> int:
        """Its exit code."""
        self.program.process.send_signal(number)
        return await self.ended()

    async def ended(self) -> int:
        """By itself, or because it was told to."""
        return await asyncio.to_thread(self.program.process.wait, 20)

    async def close(self) -> None:
        """Everything of it is killed, whatever state it is in: the program first, so that nothing comes back."""
        if self._program is not None:
            self._program.process.kill()
            self._program.process.wait()
        await self._http.aclose()
        self.store.close()
        while left := [pid for pid in pids() if self._is_ours(pid)]:
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            await asyncio.sleep(0.01)

    def _is_ours(self, pid: int) -> bool:
        """A worker (by its environment) or the store's server (by its folder)."""
        with suppress(OSError):
            proc = Path(f"/proc/{pid}")
            inside = str(proc.joinpath("cwd").readlink()).startswith(f"{self.folder}/")
            return alive(pid) and (inside or f"={self.sessions_dir}".encode() in proc.joinpath("environ").read_bytes())
        return False

    # --- what a customer and an operator do ---

    async def ask(self, method: str, path: str, status: int = 200, **given: Any) -> Any:
        response = await self._http.request(method, path, **given)
        assert response.status_code == status, f"{method} {path}: {response.status_code} {response.text}"
        return response.json()

    async def provision(self, **wish: str) -> str:
        return str((await self.ask("POST", "/api/sessions/provision", 201, json=wish))["sessionId"])

    async def show(self, session: str) -> dict[str, Any]:
        return dict(await self.ask("GET", f"/api/sessions/{session}"))

    async def becomes(
        self, session: str, status: str, reason: str | None = None, within_s: float | None = None
    ) -> None:
        shown: dict[str, Any] = {}

        async def there() -> bool:
            shown.update(await self.show(session))
            return shown["status"] == status and (reason is None or str(shown["reason"]).startswith(reason))

        try:
            await until(there, within_s or self.PATIENCE_S)
        except AssertionError:
            raise AssertionError(f"{session} should be {status} ({reason}) and is {shown}") from None

    @abstractmethod
    async def scanned(self, session: str, phone: str) -> None:
        """The QR code that the API shows, scanned; returns once the session is connected."""

    async def linked(self, phone: str, **wish: str) -> str:
        session = await self.provision(**wish)
        await self.scanned(session, phone)
        return session

    async def send(self, session: str, text: str, to: str | None = None) -> str:
        """To a recipient of its own for each text, unless one is named. The message's id."""
        body = {"to": to or recipient_of(text), "message": text, "sessionId": session}
        return str((await self.ask("POST", "/api/v1/send", json=body))["messageId"])

    # --- what can be seen ---

    def key(self, name: str) -> Any:
        """A string, a set or a hash of the store."""
        full = f"switchboard:{name}"
        kind = self.store.type(full)
        read = {"string": self.store.get, "set": self.store.smembers, "hash": self.store.hgetall}.get(str(kind))
        return read(full) if read else None

    def keys(self, stem: str) -> dict[str, Any]:
        """All that begin so, by the rest of their names."""
        names = [name.removeprefix("switchboard:") for name in self.store.scan_iter(match=f"switchboard:{stem}*")]
        return {name.removeprefix(stem): self.key(name) for name in names}

    def workers(self) -> dict[str, list[int]]:
        """The living ones by session, from nothing but /proc."""
        found: dict[str, list[int]] = defaultdict(list)
        mine = f"SESSIONS_DIR={self.sessions_dir}".encode()
        for pid in pids():
            with suppress(OSError):
                lines = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                if mine in lines and alive(pid) and self.WORKER in Path(f"/proc/{pid}/cmdline").read_text():
                    [session] = [line for line in lines if line.startswith(b"SESSION_ID=")]
                    found[session.partition(b"=")[2].decode()].append(pid)
        return dict(found)

    def worker(self, session: str) -> int:
        [pid] = self.workers()[session]
        return pid

    def check_order(self) -> None:
        """True at every moment that nothing is under way: places are those of the sessions, each that should run does
        so once, and nothing is left of sessions that are gone."""
        sessions: dict[str, dict[str, str]] = {name: self.key(f"session:{name}") for name in self.key("sessions") or ()}
        self._check_places(sessions)
        self._check_remains(set(sessions))
        workers = self.workers()
        assert set(workers) == {name for name, session in sessions.items() if session.get("wanted") == "run"}, workers
        assert all(len(of_it) == 1 for of_it in workers.values()), workers

    def _check_places(self, sessions: Mapping[str, Mapping[str, str]]) -> None:
        proxies, phones, temporary = defaultdict(set), defaultdict(set), {}
        for name, session in sessions.items():
            if "proxy" in session:
                proxies[session["proxy"]].add(name)
            if "linked" in session:
                phones[session["phone"]].add(name)
            if "scanBy" in session:
                temporary[name] = session["proxy"]
                if "declared" in session:
                    phones[session["declared"]].add(name)
        assert self.keys("proxy:sessions:") == proxies
        assert self.keys("phone:sessions:") == phones
        assert self.keys("session:temp:") == temporary

    def _check_remains(self, sessions: set[str]) -> None:
        """Folders, data put aside, and the runner's marks."""
        folders = {path.name for path in self.sessions_dir.iterdir() if path.is_dir() and path.name[0] != "."}
        aside = {path.name.partition(".")[0] for path in (self.sessions_dir / ".aside").glob("*")}
        marks = {path.stem for path in (self.folder / "data" / "run").iterdir()}
        assert folders | aside | marks <= sessions, f"{folders=} {aside=} {marks=} {sessions=}"


def recipient_of(text: str) -> str:
    return f"97250{zlib.crc32(text.encode()) % 10_000_000:07}"


def pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def alive(pid: int) -> bool:
    """Not gone, and no zombie."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZXx"
    return False


def now_ms() -> int:
    return time.time_ns() // 1_000_000
