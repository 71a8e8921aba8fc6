"""A whole Switchboard under test: the real program, its real workers and proxies, and a tiny WhatsApp behind them.

The program may be killed and started again; what its workers do is seen from outside (/proc, the store, WhatsApp).
"""

import asyncio
import json
import os
import signal
import sys
import tempfile
import time
import zlib
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom
from typing import Any

import httpx
import redis

from switchboard.store.server import EmbeddedStore
from tests.support.process import COMMAND, Switchboard
from tests.support.processes import free_ports
from tests.support.serving import until
from tests.support.socks5 import GOOD, Mode, Socks5Server, Step, Trouble, socks5_server
from tests.support.tiny_whatsapp import TinyWhatsApp, tiny_whatsapp
from tests.support.worker_ways import WHATSAPP

API_KEY = "sk_of-this-test"
ROOT = Path(__file__).parents[2]
WORKER = "tests.support.session_worker"
SETTINGS = {
    "API_KEY": API_KEY,
    "WEBHOOK_SECRET": "the master secret of this test",
    "WORKER_COMMAND": f"env PYTHONPATH={ROOT} {sys.executable} -Ssu -m {WORKER}",
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
OUT_OF_ORDER = Mode(trouble=Trouble.RESET, at=Step.ACCEPT)


@dataclass(frozen=True, slots=True)
class Start:
    """A worker's own note of it."""

    at: int
    pid: int
    session: str
    proxy: str


class Installation:
    def __init__(self, folder: Path, whatsapp: TinyWhatsApp, proxies: Sequence[Socks5Server], **settings: str) -> None:
        self.folder = folder
        self.whatsapp = whatsapp
        self.proxies = proxies
        self.sessions_dir = folder / "data" / "sessions"
        self.witness = self.sessions_dir / ".witness"
        [self._port] = free_ports(1, SystemRandom())
        urls = {f"PROXY_URL_{n}": f"socks5h://me:pw{n}@127.0.0.1:{one.port}" for n, one in enumerate(proxies, 1)}
        self._settings = SETTINGS | urls | settings
        self._program: Switchboard | None = None
        self._socket = EmbeddedStore(folder / "data").url.removeprefix("unix://")
        self.store = redis.Redis(unix_socket_path=self._socket, decode_responses=True)
        headers = {"X-API-Key": API_KEY}
        url = f"http://127.0.0.1:{self._port}"
        self._http = httpx.AsyncClient(base_url=url, headers=headers, trust_env=False, timeout=30)

    # --- the program ---

    @property
    def program(self) -> Switchboard:
        assert self._program is not None
        return self._program

    async def start(self, command: Sequence[str] = COMMAND, **settings: str) -> None:
        """Returns once it answers."""
        self._program = Switchboard(self.folder, self._port, command, **self._settings | settings)
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

    async def becomes(self, session: str, status: str, reason: str | None = None, within_s: float = 20) -> None:
        shown: dict[str, Any] = {}

        async def there() -> bool:
            shown.update(await self.show(session))
            return shown["status"] == status and (reason is None or str(shown["reason"]).startswith(reason))

        try:
            await until(there, within_s)
        except AssertionError:
            raise AssertionError(f"{session} should be {status} ({reason}) and is {shown}") from None

    async def scanned(self, session: str, phone: str) -> None:
        """The QR code that the API shows, scanned; returns once the session is connected."""
        await self.becomes(session, "qr_ready")

        async def scans() -> bool:  # what is shown may be the code before the one that WhatsApp takes by now
            code = (await self._http.get(f"/api/sessions/{session}/qr")).json().get("qr", "")
            good = self.whatsapp.waiting(code)
            if good:
                self.whatsapp.scan(code, phone)
            return good

        await until(scans)
        await self.becomes(session, "connected")

    async def linked(self, phone: str, **wish: str) -> str:
        session = await self.provision(**wish)
        await self.scanned(session, phone)
        return session

    async def send(self, session: str, text: str) -> None:
        """To a recipient of its own for each text."""
        to = f"97250{zlib.crc32(text.encode()) % 10_000_000:07}"
        await self.ask("POST", "/api/v1/send", json={"to": to, "message": text, "sessionId": session})

    async def arrives(self, phone: str, *texts: str, within_s: float = 20) -> None:
        await until(lambda: set(texts) <= set(self.whatsapp.texts(phone)), within_s)

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
                if mine in lines and alive(pid) and WORKER in Path(f"/proc/{pid}/cmdline").read_text():
                    [session] = [line for line in lines if line.startswith(b"SESSION_ID=")]
                    found[session.partition(b"=")[2].decode()].append(pid)
        return dict(found)

    def worker(self, session: str) -> int:
        [pid] = self.workers()[session]
        return pid

    def starts(self, session: str | None = None) -> list[Start]:
        path = self.witness / "starts"
        lines = path.read_text().splitlines() if path.exists() else []
        found = [Start(**json.loads(line)) for line in lines]
        return [start for start in found if session in (None, start.session)]

    def fall_ill(self, session: str, fault: str) -> None:
        draft = self.sessions_dir / session / "fault.draft"
        draft.write_text(fault)
        draft.replace(draft.with_name("fault"))

    def break_proxy(self, number: int) -> None:
        """From now on it takes nobody, and whoever uses it is cut off."""
        self.proxies[number].mode = OUT_OF_ORDER
        self.proxies[number].drop_all()

    def heal_proxy(self, number: int) -> None:
        self.proxies[number].mode = GOOD

    def check_order(self) -> None:
        """True at every moment that nothing is under way: places are those of the sessions, each that should run does
        so once, and nothing is left of sessions that are gone."""
        sessions: dict[str, dict[str, str]] = {name: self.key(f"session:{name}") for name in self.key("sessions") or ()}
        self._check_places(sessions)
        self._check_remains(set(sessions))
        self.check_alone_and_behind_proxies()
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

    def check_alone_and_behind_proxies(self) -> None:
        assert not (self.witness / "twins").exists(), "two workers of one session ran at the same moment"
        assert not self.whatsapp.twins
        assert not [hello for hello in self.whatsapp.hellos if hello.door == "direct"]
        assert {place for one in self.proxies for place in one.asked} <= {WHATSAPP}


def pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def alive(pid: int) -> bool:
    """Not gone, and no zombie."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZXx"
    return False


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@asynccontextmanager
async def installation(proxies: int = 2, **settings: str) -> AsyncIterator[Installation]:
    """Set up, and not started yet. A start may be repeated after an end; nothing of it outlives this."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sb-", ignore_cleanup_errors=True)))
        whatsapp = await stack.enter_async_context(tiny_whatsapp())
        pool = []
        for number in range(1, proxies + 1):
            leads_to = {WHATSAPP: ("127.0.0.1", await whatsapp.door(f"proxy_{number}"))}
            pool.append(await stack.enter_async_context(socks5_server("me", f"pw{number}", leads_to)))
        made = Installation(folder, whatsapp, pool, **settings)
        made.witness.mkdir(parents=True)
        (made.witness / "direct").write_text(str(await whatsapp.door("direct")))
        stack.push_async_callback(made.close)
        yield made
